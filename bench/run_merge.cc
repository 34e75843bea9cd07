#include "bench/run_merge.h"

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>

#include "bench/check.h"
#include "bench/stage.h"

namespace outcore::bench {

RunMerge::RunMerge(const RunPlan& plan, WordFile& runs, std::span<uint64_t> room)
    : plan_(plan),
      runs_(runs),
      room_(room),
      buffer_words_(room.size() / (plan.runs() + 1) / kUnitWords * kUnitWords) {
  BENCH_CHECK(buffer_words_ != 0);
}

Status RunMerge::read_samples() {
  return runs_.read(plan_.samples_of(0), room_.first(plan_.runs() * kUnitWords));
}

std::span<const uint64_t> RunMerge::samples(uint64_t run) const {
  return room_.subspan(run * kUnitWords, kUnitWords);
}

// The largest key that so many words are below, as far as the samples tell.
uint64_t RunMerge::key_of(unsigned part, unsigned parts) const {
  const uint64_t wanted = plan_.words() / parts * part;
  uint64_t key = 0;
  for (uint64_t bit = uint64_t{1} << 63; bit != 0; bit >>= 1) {
    uint64_t below = 0;
    for (uint64_t run = 0; run < plan_.runs(); ++run) {
      const auto of_run = samples(run);
      const auto found = std::lower_bound(of_run.begin(), of_run.end(), key | bit);
      below += static_cast<uint64_t>(found - of_run.begin()) * (plan_.run(run).size() / kUnitWords);
    }
    if (below <= wanted) key |= bit;
  }
  return key;
}

// The samples say between which units; these are then looked at.
Result<uint64_t> RunMerge::words_below(uint64_t key, uint64_t run) {
  const WordRange range = plan_.run(run);
  if (range.size() == 0) return uint64_t{0};
  const auto of_run = samples(run);
  const auto found = std::lower_bound(of_run.begin(), of_run.end(), key);
  const auto sample = static_cast<uint64_t>(found - of_run.begin());
  if (sample == 0) return uint64_t{0};
  const uint64_t step = range.size() / kUnitWords;
  uint64_t low = (sample - 1) * step / kUnitWords;
  uint64_t high = (sample * step + kUnitWords - 1) / kUnitWords;
  const auto unit = room_.subspan(plan_.runs() * kUnitWords, kUnitWords);
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    if (Status s = runs_.read(range.first + middle * kUnitWords, unit); !s) return s.error();
    (unit.front() < key ? low : high) = middle;
  }
  if (Status s = runs_.read(range.first + low * kUnitWords, unit); !s) return s.error();
  const auto in_unit = std::lower_bound(unit.begin(), unit.end(), key) - unit.begin();
  return low * kUnitWords + static_cast<uint64_t>(in_unit);
}

Result<std::vector<uint64_t>> RunMerge::cut(unsigned part, unsigned parts) {
  std::vector<uint64_t> counts(plan_.runs());
  const uint64_t key = part == 0 || part == parts ? 0 : key_of(part, parts);
  for (uint64_t run = 0; run < counts.size() && part != 0; ++run) {
    if (part == parts) {
      counts[run] = plan_.run(run).size();
      continue;
    }
    auto below = words_below(key, run);
    if (!below) return below.error();
    counts[run] = below.value();
  }
  return counts;
}

// Up to the end of the part by large transfers. What comes behind it only fills the part's last
// unit.
Status RunMerge::fill(Cursor& cursor) {
  const uint64_t ahead = cursor.next < cursor.soon ? cursor.soon - cursor.next : kUnitWords;
  const uint64_t size = std::min({buffer_words_, ahead, cursor.last - cursor.next});
  cursor.at = cursor.memory;
  cursor.end = cursor.memory + size;
  if (size == 0) return {};
  const uint64_t first = std::exchange(cursor.next, cursor.next + size);
  return runs_.read(first, {cursor.memory, size});
}

Status RunMerge::begin(const std::vector<uint64_t>& firsts, const std::vector<uint64_t>& ends) {
  const auto down = [](uint64_t words) { return words / kUnitWords * kUnitWords; };
  cursors_.assign(plan_.runs(), {});
  losers_.assign(plan_.runs(), {});
  for (uint64_t run = 0; run < cursors_.size(); ++run) {
    const WordRange range = plan_.run(run);
    Cursor& cursor = cursors_[run];
    cursor.memory = room_.data() + run * buffer_words_;
    cursor.next = range.first + down(firsts[run]);
    cursor.soon = range.first + down(ends[run] + kUnitWords - 1);
    cursor.last = range.end;
    if (Status s = fill(cursor); !s) return s;
    if (cursor.at != cursor.end) cursor.at += firsts[run] % kUnitWords;
  }
  winner_ = build(1);
  return {};
}

RunMerge::Entry RunMerge::entry_of(uint64_t run) const {
  const Cursor& cursor = cursors_[run];
  if (cursor.at == cursor.end) return {~uint64_t{0}, cursors_.size() + run, run};
  return {*cursor.at, run, run};
}

RunMerge::Entry RunMerge::build(uint64_t node) {
  if (node >= cursors_.size()) return entry_of(node - cursors_.size());
  Entry winner = build(2 * node), loser = build(2 * node + 1);
  if (loser < winner) std::swap(winner, loser);
  losers_[node] = loser;
  return winner;
}

bool RunMerge::take(uint64_t& word) {
  word = winner_.word;
  Cursor& cursor = cursors_[winner_.run];
  BENCH_CHECK(cursor.at != cursor.end);
  if (++cursor.at == cursor.end) status_ = fill(cursor);
  if (!status_) return false;
  Entry winner = entry_of(winner_.run);
  for (uint64_t node = (winner.run + cursors_.size()) / 2; node != 0; node /= 2)
    if (losers_[node] < winner) std::swap(losers_[node], winner);
  winner_ = winner;
  return true;
}

// All parts agree on the order of the words. What a part has before its first whole unit the part
// before it writes.
Status RunMerge::merge(unsigned part, unsigned parts, WordFile& to,
                       const std::function<bool(uint64_t words)>& see) {
  BENCH_CHECK(part < parts);
  if (Status s = read_samples(); !s) return s;
  auto firsts = cut(part, parts);
  if (!firsts) return firsts.error();
  auto ends = cut(part + 1, parts);
  if (!ends) return ends.error();
  const auto up = [](uint64_t words) { return (words + kUnitWords - 1) / kUnitWords * kUnitWords; };
  const uint64_t first = std::accumulate(firsts->begin(), firsts->end(), uint64_t{0});
  const uint64_t end = up(std::accumulate(ends->begin(), ends->end(), uint64_t{0}));
  if (up(first) >= end) return {};
  if (Status s = begin(*firsts, *ends); !s) return s;
  uint64_t dropped = 0;
  for (uint64_t count = up(first) - first; count != 0; --count)
    if (!take(dropped)) return status_;
  const auto out = room_.subspan(cursors_.size() * buffer_words_, buffer_words_);
  for (uint64_t at = up(first); at < end;) {
    const auto words = out.first(std::min(buffer_words_, end - at));
    for (uint64_t& word : words)
      if (!take(word)) return status_;
    if (Status s = to.write(at, words); !s) return s;
    at += words.size();
    if (!see(words.size())) return Stage::cancelled();
  }
  return {};
}

}  // namespace outcore::bench
