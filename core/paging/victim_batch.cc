#include "core/paging/victim_batch.h"

#include "core/base/assert.h"

namespace outcore::paging {

using budget::FrameRecord;
using budget::kNone;
using os::Piece;
using region::PageState;
using region::PageValue;
using region::View;

void VictimBatch::drain_inbox() {
  shard_.inbox.drain(pager_.frames, [&](uint32_t frame) {
    FrameRecord& record = pager_.frames[frame];
    if (record.list == kLeavingList) shard_.leaving.remove(pager_.frames, frame);
    if (record.list == kProbedList) {
      OC_CHECK(record.is_in_policy != 0);
      shard_.probed.remove(pager_.frames, frame);
      shard_.policy->touched(FrameId{frame});
      return;
    }
    if (record.is_in_policy != 0) {
      shard_.policy->rescued(FrameId{frame});
      return;
    }
    if (record.list == kColdList) return;
    OC_CHECK(record.cache != kNone);
    const bool was_known = record.is_known != 0;  // it was pinned
    record.is_known = record.is_in_policy = 1;
    const PageCache& cache = *pager_.cache_of(record.cache);
    OC_CHECK(record.page < cache.page_count());
    const PageKey key = cache.key_of(record.page);
    if (was_known)
      shard_.policy->returned(FrameId{frame}, key);
    else if (record.is_guess != 0)
      shard_.policy->guessed(FrameId{frame}, key);
    else
      shard_.policy->filled(FrameId{frame}, key);
    record.is_guess = 0;
  });
}

// The state of the page was ours alone since it was unmapped: nobody has rescued it.
void VictimBatch::return_to_policy(const Victim& victim) {
  if (!victim.is_probed) {
    return_to_policy(victim.frame, true);
    return;
  }
  OC_CHECK(pager_.frames[victim.frame].list == kProbedList);
  shard_.probed.remove(pager_.frames, victim.frame);
}

void VictimBatch::return_to_policy(uint32_t frame, bool was_chosen) {
  FrameRecord& record = pager_.frames[frame];
  if (was_chosen && record.is_in_policy != 0) {
    shard_.policy->put_back(FrameId{frame});
  } else if (record.is_in_policy == 0) {
    record.is_in_policy = 1;
    shard_.policy->returned(FrameId{frame}, pager_.cache_of(record.cache)->key_of(record.page));
  }
}

void VictimBatch::put_back(Victim& victim) {
  if (victim.is_out) return;
  victim.is_out = true;
  OC_ASSERT(word_of(victim).glance() == PageState::kUnmapping ||
            word_of(victim).glance() == PageState::kDropping);
  show_again(victim, word_of(victim).load().has(PageValue::kDirty));
  word_of(victim).update([](PageValue v) {
    return v.with(PageState::kResident).minus(PageValue::kCleaned | PageValue::kWriting);
  });
  return_to_policy(victim);
}

void VictimBatch::put_back_leaving(Victim& victim, uint64_t minus, uint64_t plus) {
  victim.is_out = true;
  PageValue seen = word_of(victim).load();
  bool is_ours = false;
  while (!is_ours && seen.state() == PageState::kLeaving)
    is_ours = word_of(victim).change(seen, seen.with(PageState::kBusy));
  if (is_ours) show_again(victim, seen.plus(plus).has(PageValue::kDirty));
  word_of(victim).update([&](PageValue v) {
    const PageValue idle = v.minus(minus).plus(plus);
    return is_ours ? idle.with(PageState::kResident) : idle;
  });
  if (is_ours) return_to_policy(victim);
}

// What was unmapped and stays is shown again in every view that showed it: a pin or a system call
// finds it there. If the kernel refuses that too, the next touch but one tries again.
// REQUIRES: the page's state is ours alone.
void VictimBatch::show_again(const Victim& victim, bool is_dirty) {
  PageCache& cache = *victim.cache;
  if (cache.frames->leaving_is_readable()) return;
  os::SubpageSet written;
  if (!cache.frames->reports_written()) {
    if (is_dirty) written.add_range(0, os::SubpageSet::kCount);
  } else {
    cache.look_at_written(victim.page, &written);
  }
  cache.for_each_showing(victim.page, [&](View& view) {
    const Piece piece = view.piece_of(victim.page);
    cache.frames->show(piece, written);
    cache.frames->wake(piece);
  });
}

void VictimBatch::note_leaving() const {
  uint32_t pages = 0, written = 0;
  for (uint32_t i = 0; i < shard_.victim_count; ++i) {
    const Victim& victim = shard_.victim[i];
    if (victim.is_out) continue;  // probed ones are
    ++pages;
    written += victim.is_dirty ? 1 : 0;
  }
  pager_.tuner.note_leaving(pages, written);
}

}  // namespace outcore::paging
