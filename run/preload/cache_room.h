// CacheRoom: what the page cache needs for what the program writes by calls into files that it has
// mapped, given from the budget.
//
// Such bytes are in the page cache until they are on the device. Where the budget fills a cgroup
// but for a MiB or two, the kernel has to write each page back at once, and the program waits for
// that at each call: 60 times slower was measured. With 3 MiB, on two processors, it does not. Used
// under the door's lock.
#pragma once

#include <cstdint>
#include <string>

#include "core/runtime/runtime_impl.h"

namespace outcore::preload {

class CacheRoom {
 public:
  // `root` contains proc and sys: "/", or a made-up tree in tests.
  explicit CacheRoom(std::string root = "/") : root_(std::move(root)) {}

  // The program has written so many bytes by a call. As many are given, in whole pieces, up to the
  // most of this budget. Evicts pages for them.
  void note_written(Runtime::Impl& runtime, uint64_t bytes);
  // No such file is left. REQUIRES: the same runtime.
  void take_back(Runtime::Impl& runtime);
  // In a forked child, whose runtime is another.
  void forget() { written_bytes_ = given_bytes_ = 0, has_enough_ = false; }

  uint64_t given_bytes() const { return given_bytes_; }
  // The most that is given: 2 MiB, and 512 KiB for each processor, as the kernel charges cgroups in
  // batches of 256 KiB for each; at most 16 MiB, and a quarter of the budget.
  static uint64_t most_of(uint64_t budget_bytes, unsigned processors);

 private:
  static constexpr uint64_t kPieceBytes = 256 << 10;
  bool is_tight(const Runtime::Impl& runtime) const;

  const std::string root_;
  uint64_t written_bytes_ = 0, given_bytes_ = 0;
  bool has_enough_ = false;  // or cannot be given more
};

}  // namespace outcore::preload
