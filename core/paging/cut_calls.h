// CutCalls: what a cut calls while it looks for its moment; and CutReport, what it says afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "outcore/result.h"

namespace outcore::paging {

// What a cut calls, in the thread that asked for it and with signals blocked. Only quiesce(),
// resume(), entered() and over() may touch memory of the caches; none may call the engine.
struct CutCalls {
  // The program brings itself to a state of its choice, and writes nothing until resume(): then no
  // thread is stopped. Empty: the cut finds its moment itself. resume() follows whenever quiesce()
  // succeeded, in a thread of its own, which may touch the caches.
  std::function<Status()> quiesce;
  std::function<void()> resume;
  // Before the moment is looked for, and after quiesce(); it may write to the caches, too. Each
  // that succeeds is followed by left(), which may not: the moment is found, or this attempt over.
  std::function<Status()> entered;
  std::function<void(bool is_found)> left;
  // Last, with the gates open; it may write to the caches. No other cut has begun.
  std::function<void()> over;
  // Everything is in the stores, and nothing that was written later: the store's next epoch begins.
  std::function<Status()> stored;
  // If the look that follows finds nothing newly written, this is the moment of the cut.
  std::function<void()> candidate;
  // Ordinary memory that belongs to the cut, none of it the engine's. Threads are stopped before it
  // is copied, and it must be the same when the last look is done; the copies come from the budget.
  std::vector<std::span<const std::byte>> memory;
  // Before stored(): the copies, one behind the other.
  std::function<Status(std::span<const std::byte>)> copied;
  // Instead of os::ThreadStop: stops those who write, and lets them go on. stop() says how many.
  std::function<uint32_t()> stop;
  std::function<void()> go_on;
  bool may_stop_threads = true;  // false: who writes without end makes the cut fail
  bool may_wait = true;          // false: EAGAIN while another cut is under way
};

struct CutReport {
  uint64_t pause_ns = 0;         // from the first unmapping or stop to the last thread's release
  uint64_t precopy_rounds = 0;   // of the last attempt, as the next three
  uint64_t looks = 0;            // for written pages, from the first freeze on
  uint64_t frozen_pages = 0;     // left in the last round
  uint64_t stopped_threads = 0;  // 0: it converged without
  uint64_t frozen_bytes = 0;     // of them stored
  uint64_t precopied_bytes = 0;  // stored before
  uint64_t attempts = 0;
};

}  // namespace outcore::paging
