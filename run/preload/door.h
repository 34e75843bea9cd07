// Door: which mappings and files of this process go through Outcore, and how that changes. There is
// one for the process.
//
// Every call takes the door's lock, with signals blocked; none is made on the fault path. For calls
// of the program that do not concern managed memory or taken files, reading one word is enough:
// `is_any_taken`, `may_concern`.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/function_ref.h"
#include "outcore/result.h"
#include "run/preload/cache_room.h"
#include "run/preload/inside.h"
#include "run/preload/release_link.h"
#include "run/preload/report.h"
#include "run/preload/taken_file.h"

namespace outcore::preload {

// A mapping that the kernel has just created for the program.
struct NewMapping {
  std::byte* address = nullptr;
  uint64_t size_bytes = 0;
  int protection = 0, flags = 0, fd = -1;
  uint64_t offset = 0;
  int pattern = MADV_NORMAL;  // as Mapping has it
  bool is_face = false;       // likewise
};

class Door {
 public:
  static constexpr size_t kMappingsMax = 4096;  // of one file; the kernel keeps further ones

  static Door& instance();

  // Whether some file is taken. If not, no call of the program concerns us.
  static bool is_any_taken() { return taken_count_.load(std::memory_order_acquire) != 0; }
  // Whether the range may contain managed memory.
  static bool may_concern(const void* address, size_t size_bytes) {
    const auto from = reinterpret_cast<uint64_t>(address);
    return from < high_.load(std::memory_order_acquire) &&
           from + size_bytes > low_.load(std::memory_order_acquire);
  }
  // The range belongs to the heap: calls on it concern us.
  static void include(const std::byte* address, uint64_t size_bytes);
  // Whether the address is in a mapping that goes through Outcore. Takes no lock.
  static bool is_ours(const void* address);

  // -- mappings: door_take.cc, door_change.cc --
  // Takes the mapping over, in place, if the settings ask for it and it can be done correctly.
  // Otherwise the kernel keeps it, and the report says why. True if it is taken.
  bool take(const NewMapping& made);
  // Ends our mappings in the range, which is about to become something else. If a mapping is cut in
  // two, `between` makes the change, and is called for each such part. 0 or an errno: bytes could
  // not be stored, and the mapping still exists.
  int release(std::byte* address, uint64_t size_bytes,
              const std::function<void(std::byte*, uint64_t)>& between);
  int protect(std::byte* address, uint64_t size_bytes, int protection);
  void* remap(std::byte* address, uint64_t old_bytes, uint64_t new_bytes, int flags,
              std::byte* new_address);
  // Calls f(mapping, from, to) for each part of the range that is ours; offsets are in the mapping.
  void for_each_part(const std::byte* address, uint64_t size_bytes,
                     const std::function<void(Mapping&, uint64_t, uint64_t)>& f);
  // As msync, madvise and mincore; 0 or an errno. For parts of the range that are not ours,
  // advise() calls the kernel; for the other functions the caller does.
  int sync(std::byte* address, uint64_t size_bytes, int flags);
  int advise(std::byte* address, uint64_t size_bytes, int advice);
  void look_up_residency(const std::byte* address, uint64_t size_bytes, unsigned char* states);
  // Calls f(address, size) for each part of the range that is not ours, until one returns an errno.
  int on_the_rest(const std::byte* address, uint64_t size_bytes,
                  const std::function<int(const std::byte*, uint64_t)>& f);
  // Hands all files with mappings in the range back to the kernel. 0 or an errno.
  int leave(const std::byte* address, uint64_t size_bytes, const char* why);
  void undo_locks();  // the kernel's, after mlockall
  int lock_range(const std::byte* address, uint64_t size_bytes);
  void unlock_range(const std::byte* address, uint64_t size_bytes);

  // -- files: door_file.cc --
  // Bytes of the file are about to be read by a call that does not use our pages: stores those that
  // were written first. 0 or an errno.
  int before_read(TakenFile& file, uint64_t offset, uint64_t size_bytes);
  // Calls `change`, once, which changes bytes of the file from `offset` on and returns how many it
  // wrote. A thread that faults on these pages meanwhile waits; afterwards all mappings show the
  // bytes.
  void around_write(TakenFile& file, base::FunctionRef<uint64_t()> offset, uint64_t size_bytes,
                    base::FunctionRef<uint64_t()> change);
  // Stores what was written through mappings: of the files on that device, or of all. 0 or an
  // errno.
  int store_files(const dev_t* device);
  // Takes the pages that the file has got if it has become longer.
  void note_growth(TakenFile& file);
  // Hands all mappings of the file back to the kernel, in place. False: bytes could not be stored,
  // and the file stays ours.
  bool hand_back(TakenFile& file, const char* why);
  bool hand_back_if_writable(TakenFile& file, const char* why);
  // The same, by identity, for callers that learn of other openers.
  bool hand_back(const Identity& identity, const char* why);
  // The taken file at a path that is about to be opened; nullptr: it is not taken.
  TakenFile* file_of_path(int folder, const char* path);
  TakenFile* file_of_identity(const Identity& identity);
  // The same, or, in a forked child, the file of that identity that is still its parent's.
  TakenFile* file_of_parent_or_ours(const Identity& identity);
  // The program itself is about to open a file for writing that was read-only so far.
  void before_write_open(TakenFile& file);
  // The program has closed a descriptor of the file.
  void closed_descriptor(TakenFile& file);
  // The program has a new descriptor.
  void note_descriptor(int fd);

  // Hands all writable files back to the kernel, as far as they can be stored.
  void leave_writable(const char* why, bool may_stay = false);
  // Hands all in-thread files back, and takes no further ones in-thread: the kernel will touch
  // memory outside of any thread's call (io_uring, aio), where no thread can answer the fault.
  void leave_in_thread(const char* why);
  // Hands all files back, and takes none from now on: the program restricts its system calls, and
  // so perhaps those of our threads.
  void leave_all(const char* why);
  // The process is about to end, or to become another program: stores what was written, and hands
  // writable files to the kernel, so that what is written from now on is not lost.
  void store_all();
  // The process ends: removes the buffer's file if this is its last member.
  void leave_buffer();
  // Writes what was learnt about the files to the profile of --learn, when the process ends or
  // becomes another program. Errors are reported; one of the profile's file only once.
  void keep_learnt();
  // -- files that several processes write together (--share-writes): door_together.cc --
  // The program has opened it in a way that joins nobody, or got it from another process: those who
  // write it hand it back, unless this process is one of them.
  void opened_as_stranger(int fd);
  // This process as a member of the buffer in which it shares what it writes; nullptr: it shares
  // nothing. Starts the runtime.
  buffer::Member* member_to_share();
  // The program has just opened the descriptor: joins those who write the file together, or begins
  // to, if it may; if it may not, and others do, they hand it back.
  void join_writers(int fd);
  // Writes the bytes where all who write the file together see them. False: they do not, or the
  // bytes, or all `rest_bytes` of the call, do not lie within the file; the kernel must write them.
  struct Place {
    base::FunctionRef<uint64_t()> offset;
    base::FunctionRef<void()> taken;  // it will be written there
  };
  bool write_by_face(TakenFile& file, const Place& place, std::span<const std::byte> bytes,
                     uint64_t rest_bytes);
  // The program is about to change the file in a way that only the kernel can, or its size: it is
  // handed back; at that path, also by those of whom this process is none who write it together.
  // False: others still write it, as somebody could not store its part: it must not be changed.
  bool leave_to_change(TakenFile& file, const char* why);
  bool before_path_change(int folder, const char* path, const char* why);
  // Others wait until this process hands some back, too.
  void hand_back_wanted();
  // -- files that are idle: door_idle.cc --
  // Whether pages of files stay that the program has unmapped.
  bool has_idle() const { return has_idle_.load(); }
  // Gives up those that have been idle for long, or are removed. The same afterwards.
  bool look_at_idle();
  // -- forked children: door_fork.cc --
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();
  bool adopt(const region::View& view);  // called within fork(), in the child
  // The child has touched a mapping of its parent. False: it was not one of ours.
  bool revive(const std::byte* address);
  // A call is about to change mappings of the parent in the range: puts the kernel's mapping in
  // place of the placeholder first.
  static void revive_range(const void* address, uint64_t size_bytes) {
    if (has_inherited_.load(std::memory_order_acquire))
      instance().revive_all(static_cast<const std::byte*>(address), size_bytes);
  }
  void begin();  // when the process begins
  // Whether the door belongs to another process: this one shares its memory (vfork, clone), or is a
  // copy that was not made by the C library. Then nothing of it may be changed.
  bool is_of_another_process() const;
  // Answers a request of a descendant.
  ReleaseLink::Answer release(const ReleaseLink::Question& question);

  // If the file is taken, calls f(cache, mapped bytes).
  void with_cache(TakenFile& file, const std::function<void(paging::PageCache&, uint64_t)>& f);
  // Prefetches a range of the file, or evicts it.
  Status bring(TakenFile& file, uint64_t offset, uint64_t size_bytes, bool is_in);
  Report report();
  // The runtime, which is started if necessary. nullptr: `why` says why there is none.
  std::shared_ptr<Runtime::Impl> runtime_for_heap(std::string* why);
  const std::shared_ptr<Runtime::Impl>& runtime() const { return runtime_; }

 private:
  Door() = default;
  bool start_runtime(std::string* why);
  TakenFile* find_or_open(const NewMapping& made, const struct stat& about, const std::string& path,
                          std::string* why);
  bool put_region(TakenFile& file, const NewMapping& made, std::string* why);
  Delivery delivery_for(TakenFile& file, const NewMapping& made);  // door_delivery.cc
  void tell_delivery(const std::string& why);
  void note_delivery(Delivery delivery);
  void forget(TakenFile& file, Mapping& mapping);
  // door_together.cc
  void begin_to_share();
  bool is_mapped_now(const TakenFile& file) const;
  bool are_writers_there(const Identity& identity) const;
  bool ask_others_back(const Identity& identity, bool is_locked = false);
  bool ask_others_as_stranger(const Identity& identity, uint64_t size_bytes);
  bool put_face(int fd, uint64_t size_bytes);
  void keep_face(TakenFile& file);
  void note_descriptor_of(TakenFile& file);
  void drop_face(TakenFile& file);
  static void note_cut_off(TakenFile& file);
  bool leave_to_others(TakenFile& file);
  void hand_back_wanted_but(const TakenFile* file);
  bool is_any_wanted_back() const;
  void hand_back_meanwhile();
  Result<std::unique_ptr<Region::Impl>> map_region(TakenFile& file, const NewMapping& made,
                                                   MapOptions options,
                                                   const Runtime::Impl::Lent& lent);
  static void note_together(TakenFile& file);
  // door_idle.cc
  bool is_worth_keeping(const TakenFile& file) const;
  void keep_pages(TakenFile& file, const Mapping& ending);
  void note_idle(TakenFile& file);
  void end_idle(TakenFile& file);
  void note_idle_call(TakenFile& file);
  static void note_idle_change(TakenFile& file);
  void end_idle_if_changed(TakenFile& file, int fd);
  static void end_idleness(TakenFile& file, int fd);
  void close_file(TakenFile& file);
  static void close_descriptors(TakenFile& file);
  void store_pieces(TakenFile& file);
  bool hand_back_locked(TakenFile& file, const char* why);  // reports why not
  Status try_to_hand_back(TakenFile& file, const char* why);
  Status try_once_to_hand_back(TakenFile& file, const char* why);
  void drop_what_was_cut_off(TakenFile& file);
  Mapping* mapping_at(const std::byte* address);  // the first that ends behind the address
  Mapping* mapping_covering(const std::byte* address);
  bool mark_descriptors(TakenFile& file);  // false: they could not be read
  void populate(Mapping& mapping);
  int cut(Mapping& mapping, uint64_t from, uint64_t to,
          const std::function<void(std::byte*, uint64_t)>& between);
  void* move(Mapping& mapping, uint64_t new_bytes, int flags, std::byte* new_address);
  Status unmap(TakenFile& file, Mapping& mapping);
  static void widen_bounds(const std::byte* address, uint64_t size_bytes);
  void note_growth_locked(TakenFile& file);
  static void add_ended(TakenFile& file);
  int advise_part(Mapping& mapping, uint64_t from, uint64_t to, int advice);
  int punch(Mapping& mapping, uint64_t offset, uint64_t size_bytes);
  // Records that a mapping was left to the kernel, for the table of the end and for `outcore top`.
  void note_left(const std::string& path, uint64_t size_bytes, const std::string& reason);
  bool take_locked(const NewMapping& made);
  void revive_file(TakenFile& file);
  void revive_inherited(const Identity& identity, bool is_only_if_written);
  void revive_what_is_read();
  void map_inherited(TakenFile& file);
  void ask_others_in_child(const Identity& identity);
  void revive_all(const std::byte* address, uint64_t size_bytes);
  bool is_inherited(TakenFile& file);
  template <typename IsMeant>
  void leave_locked(const char* why, const IsMeant& is_meant);

  static std::atomic<uint32_t> taken_count_;
  static std::atomic<uint64_t> low_, high_;
  static std::atomic<bool> has_inherited_;

  os::Lock lock_;
  std::shared_ptr<Runtime::Impl> runtime_;
  std::string why_no_runtime_;
  bool has_tried_runtime_ = false;
  std::map<Identity, std::unique_ptr<TakenFile>> files_;
  std::map<std::byte*, Mapping*> mappings_;
  NotTaken not_taken_;
  std::vector<std::unique_ptr<TakenFile>> inherited_;  // in a forked child: those of its parent
  CacheRoom cache_room_;                               // for files that are written by calls
  std::atomic<pid_t> owner_{0};  // the process that this state belongs to; 0: it has not begun
  bool shares_writes_ = false;   // --share-writes, and there is a buffer
  std::atomic<bool> has_idle_{false};
  std::string delivery_;
  bool has_told_delivery_ = false, is_closed_to_in_thread_ = false;
  const char* why_closed_ = nullptr;  // to all files
  // Whether the profile contains what was learnt: not tried, or failed; yes; it cannot be written.
  enum class Kept : uint8_t { kNothing, kAll, kFailed } kept_ = Kept::kNothing;
};

// The errno for bytes that could not be stored: ENOSPC and EDQUOT as they are, otherwise EIO.
int as_errno(const Status& status);
// Our own mapping of the file; nullptr: there is none.
Mapping* face_of(const TakenFile& file);
// The kernel's, for a face; MAP_FAILED.
void* map_face(int fd, uint64_t size_bytes, int protection);
// Puts the kernel's mapping in place of ours, as the program asked for it.
bool map_by_kernel(const Mapping& mapping);
// Asks the process that has taken the file to hand it back, and waits. If that fails, this process
// ends with a message. For forked children, and for processes that only share the memory.
// `meanwhile` is called while it waits.
void release_or_end(const TakenFile& file, void (*meanwhile)() = nullptr);
// The process ends: stores everything, and publishes the report. Once.
void end_of_process();

}  // namespace outcore::preload
