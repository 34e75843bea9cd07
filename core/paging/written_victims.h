// WrittenVictims: asks which of a turn's victims were written: of unmapped neighbours by one
// question to the kernel, which costs as much as one for a single page.
//
// What unmapped pages answer stays so: nobody writes them until they are rescued, which waits for
// their state. The turn's holder; the fault path; what it knows lies in the shard.
#pragma once

#include <cstdint>

#include "core/base/assert.h"
#include "core/paging/shard.h"

namespace outcore::paging {

class WrittenVictims {
 public:
  // REQUIRES: shard.turn is held for the life of this.
  explicit WrittenVictims(Shard& shard) : shard_(shard) { OC_CHECK(shard.turn.is_held()); }

  // Before the first victim of a batch, which is sorted.
  void begin() { cache_ = nullptr; }
  // Sets shard.written to what was written of victim i; of frames that stay mapped, it is clean
  // afterwards. 0 or -errno. REQUIRES: it is Unmapping.
  int ask(uint32_t i);

 private:
  bool is_known(const Victim& victim) const {
    return cache_ == victim.cache && victim.page >= first_ && victim.page < end_;
  }
  void ask_run(uint32_t i);

  Shard& shard_;
  const PageCache* cache_ = nullptr;  // shard.written_run is about pages [first_, end_) of this
  uint64_t first_ = 0, end_ = 0;
};

}  // namespace outcore::paging
