// SharedFile: a file whose pages this process has in a buffer, together with others. The caller
// sees to it that nobody outside of the buffer changes the file meanwhile, as for any region.
//
// The pages of each file have a place of their own in the buffer's memory file, which no other file
// ever gets. A file that has changed since is another one, unless members of the buffer write it:
// then what is in memory is newer than the file, whose time of change says nothing. Any thread.
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
  enum class Use : uint8_t { kRead, kWrite };
  // Joins those who have the file in the buffer, if somebody has, or puts it there. Errors: ENFILE
  // (1024 files), EBUSY (this process has it already; it has changed just now, so that a further
  // change could not be told; others have it as it was, or write it with another size), EUSERS (too
  // many write it), ETIMEDOUT. `fd`: to write, the file. `pages_least`: the caller shows so many,
  // perhaps more than the file has; EBUSY if others show less. Not the fault path.
  static Result<std::unique_ptr<SharedFile>> open(std::shared_ptr<Buffer> buffer,
                                                  const store::FileVersion& version,
                                                  Use use = Use::kRead, int fd = -1,
                                                  uint64_t pages_least = 0);
  // To store what those wrote who have ended (Heir): end_writing() comes next. nullptr: somebody
  // who lives writes it; or nothing is left to be stored, or no place for a writer; or a member
  // stands still. Not the fault path.
  static std::unique_ptr<SharedFile> inherit(std::shared_ptr<Buffer> buffer, uint32_t index);
  // Whether members write the file now, this one included, or have written what is not stored yet:
  // by the file alone their bytes are not to be had.
  static bool has_writers(Buffer& buffer, const store::FileVersion& version);
  // REQUIRES: nobody brings pages in any more; who writes has called end_writing().
  ~SharedFile();
  // nullptr: this process does not write it.
  Marks* marks() const { return marks_.get(); }
  bool is_written() const { return marks_ != nullptr; }
  // What this process wrote is stored, or given up. `fd`: the file. `store_adopted` is called, with
  // no lock, while processes that wrote it have ended (Marks::adopt()), and says whether it could.
  // Not the fault path.
  void end_writing(int fd, const std::function<bool()>& store_adopted);
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  Buffer& buffer() const { return *buffer_; }
  uint64_t first_frame_page() const { return first_page_; }
  // So many are its own: behind them lie others' pages. Perhaps more than the file has.
  uint64_t pages() const { return pages_; }
  // Of the file as it was when it was put there.
  const store::FileVersion& version() const { return version_; }
  uint64_t frame_page(uint64_t page) const;
  // Nobody joins any more: the file is about to change.
  void close_to_others();

  // Between the two the caller may bring pages in. False: they are kept out just now. The fault
  // path.
  bool enter() {
    inside_.fetch_add(1, std::memory_order_seq_cst);
    if (blocks_.load(std::memory_order_seq_cst) == 0) return true;
    leave();
    return false;
  }
  void leave() { inside_.fetch_sub(1, std::memory_order_seq_cst); }
  // Keeps threads of this process from bringing pages in, and waits for those that do. False: they
  // did not end in time, and nothing is blocked.
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
