#include "core/paging/keeper.h"

#include <algorithm>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/wait.h"
#include "core/paging/eviction.h"

namespace outcore::paging {
namespace {

// The policy plans in frames, the budget in bytes: they meet at the average page.
void set_capacity(Pager& pager, Shard& shard) {
  const uint64_t used =
      pager.budget.used() - std::min(pager.budget.used(), pager.bounce.shape().total_bytes());
  const uint64_t frames = shard.policy->resident_count() + shard.policy->leaving_count();
  if (frames == 0) return;
  const uint64_t share = used / pager.shards.size();
  const uint64_t page_bytes = std::max<uint64_t>(share / frames, base::kSystemPage);
  const uint64_t before = shard.capacity_page_bytes;
  if (before != 0 && page_bytes < before + before / 4 && page_bytes > before - before / 4) return;
  OC_ASSERT(page_bytes >= base::kSystemPage);
  shard.capacity_page_bytes = page_bytes;
  const uint64_t capacity = pager.budget.limit() / pager.shards.size() / page_bytes;
  shard.policy->set_capacity(std::clamp<uint64_t>(capacity, 1, pager.frames.count()));
}

}  // namespace

uint64_t Keeper::run_turn(Shard& shard, uint32_t victims, Caller caller) {
  OC_CHECK(shard.turn.is_held());
  OC_CHECK(victims != 0);
  if (!pager_.stall.may_try()) return 0;
  Eviction eviction(pager_, shard, caller);
  const uint64_t freed = run_turn(shard, eviction, victims);
  const uint64_t all = pager_.frames.used_once();
  if (freed != 0)
    pager_.stall.end();
  else
    pager_.stall.note_vain(eviction.looked_at(), all + all / 4, eviction.first_error());
  return freed;
}

uint64_t Keeper::run_turn(Shard& shard, Eviction& eviction, uint32_t victims) {
  OC_CHECK(shard.request_count == 0);
  OC_CHECK(shard.write_buffer_used == 0);
  eviction.drain_inbox();
  set_capacity(pager_, shard);
  eviction.choose(victims);
  pager_.tell_policy(shard);
  eviction.choose_probes(kProbesMax);
  eviction.clean(Bytes::kWriteBack);
  eviction.note_leaving();
  const size_t leaving_target = shard.policy->leaving_target();
  if (leaving_target == 0 && shard.leaving.size() == 0) return eviction.free();
  // At the limit the queue of leaving pages is the reserve: then some of it goes, however short it
  // is.
  const bool is_full =
      pager_.budget.used() + pager_.page_bytes_max.load(std::memory_order_relaxed) >
      pager_.budget.limit();
  const uint32_t target = static_cast<uint32_t>(leaving_target);
  const uint32_t half = shard.leaving.size() / 2;
  eviction.rest(is_full ? std::min(target, half) : target);
  const uint64_t freed = eviction.free();
  OC_ASSERT(freed <= pager_.budget.used_max());
  OC_ASSERT(shard.policy->is_valid());
  return freed;
}

bool Keeper::help(Caller caller, uint32_t first_choice, uint32_t victims_max) {
  for (size_t i = 0; i < pager_.shards.size(); ++i) {
    Shard& shard = *pager_.shards[(first_choice + i) % pager_.shards.size()];
    if (!shard.turn.try_lock()) continue;
    // Of large pages a batch is few, or it would take what is in use.
    const auto victims = static_cast<uint32_t>(std::clamp<uint64_t>(
        pager_.budget.limit() / 32 / pager_.usual_page_bytes(shard), 1, victims_max));
    const bool has_freed = run_turn(shard, victims, caller) > 0;
    shard.turn.unlock();
    if (has_freed) return true;
  }
  return false;
}

void Keeper::call_keepers() {
  for (const auto& shard : pager_.shards) shard->call_keeper();
}

void Keeper::probe(Shard& shard) {
  if (pager_.stall.error() != 0) return;  // what was written could not be stored
  const os::Locked turn(shard.turn);
  Eviction eviction(pager_, shard, Caller::kThread);
  eviction.drain_inbox();
  eviction.choose_probes(kProbesMax);
  eviction.clean(Bytes::kWriteBack);
  OC_ASSERT(shard.policy->is_valid());
}

bool Keeper::keep(Shard& shard) {
  if (shard.rescues.exchange(0, std::memory_order_relaxed) >= Shard::kRescuesMax) probe(shard);
  const auto [low, high] = pager_.watermarks();
  if (pager_.is_crowded.exchange(false, std::memory_order_relaxed)) {
    const os::Locked turn(shard.turn);
    if (run_turn(shard, 128, Caller::kThread) == 0 && pager_.budget.used() <= high) return false;
  }
  if (pager_.budget.used() <= high) return true;
  // What comes in meanwhile is for the next call: to run after it means turns of a page or two,
  // each of which interrupts all processors.
  const uint64_t too_much = pager_.budget.used() - std::min(pager_.budget.used(), low);
  const uint64_t little = std::min(too_much / 8, high - low);
  for (uint64_t freed = 0; freed + little < too_much;) {
    const uint64_t used = pager_.budget.used();
    if (used <= low) break;
    const uint64_t over = std::min(too_much - freed, used - low);
    const os::Locked turn(shard.turn);
    const uint64_t page_bytes = pager_.usual_page_bytes(shard);
    const uint64_t victims = std::clamp<uint64_t>(over / page_bytes + 1, 1, 128);
    const uint32_t resting = shard.leaving.size();
    const uint64_t in_turn = run_turn(shard, static_cast<uint32_t>(victims), Caller::kThread);
    // The queue of leaving pages fills before it gives anything.
    if (in_turn == 0 && shard.leaving.size() <= resting) return false;
    freed += in_turn;
  }
  return true;
}

void Keeper::run(Shard& shard) {
  uint64_t backoff_ns = 0;
  while (!pager_.is_stopping.load(std::memory_order_acquire)) {
    if (backoff_ns == 0 && shard.is_called.load(std::memory_order_acquire) == 0)
      os::wait(&shard.is_called, 0, 1'000'000'000);
    shard.is_called.store(0, std::memory_order_release);
    const uint32_t changes = pager_.budget.changes();
    if (keep(shard)) {
      backoff_ns = 0;
      continue;
    }
    if (backoff_ns != 0) pager_.budget.wait_for_change(changes, backoff_ns);
    backoff_ns = std::clamp<uint64_t>(backoff_ns * 2, 1'000'000, 500'000'000);
  }
}

}  // namespace outcore::paging
