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
  // A runtime has started. Finds out whether a limit of the machine or a cgroup leaves the page
  // cache less than the budget has; a budget that follows what is available leaves room by itself.
  // `root` contains proc and sys: "/", or a made-up tree in tests.
  void begin(const Runtime::Impl& runtime, const std::string& root = "/");
  // The program has written so many bytes by a call. As many are given in whole pieces, one a call,
  // up to the most of this budget. Evicts pages for them; where that fails no more are given.
  void note_written(Runtime::Impl& runtime, uint64_t bytes);
  // No such file is mapped any more. REQUIRES: the same runtime.
  void return_all(Runtime::Impl& runtime);
  // In a forked child, whose runtime is another.
  void forget() { most_bytes_ = written_bytes_ = given_bytes_ = 0; }

  uint64_t given_bytes() const { return given_bytes_; }
  // The most that is given: 2 MiB, and 512 KiB for each processor, as the kernel charges cgroups in
  // batches of 256 KiB for each; at most 16 MiB, and a quarter of the budget.
  static uint64_t most_of(uint64_t budget_bytes, unsigned processors);

 private:
  static constexpr uint64_t kPieceBytes = paging::BudgetControl::kLendPiece;

  // given <= most, written <= most; 0: nothing is given.
  uint64_t most_bytes_ = 0, written_bytes_ = 0, given_bytes_ = 0;
};

}  // namespace outcore::preload
