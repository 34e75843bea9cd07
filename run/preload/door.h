// Door: what of this process goes through Outcore, and how it changes. One for the process.
//
// Every call on it takes the door's lock, with signals blocked; none is on the fault path. Calls
// that concern nothing of ours cost a look at one word: `is_any_taken`, `may_concern`.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "outcore/result.h"
#include "run/preload/inside.h"
#include "run/preload/release_link.h"
#include "run/preload/report.h"
#include "run/preload/taken_file.h"

namespace outcore::preload {

// A mapping that the kernel has just made for the program.
struct NewMapping {
  std::byte* address = nullptr;
  uint64_t size_bytes = 0;
  int protection = 0, flags = 0, fd = -1;
  uint64_t offset = 0;
};

class Door {
 public:
  static constexpr size_t kMappingsMax = 4096;  // of one file; then the kernel has it

  static Door& instance();

  // Some file is taken. Without it no call concerns us.
  static bool is_any_taken() { return taken_count_.load(std::memory_order_acquire) != 0; }
  // The range may have something of ours in it.
  static bool may_concern(const void* address, size_t size_bytes) {
    const auto from = reinterpret_cast<uint64_t>(address);
    return from < high_.load(std::memory_order_acquire) &&
           from + size_bytes > low_.load(std::memory_order_acquire);
  }
  // The range is the heap's: calls on it concern us.
  static void include(const std::byte* address, uint64_t size_bytes);
  // The address is in a mapping that goes through Outcore. No lock.
  static bool is_ours(const void* address);

  // -- mappings: door_take.cc, door_change.cc --
  // Takes the mapping over, in place, if that is asked for and can be done rightly; otherwise the
  // kernel keeps it, and the report says why.
  // True if it is taken.
  bool take(const NewMapping& made);
  // The range is about to become something else. What is ours there ends; `between` makes the
  // change where a mapping is cut in two, and is told of each such part. 0 or an errno: bytes could
  // not be stored, and the mapping is still there.
  int release(std::byte* address, uint64_t size_bytes,
              const std::function<void(std::byte*, uint64_t)>& between);
  int protect(std::byte* address, uint64_t size_bytes, int protection);
  void* remap(std::byte* address, uint64_t old_bytes, uint64_t new_bytes, int flags,
              std::byte* new_address);
  // Calls f(mapping, from, to) for what is ours in the range; offsets are in the mapping.
  void for_each_part(const std::byte* address, uint64_t size_bytes,
                     const std::function<void(Mapping&, uint64_t, uint64_t)>& f);
  // As msync, madvise, mincore; 0 or an errno. What is not ours in the range is the
  // kernel's: of advise() here, of the others by the caller.
  int sync(std::byte* address, uint64_t size_bytes, int flags);
  int advise(std::byte* address, uint64_t size_bytes, int advice);
  void look_up_residency(const std::byte* address, uint64_t size_bytes, unsigned char* states);
  // Calls f(address, size) for what is not ours in the range, until it returns an errno.
  int on_the_rest(const std::byte* address, uint64_t size_bytes,
                  const std::function<int(const std::byte*, uint64_t)>& f);
  // The files that have mappings in the range go back to the kernel. 0 or an errno.
  int leave(const std::byte* address, uint64_t size_bytes, const char* why);
  void undo_locks();  // of the kernel's, after mlockall
  int lock_range(const std::byte* address, uint64_t size_bytes);
  void unlock_range(const std::byte* address, uint64_t size_bytes);

  // -- files: door_file.cc --
  // Bytes of the file are about to be read past us: ours are stored first. 0 or an errno.
  int before_read(TakenFile& file, uint64_t offset, uint64_t size_bytes);
  // Bytes of the file change under `change`: none of them is in memory meanwhile.
  void around_write(TakenFile& file, const std::function<uint64_t()>& offset, uint64_t size_bytes,
                    const std::function<void()>& change);
  // What was written through mappings is stored: of files on that device, or of all. 0 or an errno.
  int store_files(const dev_t* device);
  // The file may have become longer.
  void note_growth(TakenFile& file);
  // Everything goes back to the kernel, in place. False: bytes could not be stored; it stays ours.
  bool hand_back(TakenFile& file, const char* why);
  bool hand_back_if_writable(TakenFile& file, const char* why);
  // The same by identity, for who hears of other openers.
  bool hand_back(const Identity& identity, const char* why);
  // The file of a path that is to be opened, if it is taken.
  TakenFile* file_of_path(int folder, const char* path);
  TakenFile* file_of_identity(const Identity& identity);
  // The program itself opens a file that was read-only so far for writing.
  void before_write_open(TakenFile& file);
  // The program has closed a descriptor of it.
  void closed_descriptor(TakenFile& file);
  // A descriptor is new in the program.
  void note_descriptor(int fd);

  // All writable files go back to the kernel, as far as they can be stored.
  void leave_writable(const char* why);
  // All in-thread ones do, and no more are taken so: what the kernel touches later, in no call of a
  // thread, it must find by itself.
  void leave_in_thread(const char* why);
  // The process is about to end, or to become another program: what is written is stored, and
  // writable files are the kernel's from now on, so that what is still written is not lost.
  void store_all();
  // What was learnt of the files goes to the profile of --learn, when the process ends or becomes
  // another program. What fails is told; what the file itself refuses, once.
  void keep_learnt();
  // -- forked children: door_fork.cc --
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();
  bool adopt(const region::View& view);  // within fork(), in the child
  // A touch of what was the parent's. False: it is none of ours.
  bool revive(const std::byte* address);
  // A call is about to change what was the parent's in the range: it must find the kernel's mapping
  // there, not what stands for it.
  static void revive_range(const void* address, uint64_t size_bytes) {
    if (has_inherited_.load(std::memory_order_acquire))
      instance().revive_all(static_cast<const std::byte*>(address), size_bytes);
  }
  void begin();  // at the beginning of the process
  // This process is not the one that the door is of: it shares its memory (vfork, clone), or is a
  // copy that was made past the C library. It changes nothing of ours.
  bool is_of_another_process() const;
  // What a descendant asks for.
  ReleaseLink::Answer release(const ReleaseLink::Question& question);

  // Calls f(cache, mapped bytes) if the file is taken.
  void with_cache(TakenFile& file, const std::function<void(paging::PageCache&, uint64_t)>& f);
  // Brings a range of the file in, or evicts it.
  Status bring(TakenFile& file, uint64_t offset, uint64_t size_bytes, bool is_in);
  Report report();
  // Started if it is not; nullptr, and why.
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
  void forget(TakenFile& file, Mapping& mapping);
  void close_file(TakenFile& file);
  static void close_descriptors(TakenFile& file);
  void store_pieces(TakenFile& file);
  bool hand_back_locked(TakenFile& file, const char* why);  // says why not
  Status try_to_hand_back(TakenFile& file, const char* why);
  void drop_what_was_cut_off(TakenFile& file);
  Mapping* mapping_at(const std::byte* address);  // the first whose end is behind the address
  Mapping* mapping_covering(const std::byte* address);
  bool mark_descriptors(TakenFile& file);  // false: they could not be looked at
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
  void revive_file(TakenFile& file);
  void revive_all(const std::byte* address, uint64_t size_bytes);
  bool is_inherited(TakenFile& file);

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
  std::vector<std::unique_ptr<TakenFile>> inherited_;  // of the parent's, in a forked child
  std::atomic<pid_t> owner_{0};  // the process that this state is of; 0: it has not begun
  std::string delivery_;
  bool has_told_delivery_ = false, is_closed_to_in_thread_ = false;
  // Whether the profile has what was learnt: not tried, or in vain; yes; it cannot be written.
  enum class Kept : uint8_t { kNothing, kAll, kFailed } kept_ = Kept::kNothing;
};

// What calls say of bytes that could not be stored: ENOSPC and EDQUOT by their names, else EIO.
int as_errno(const Status& status);
// The kernel's mapping, in place of ours, as the program asked for it.
bool map_by_kernel(const Mapping& mapping);
// Asks the process that has the file to hand it back, and waits; if that cannot be, this process
// ends with a message. For forked children, and for those who only share the memory.
void release_or_end(const TakenFile& file);
// The process ends: everything is stored, and the report published. Once.
void end_of_process();

}  // namespace outcore::preload
