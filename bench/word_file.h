// WordFile: a file of 64-bit words, read and written past the page cache (O_DIRECT), by whole
// units.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "outcore/result.h"

namespace outcore::bench {

// Any thread. A word is named by its number; numbers and counts are multiples of kUnitWords, and
// memory is aligned to units.
class WordFile {
 public:
  static Result<std::unique_ptr<WordFile>> open(const std::string& path);
  // One without a name in `folder`, which has room for so many bytes: its space is free when all
  // processes that have it are gone, however they end.
  static Result<std::unique_ptr<WordFile>> make_unnamed(const std::string& folder,
                                                        uint64_t size_bytes);
  ~WordFile();
  WordFile(const WordFile&) = delete;
  WordFile& operator=(const WordFile&) = delete;

  Status read(uint64_t first, std::span<uint64_t> into);
  Status write(uint64_t first, std::span<const uint64_t> from);
  uint64_t units_read() const { return units_read_.load(); }  // by this process

 private:
  WordFile(int file, std::string name) : file_(file), name_(std::move(name)) {}
  int file_;
  std::string name_;
  std::atomic<uint64_t> units_read_{0};
};

}  // namespace outcore::bench
