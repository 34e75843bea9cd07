// KernelText: a short text that the kernel makes when it is read (a file of /proc or /sys), kept
// open. Any thread; not on the fault path.
//
// A thread that looks at it again and again opens nothing: the numbers of descriptors are the
// program's, which may have closed one just now so as to get it for its next open(). It may have
// closed ours, too: then the number is another file's by now, which is neither read nor closed.
// read() allocates nothing.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace outcore::os {

class KernelText {
 public:
  // More than any of these texts has: memory.stat, the longest, has 2 KiB. It may lie on the stack
  // of a thread that has 16 KiB.
  static constexpr size_t kBytesMax = 4096;

  KernelText() = default;
  // Opens it. A forked child does not inherit it.
  explicit KernelText(const std::string& path);
  KernelText(KernelText&& other) noexcept;
  KernelText& operator=(KernelText&& other) noexcept;
  ~KernelText();

  bool is_open() const { return fd_ >= 0; }
  // Why it is not open: ENOENT, EMFILE, …; 0 if it is, or was never to be.
  int error() const { return error_; }
  // What it says now, within `buffer`; empty if it is not open, or cannot be read any more.
  std::string_view read(std::span<char> buffer) const;

 private:
  bool has_file() const;

  int fd_ = -1;
  int error_ = 0;
  dev_t device_ = 0;  // with inode_: of the file that was opened
  ino_t inode_ = 0;
};

// The number that the text begins with; nullopt if it does not ("max").
std::optional<uint64_t> number_at_start(std::string_view text);
// The number after `key` in lines of "key number" or "key: number kB"; nullopt if there is none.
// REQUIRES: `key` contains the colon, if there is one.
std::optional<uint64_t> number_behind(std::string_view text, std::string_view key);

}  // namespace outcore::os
