// SharedFile: a file whose pages this process shares with others in a buffer. The caller must make
// sure that nobody outside of the buffer changes the file meanwhile, as for any region.
//
// Each file has a range of its own in the memfd of the frames, which no other file ever gets. A
// file that has changed since counts as another file, unless members of the buffer write it: then
// the pages in memory are newer than the file, and its modification time says nothing. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/buffer/buffer.h"
#include "core/buffer/marks.h"
#include "core/os/word.h"
#include "outcore/result.h"

namespace outcore::buffer {

class SharedFile {
 public:
  // kTogether: to write, with others who do so, and hand it back to the kernel with them
  // (HandingBack). kJoined: the same, where somebody has it so: else ENOENT.
  enum class Use : uint8_t { kRead, kWrite, kTogether, kJoined };
  // Joins the members that have the file in the buffer, or puts it there as the first. Errors:
  // ENFILE (1024 files), EAGAIN (it is just being handed back), EBUSY (this process has it already;
  // it has changed so recently that another change could go unnoticed; others have it as it was
  // before, write it with another size, or hand it back together, or do not), EUSERS (too many
  // write it), ETIMEDOUT. `fd`: the file, needed to write. `pages_least`: how many pages the
  // caller's mapping has, perhaps more than the file; EBUSY if others' have fewer. Not the fault
  // path.
  static Result<std::unique_ptr<SharedFile>> open(std::shared_ptr<Buffer> buffer,
                                                  const store::FileVersion& version,
                                                  Use use = Use::kRead, int fd = -1,
                                                  uint64_t pages_least = 0);
  // Opens the file to store what ended writers left (Heir); call end_writing() next. nullptr: a
  // living member writes it; or nothing is left to be stored; or no writer's slot is free; or a
  // stopped process has the lock of files. Not the fault path.
  static std::unique_ptr<SharedFile> inherit(std::shared_ptr<Buffer> buffer, uint32_t index);
  // Whether members write the file now, this one included, or have written bytes that are not
  // stored yet: then the file on disk alone does not have them.
  static bool has_writers(Buffer& buffer, const store::FileVersion& version);
  // Whether members have the file, in whatever state, this one included, or have written bytes
  // that are not stored yet.
  static bool is_anybodys(Buffer& buffer, const store::FileVersion& version);
  // Whether a living member writes it together with others, or is just handing it back.
  static bool is_together(Buffer& buffer, uint64_t device, uint64_t inode);
  // For a process that has the file open, and is not among them: all hand it back, or have ended.
  // Errors: those of HandingBack::ask(). Not the fault path.
  static Status ask_back(Buffer& buffer, uint64_t device, uint64_t inode, uint64_t ns_max);
  // REQUIRES: no thread brings pages in any more; end_writing() was called if the file is written.
  ~SharedFile();
  // nullptr: this process does not write it.
  Marks* marks() const { return marks_.get(); }
  bool is_written() const { return marks_ != nullptr; }
  // Whether those who write it hand it back together.
  bool is_together() const;
  // Another member has begun to, and waits for this process.
  bool is_wanted_back() const;
  // Hands it back with them: HandingBack::take_part(). REQUIRES: is_together().
  Status hand_back(const std::function<int()>& store_own, uint64_t ns_max);
  // This process is about to end, and has stored what it wrote. Whether others stay, who would
  // store what it still writes. REQUIRES: is_together().
  bool leaves_others();
  // Ends this process's writing; what it wrote is stored or given up before. `fd`: the file.
  // `store_adopted` is called, without locks, as long as there are ended writers to adopt
  // (Marks::adopt()); it returns whether it could store what they wrote. Not the fault path.
  void end_writing(int fd, const std::function<bool()>& store_adopted);
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  Buffer& buffer() const { return *buffer_; }
  uint64_t first_frame_page() const { return first_page_; }
  // The length of its range: behind it lie other files' pages. Perhaps longer than the file.
  uint64_t pages() const { return pages_; }
  // Of the file as it was when it was put into the buffer.
  const store::FileVersion& version() const { return version_; }
  uint64_t frame_page(uint64_t page) const;
  // From now on no member joins: the file is about to change.
  void close_to_others();

  // Between enter() and leave() the caller may bring pages in. False: the file is blocked, and
  // leave() is not to be called. The fault path.
  bool enter() {
    inside_.fetch_add(1, std::memory_order_seq_cst);
    if (blocks_.load(std::memory_order_seq_cst) == 0) return true;
    leave();
    return false;
  }
  void leave() { inside_.fetch_sub(1, std::memory_order_seq_cst); }
  // Keeps threads of this process from bringing pages in, and waits for those between enter() and
  // leave(). False: they did not leave in time, and nothing is blocked.
  bool block(uint64_t wait_ns);
  bool is_blocked() const { return blocks_.load(std::memory_order_seq_cst) != 0; }
  void unblock() { blocks_.fetch_sub(1, std::memory_order_seq_cst); }

 private:
  SharedFile(std::shared_ptr<Buffer> buffer, const store::FileVersion& version, uint32_t index,
             uint64_t first_page, uint64_t pages)
      : buffer_(std::move(buffer)),
        version_(version),
        index_(index),
        first_page_(first_page),
        pages_(pages) {}
  static Result<std::unique_ptr<SharedFile>> join(std::shared_ptr<Buffer> buffer,
                                                  const store::FileVersion& version, Use use,
                                                  int fd, uint64_t pages_least);
  void close_marks(int fd, bool is_locked, bool is_read_by_none);

  const std::shared_ptr<Buffer> buffer_;
  const store::FileVersion version_;
  std::unique_ptr<Marks> marks_;
  const uint32_t index_;
  const uint64_t first_page_, pages_;
  bool is_left_ = false;
  os::Word<uint32_t> inside_{0}, blocks_{0};
};

}  // namespace outcore::buffer
