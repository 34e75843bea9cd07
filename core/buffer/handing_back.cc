#include "core/buffer/handing_back.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/wait.h"
#include "core/os/wait_limit.h"

namespace outcore::buffer {
namespace {

constexpr uint64_t kLookNs = 5'000'000;  // between two looks at who has died
constexpr const char* kAttempt = "hand a file back to the kernel in all processes";

}  // namespace

void HandingBack::ring(Member& member) {
  os::Word<uint32_t>& changes = member.board().handing_changes;
  changes.fetch_add(1, std::memory_order_seq_cst);
  os::wake_between_processes(&changes);
}

void HandingBack::wait_for_change(Member& member, uint32_t seen, uint64_t wait_ns) {
  os::wait_between_processes(&member.board().handing_changes, seen, wait_ns);
}

// With the lock of files: who joins has joined before, and is waited for, or sees that it is too
// late.
Status HandingBack::begin() {
  {
    const Member::FilesLock lock(member_);
    if (!lock.is_held()) return base::system_error(ETIMEDOUT, kAttempt, "a member is stopped");
    uint32_t seen = file_.handing_back.load();
    if (phase_of(seen) != Phase::kNone) return {};
    for (const FileRecord& other : member_.board().files)
      if (other.state.load() != FileState::kFree && is_under_way(other) &&
          Marks::has_writer(member_, other))
        return base::system_error(EAGAIN, kAttempt, "another file is just handed back");
    file_.handing_back.compare_exchange_strong(seen,
                                               word_of((seen >> kPhaseBits) + 1, Phase::kHalting));
  }
  ring(member_);
  return {};
}

// What a dead one was counted by is another's by now, who has taken it on: so by who it is.
bool HandingBack::have_all_halted(uint32_t attempt) const {
  const auto has_halted = [&](Writer writer) {
    for (uint32_t slot = 0; slot < kWritersMax; ++slot)
      if (Writer(file_.writers[slot].load()) == writer && file_.halted[slot].load() == attempt)
        return true;
    return false;
  };
  for (const os::Word<uint64_t>& bits : file_.writers) {
    const Writer writer(bits.load());
    if (!writer.is_any() || writer.index() >= kMembersMax || !member_.is_alive(writer)) continue;
    if (!has_halted(writer)) return false;
  }
  return true;
}

void HandingBack::decide(uint32_t attempt, Phase phase) {
  uint32_t halting = word_of(attempt, Phase::kHalting);
  if (file_.handing_back.compare_exchange_strong(halting, word_of(attempt, phase))) ring(member_);
}

Status HandingBack::take_part(Marks& marks, const std::function<int()>& store_own,
                              uint64_t ns_max) {
  const uint32_t word = file_.handing_back.load();
  const uint32_t attempt = word >> kPhaseBits;
  if (phase_of(word) == Phase::kNone) return base::system_error(ECANCELED, kAttempt);
  os::WaitLimit limit(ns_max);
  int error = store_own();
  if (error == 0) {
    file_.halted[marks.slot()].store(attempt);
    ring(member_);
  }
  for (;;) {
    const uint32_t changes = member_.board().handing_changes.load(std::memory_order_seq_cst);
    const uint32_t now = file_.handing_back.load();
    if (now == word_of(attempt, Phase::kReleased)) break;
    if (now != word_of(attempt, Phase::kHalting)) {
      if (error != 0) return base::system_error(error, kAttempt);
      return base::system_error(ECANCELED, kAttempt, "another process could not store its part");
    }
    if (error != 0 || limit.is_over()) {
      decide(attempt, Phase::kNone);
      if (error == 0) error = -ETIMEDOUT;
      continue;
    }
    if (have_all_halted(attempt)) {
      if (marks.adopt()) error = store_own();
      if (error != 0) continue;
      if (!marks.is_any_left()) {
        decide(attempt, Phase::kReleased);
        continue;
      }
    }
    wait_for_change(member_, changes, kLookNs);
  }
  // Nobody may find the pages that are in memory once the file is written through the kernel.
  file_.state.store(FileState::kClosed);
  return {};
}

Status HandingBack::ask(uint64_t ns_max) {
  os::WaitLimit limit(ns_max);
  bool has_begun = false;
  // Released is not enough: who has not put the kernel's mapping in place yet may still be reading
  // what is in memory.
  const auto is_over = [&] { return !Marks::has_writer(member_, file_); };
  while (!is_over()) {
    const uint32_t changes = member_.board().handing_changes.load(std::memory_order_seq_cst);
    if (has_begun && phase_of(file_.handing_back.load()) == Phase::kNone && !is_over())
      return base::system_error(ECANCELED, kAttempt, "a process could not store its part");
    if (limit.is_over()) return base::system_error(ETIMEDOUT, kAttempt);
    const Status s = begin();
    if (!s.ok() && s.code() != EAGAIN) return s;
    has_begun = s.ok();
    if (!is_over()) wait_for_change(member_, changes, kLookNs);
  }
  return {};
}

}  // namespace outcore::buffer
