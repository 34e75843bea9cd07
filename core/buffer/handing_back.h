// HandingBack: programs under `outcore run` that write a file together hand it back to the kernel
// at one moment. Nobody may go on through the kernel while another can still store an older page,
// and nobody may go on through the buffer while another writes through the kernel.
//
// Each halts its own writes, stores what it has marked, and says so. When all who live have, and no
// page is marked any more, the file has all bytes, and whoever finds that says that it is released;
// or, if one cannot store or does not answer, that this attempt is over, and all go on as before.
// Who is killed meanwhile counts no more, and what it wrote is stored by who finds that. One word
// decides, so all do the same. Not the fault path.
#pragma once

#include <cstdint>
#include <functional>

#include "core/buffer/marks.h"
#include "core/buffer/member.h"
#include "outcore/result.h"

namespace outcore::buffer {

class HandingBack {
 public:
  HandingBack(Member& member, FileRecord& file) : member_(member), file_(file) {}

  // Somebody has begun, and it is not decided yet.
  static bool is_under_way(const FileRecord& file) {
    return phase_of(file.handing_back.load()) == Phase::kHalting;
  }
  static bool is_released(const FileRecord& file) {
    return phase_of(file.handing_back.load()) == Phase::kReleased;
  }
  // It sleeps on Board::handing_changes until then, or for so long.
  static void wait_for_change(Member& member, uint32_t seen, uint64_t wait_ns);
  static void ring(Member& member);

  // Begins it, unless somebody has, and tells the others. EAGAIN: another file of the buffer is
  // just handed back, in which this process may have to take part first: one comes after the other,
  // or two processes might wait for each other. ETIMEDOUT: a member is stopped.
  Status begin();
  // REQUIRES: begin(), by whomever; nobody of this process can write the file. `store_own` stores
  // what it has marked, and what it has taken on: 0 or -errno. ECANCELED: another could not store.
  // ETIMEDOUT: one did not answer in time. After an error all is as before.
  Status take_part(Marks& marks, const std::function<int()>& store_own, uint64_t ns_max);
  // The same by a process that is none of those who write it: until none of them has it any more.
  Status ask(uint64_t ns_max);

 private:
  enum class Phase : uint32_t { kNone, kHalting, kReleased };
  static constexpr uint32_t kPhaseBits = 2, kPhases = (1 << kPhaseBits) - 1;
  static constexpr Phase phase_of(uint32_t word) { return static_cast<Phase>(word & kPhases); }
  static constexpr uint32_t word_of(uint32_t attempt, Phase phase) {
    return attempt << kPhaseBits | static_cast<uint32_t>(phase);
  }
  bool have_all_halted(uint32_t attempt) const;
  void decide(uint32_t attempt, Phase phase);

  Member& member_;
  FileRecord& file_;
};

}  // namespace outcore::buffer
