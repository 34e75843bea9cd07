// SwapFile: swap space of a run's own, on the device of the data, so that the kernel's paging can
// be measured beside Outcore's. Takes root.
#pragma once

#include <cstdint>
#include <string>

#include "outcore/result.h"

namespace outcore::bench {

// One thread. In force, before all other swap, from make() until it ends.
class SwapFile {
 public:
  // In the folder `dir`. Also takes away what killed benchmarks left. Errors: EPERM (not root),
  // ENOSPC, EINVAL (a file system that cannot hold swap), with the remedy.
  static Result<SwapFile> make(const std::string& dir, uint64_t size_bytes);
  SwapFile() = default;
  SwapFile(SwapFile&&) noexcept;
  SwapFile& operator=(SwapFile&&) noexcept;
  ~SwapFile();

 private:
  explicit SwapFile(std::string path) : path_(std::move(path)) {}
  std::string path_;  // empty: none
};

}  // namespace outcore::bench
