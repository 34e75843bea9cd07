#include "core/prefetch/fetch_tuner.h"

#include <algorithm>
#include <bit>

#include "core/base/assert.h"

namespace outcore::prefetch {
namespace {

// What a page that comes along costs beside its transfer, and beside the worth of what is pushed
// out for it: the other page has to leave.
constexpr double kLeaveNs = 1'000;
// What is pushed out costs at most this part of what a page saves that comes along and is used: who
// reads the same again and again is served by large clusters, though all that leaves comes back.
constexpr double kPushedOutMost = 0.98;
// A page that would have come along is of use if it is missed before this part of memory has come
// in; one that has left is back soon if it is missed in the first half of that. In the time in
// which all of memory comes in nearly each page is touched where touches are even over little more.
constexpr uint64_t kUsedWithin = 2, kBackWithin = 4;
// A page of the sample that has not left when so many times the memory has come in will stay.
constexpr uint64_t kStays = 3;
// While there is room, a cluster may cost this many times the miss it comes with; doubled each
// kMissesADoubling misses, up to the larger figure where the rest of the store fits.
constexpr uint64_t kGuessMin = 2, kGuessMax = 4, kGuessMaxIfFitting = 64, kMissesADoubling = 64;
// Guesses end, unless all fits, where less than one in kGuessesAUse of so many is used.
constexpr uint64_t kGuessesTried = 64, kGuessesAUse = 8;
// Where single pages have come in for long, only every eighth miss decides and watches anew.
constexpr uint32_t kMissesAtFirst = 16, kMissesADecision = 8;
// A cluster leaves a page out only one time in four if its outermost ring is used by this share, or
// if so many pages of its rings were watched in this place: each that is used costs a miss.
constexpr double kSure = 0.9;
constexpr uint32_t kWatchedEnough = 24;
// Clusters ahead of the miss have to save so much more than aligned ones, which are read by fewer
// transfers where all of an extent is used.
constexpr double kAheadMore = 1.1;

uint64_t mix(uint64_t x) { return WatchedPages::mix(x); }

uint64_t key_of(uint64_t cache_id, uint64_t page) { return WatchedPages::key_of(cache_id, page); }

// The page of these aligned 2^(ring - 1) pages that is watched from others: as good as random, and
// always the same, so that they are not watched all over.
uint64_t outside_page(uint64_t cache_id, uint64_t page, uint32_t ring) {
  OC_ASSERT(ring != 0);
  const uint64_t half = uint64_t{1} << (ring - 1), first = page & ~(half - 1);
  return first + key_of(cache_id + ring, first) % half;
}

}  // namespace

FetchHistory::FetchHistory(FetchCounts& counted)
    : id([] {
        static std::atomic<uint64_t> next{0};
        return next.fetch_add(1, std::memory_order_relaxed);
      }()),
      counts(counted) {}

void FetchCounts::clear() {
  for (std::atomic<uint64_t>& count : clusters) count.store(0, std::memory_order_relaxed);
  left_out.store(0, std::memory_order_relaxed);
  left_out_used.store(0, std::memory_order_relaxed);
}

FetchMetrics FetchCounts::metrics() const {
  static_assert(FetchMetrics::kSizes == UseEvidence::kRings);
  FetchMetrics metrics;
  for (size_t i = 0; i < clusters.size(); ++i)
    metrics.clusters[i] = clusters[i].load(std::memory_order_relaxed);
  metrics.left_out_used = left_out_used.load(std::memory_order_relaxed);
  metrics.left_out = left_out.load(std::memory_order_relaxed);
  return metrics;
}

Status FetchTuner::allocate() {
  if (Status s = places_.allocate(kPlaces); !s) return s;
  if (Status s = sites_.allocate(kSites); !s) return s;
  return watched_.allocate();
}

FetchTuner::Place* FetchTuner::find_or_replace(os::Table<Place>& table, uint64_t key,
                                               uint32_t* slot) const {
  constexpr uint32_t kWays = 4;
  const auto set = static_cast<uint32_t>(key % (table.count() / kWays)) * kWays;
  // If all are others', one of them, as chance will have it.
  *slot = set + (seed_.load(std::memory_order_relaxed) >> 32) % kWays;
  for (uint32_t i = set; i < set + kWays; ++i) {
    const uint64_t there = table[i].key.load(std::memory_order_relaxed);
    if (there == key) {
      *slot = i;
      return &table[i];
    }
    if (there == 0) *slot = i;
  }
  Place& place = table[*slot];
  place.key.store(key, std::memory_order_relaxed);
  place.evidence.clear();
  place.misses.store(0, std::memory_order_relaxed);
  place.is_quiet.store(0, std::memory_order_relaxed);
  return &place;
}

uint64_t FetchTuner::place_key(const Miss& miss) {
  return key_of(key_of(miss.cache_id, miss.site), miss.extent);
}

FetchTuner::Where FetchTuner::find(const Miss& miss) {
  Where where;
  where.site = find_or_replace(sites_, key_of(miss.cache_id, miss.site), &where.site_slot);
  where.place = find_or_replace(places_, place_key(miss), &where.place_slot);
  return where;
}

FetchTuner::Prices FetchTuner::prices(const FetchCost& cost) const {
  const auto miss_ns = static_cast<double>(cost.miss_ns());
  const double alone_ns = static_cast<double>(cost.page_ns()) + kLeaveNs;
  const double pushed_out_ns =
      std::min(evictions_.share() * miss_ns, kPushedOutMost * (miss_ns - alone_ns));
  return {miss_ns, alone_ns + std::max(pushed_out_ns, 0.0)};
}

// A page that is read pushes out another whether it comes in ahead or is missed. One that is not
// read costs its transfer, and where memory is full, what it pushes out: that is missed again, and
// what was written of it has to be stored once more.
double FetchTuner::gain_ahead(const FetchCost& cost, bool is_full) const {
  const auto miss_ns = static_cast<double>(cost.miss_ns());
  const double alone_ns = static_cast<double>(cost.page_ns()) + (is_full ? kLeaveNs : 0);
  const double pushed_out_ns =
      is_full ? evictions_.share() * miss_ns * (1 + evictions_.written_share()) : 0;
  return std::max(miss_ns - alone_ns, 0.0) / (alone_ns + pushed_out_ns);
}

FetchTuner::Gain FetchTuner::best_of(const Prices& prices, const UseEvidence::Shares& shares,
                                     uint32_t level_max) {
  OC_CHECK(level_max <= kLevelMax);
  double gain = 0;
  Gain best;
  for (uint32_t ring = 1; ring <= level_max; ++ring) {
    const auto pages = static_cast<double>(uint64_t{1} << (ring - 1));
    gain += pages * (shares[ring] * prices.miss_ns - prices.page_ns);
    if (gain > best.ns) best = {ring, gain};
  }
  return best;
}

// Whether by clusters around or ahead is decided by what is known of the place in the code: of a
// place in the data less is known, and what is watched there and was not used yet is more for one
// kind than for the other. *shares: what is believed here.
FetchTuner::Choice FetchTuner::choose_by_evidence(const FetchHistory& history, const Where& where,
                                                  uint32_t level_max, Shares* shares) const {
  shares->refine(history.evidence);
  shares->refine(where.site->evidence);
  const Prices prices = this->prices(history.cost);
  const Gain ahead = best_of(prices, shares->ahead, level_max);
  Choice choice;
  choice.is_ahead = ahead.level != 0 &&
                    where.site->evidence.ahead.watched_within(ahead.level) >= kWatchedEnough &&
                    ahead.ns > kAheadMore * best_of(prices, shares->around, level_max).ns;
  shares->refine(where.place->evidence);
  if (choice.is_ahead) choice.level = best_of(prices, shares->ahead, level_max).level;
  if (choice.level == 0) {
    choice.is_ahead = false;
    choice.level = best_of(prices, shares->around, level_max).level;
  }
  choice.is_proven = choice.level != 0;
  return choice;
}

// Whether the place is known so well that few pages have to be left out to be watched.
bool FetchTuner::is_sure(const Where& where, const Shares& shares, const Choice& choice) {
  const FetchEvidence& place = where.place->evidence;
  return (choice.is_ahead ? shares.ahead : shares.around)[choice.level] >= kSure ||
         (choice.is_ahead ? place.ahead : place.around).watched_within(choice.level) >=
             kWatchedEnough;
}

uint32_t FetchTuner::level_by_room(const FetchHistory& history, const Miss& miss) {
  if (!miss.is_roomy) return 0;
  const uint64_t left_out = history.counts.left_out.load(std::memory_order_relaxed);
  const uint64_t used = history.counts.left_out_used.load(std::memory_order_relaxed);
  if (!miss.is_all_fitting && left_out >= kGuessesTried && used * kGuessesAUse < left_out) return 0;
  const uint64_t misses = history.misses.load(std::memory_order_relaxed);
  const uint64_t most = miss.is_all_fitting ? kGuessMaxIfFitting : kGuessMax;
  const uint64_t doublings = std::min<uint64_t>(misses / kMissesADoubling, 8);
  const uint64_t may_take_ns = std::min(kGuessMin << doublings, most) * history.cost.miss_ns();
  const uint64_t pages = 1 + may_take_ns / history.cost.page_ns();
  OC_ASSERT(pages != 0);
  return std::min(static_cast<uint32_t>(std::bit_width(pages)) - 1, miss.level_max);
}

uint32_t FetchTuner::level_of(FetchHistory& history, const Miss& miss) {
  Shares shares;
  return std::max(choose_by_evidence(history, find(miss), miss.level_max, &shares).level,
                  level_by_room(history, miss));
}

bool FetchTuner::is_decided(const Miss& miss) {
  uint32_t slot = 0;
  Place& place = *find_or_replace(places_, place_key(miss), &slot);
  const uint32_t misses = place.misses.load(std::memory_order_relaxed);
  place.misses.store(misses + 1, std::memory_order_relaxed);
  return misses >= kMissesAtFirst && misses % kMissesADecision != 0 &&
         place.is_quiet.load(std::memory_order_relaxed) != 0;
}

FetchTuner::Choice FetchTuner::choose(FetchHistory& history, const Miss& miss) {
  OC_CHECK(miss.level_max <= kLevelMax);
  OC_CHECK(miss.page < miss.pages_end);
  OC_CHECK(miss.cache_id == history.id);
  note_miss(history, miss.page, miss.room_pages);
  const Where where = find(miss);
  // It stands for those that is_decided() has answered.
  const bool is_quiet = where.place->is_quiet.load(std::memory_order_relaxed) != 0;
  const uint64_t misses = is_quiet && !miss.is_roomy ? kMissesADecision : 1;
  history.misses.fetch_add(misses, std::memory_order_relaxed);
  Shares shares;
  Choice choice = choose_by_evidence(history, where, miss.level_max, &shares);
  // A miss that had no choice says nothing of its place.
  if (miss.level_max != 0)
    where.place->is_quiet.store(choice.level == 0 ? 1 : 0, std::memory_order_relaxed);
  if (const uint32_t guess = level_by_room(history, miss); guess > choice.level) choice = {guess};
  OC_CHECK(choice.level <= miss.level_max);
  history.counts.clusters[0].fetch_add(misses - 1, std::memory_order_relaxed);
  history.counts.clusters[choice.level].fetch_add(1, std::memory_order_relaxed);
  if (is_full_.load(std::memory_order_relaxed) != miss.is_full)
    is_full_.store(miss.is_full, std::memory_order_relaxed);
  const uint64_t chance = mix(seed_.fetch_add(0x9E3779B97F4A7C15ull, std::memory_order_relaxed));
  if (choice.level != 0)
    leave_out(history, miss, where, chance, is_sure(where, shares, choice), &choice);
  if (choice.level < miss.level_max) watch_outside(history, miss, where, chance, choice);
  if (miss.is_full) look_at_evictions(miss, choice, chance);
  return choice;
}

// One page of the cluster stays out: one that is watched already, or any. Others that are watched
// come in.
void FetchTuner::leave_out(FetchHistory& history, const Miss& miss, const Where& where,
                           uint64_t chance, bool is_sure, Choice* choice) {
  const uint64_t cluster = choice->pages(), first = choice->first(miss.page);
  const uint64_t begin = std::max(first, miss.pages_begin);
  const uint64_t end = std::min(first + cluster, miss.pages_end);
  for (uint64_t page = begin; page < end; ++page) {
    if (page == miss.page || !is_watched(miss.cache_id, page)) continue;
    if (!miss.absent.has(static_cast<int64_t>(page))) continue;
    if (choice->left_out == kNone && is_wanted(miss.cache_id, page, miss.room_pages))
      choice->left_out = page;
    else
      end_early(history, page, miss.room_pages, chance);
  }
  if (choice->left_out != kNone) return;
  if ((chance >> 32) % 8 >= std::min<uint64_t>(cluster, is_sure ? 2 : 8)) return;
  const uint64_t page = first + chance % cluster;
  if (page == miss.page || page < begin || page >= end ||
      !miss.absent.has(static_cast<int64_t>(page)))
    return;
  choice->left_out = page;
  watch(history, miss, where, page, true, choice->is_ahead);
}

// A page of the next ring, or of one further out: pairs of pages may be worthless, and clusters of
// 64 not. Around the miss, or as far ahead of it.
void FetchTuner::watch_outside(FetchHistory& history, const Miss& miss, const Where& where,
                               uint64_t chance, const Choice& choice) {
  OC_CHECK(choice.level < miss.level_max);
  const uint32_t further = miss.level_max - choice.level - 1;
  const bool is_next = further == 0 || (chance >> 16) % 4 != 0;
  const uint32_t ring =
      choice.level + 1 + (is_next ? 0 : 1 + static_cast<uint32_t>((chance >> 20) % further));
  OC_ASSERT(ring <= miss.level_max);
  const uint64_t half = uint64_t{1} << (ring - 1);
  const bool is_ahead = (chance >> 28) % 2 != 0;
  const uint64_t beside = is_ahead ? miss.page + half : miss.page ^ half;
  const uint64_t page = outside_page(miss.cache_id, beside, ring);
  const uint64_t first = choice.first(miss.page);
  if (page == miss.page || (page >= first && page - first < choice.pages())) return;
  if (page < miss.pages_begin || page >= miss.pages_end) return;
  if (is_wanted(miss.cache_id, page, miss.room_pages)) return;
  // Last: of a buffer's pages the kernel is asked.
  if (miss.absent.has(static_cast<int64_t>(page)))
    watch(history, miss, where, page, false, is_ahead);
}

// `is_ahead`: chosen from pages ahead, of which those around are another kind of sample: who reads
// pieces from their beginning uses all of the one, and half of the other.
void FetchTuner::watch(FetchHistory& history, const Miss& miss, const Where& where, uint64_t page,
                       bool is_left_out, bool is_ahead) {
  Note note{0, where.place_slot, where.site_slot, WatchedPages::Rings::between(miss.page, page),
            is_left_out};
  if (is_ahead) note.rings.around = 0;
  OC_CHECK(!note.rings.is_none());
  for_each_evidence(history, note,
                    [](UseEvidence& evidence, uint32_t ring) { evidence.watch(ring); });
  if (is_left_out) history.counts.left_out.fetch_add(1, std::memory_order_relaxed);
  watched_.watch(miss.cache_id, page, note);  // last: from now on another thread may end it
}

uint64_t FetchTuner::watched_for(const Note& note, uint64_t room_pages) const {
  if (note.rings.is_none()) return room_pages / kBackWithin;
  return is_full_.load(std::memory_order_relaxed) ? room_pages / kUsedWithin : room_pages;
}

// A watched page comes in unasked. Its watch counts if it lasted long enough; one that lasted for a
// part of that counts with as much probability.
void FetchTuner::end_early(FetchHistory& history, uint64_t page, uint64_t room_pages,
                           uint64_t chance) {
  Note note;
  if (!watched_.end(history.id, page, &note)) return;
  if (mix(chance + page) % (watched_for(note, room_pages) + 1) < watched_.age_of(note)) return;
  if (note.rings.is_none()) {
    if (!note.is_extra) evictions_.forget();
    return;
  }
  for_each_evidence(history, note,
                    [](UseEvidence& evidence, uint32_t ring) { evidence.unwatch(ring); });
  if (note.is_extra) history.counts.left_out.fetch_sub(1, std::memory_order_relaxed);
}

void FetchTuner::watch_eviction(uint64_t cache_id, uint64_t page, bool has_left) {
  Note note;
  note.is_extra = !has_left;
  watched_.watch(cache_id, page, note);
}

// Looks whether a page of the sample has left. If so, another takes its place: one that comes in
// now, as chance will have it.
void FetchTuner::look_at_evictions(const Miss& miss, const Choice& choice, uint64_t chance) {
  EvictionWorth::Page* sampled = evictions_.next();
  if (sampled == nullptr) return;
  const uint64_t now = watched_.now();
  const uint64_t cache = sampled->cache.load(std::memory_order_relaxed);
  const uint64_t before = sampled->page.load(std::memory_order_relaxed);
  if (cache == miss.cache_id + 1 && before < miss.pages_end && before >= miss.pages_begin) {
    const bool has_left = miss.absent.has(static_cast<int64_t>(before));
    watch_eviction(miss.cache_id, before, has_left);
    if (has_left) evictions_.note_gone(), sampled->cache.store(0, std::memory_order_relaxed);
  }
  if (sampled->cache.load(std::memory_order_relaxed) != 0 &&
      now - sampled->since.load(std::memory_order_relaxed) <= kStays * miss.room_pages)
    return;
  const uint64_t page = choice.first(miss.page) + (chance >> 8) % choice.pages();
  const bool comes_in =
      page == miss.page || (page != choice.left_out && page >= miss.pages_begin &&
                            page < miss.pages_end && miss.absent.has(static_cast<int64_t>(page)));
  sampled->cache.store(comes_in ? miss.cache_id + 1 : 0, std::memory_order_relaxed);
  sampled->page.store(page, std::memory_order_relaxed);
  sampled->since.store(now, std::memory_order_relaxed);
  if (comes_in) watch_eviction(miss.cache_id, page, false);
}

void FetchTuner::note_unasked(FetchHistory& history, uint64_t page, uint64_t room_pages) {
  if (!is_watched(history.id, page)) return;
  const Note note = watched_.note_of(history.id, page);
  if (note.rings.is_none() && note.is_extra) return;  // of what leaves, and it has not left
  end_early(history, page, room_pages, mix(seed_.load(std::memory_order_relaxed)));
}

// A page that is missed so late that its cluster would have been evicted was of no use.
void FetchTuner::note_miss(FetchHistory& history, uint64_t page, uint64_t room_pages) {
  Note note;
  if (!watched_.end(history.id, page, &note)) return;
  const bool is_soon = !is_over(note, room_pages);
  if (note.rings.is_none()) {
    if (note.is_extra) evictions_.note_gone();  // and has come back before anybody looked
    if (is_soon) evictions_.note_back();
    return;
  }
  if (!is_soon) return;
  for_each_evidence(history, note,
                    [](UseEvidence& evidence, uint32_t ring) { evidence.use(ring); });
  if (note.is_extra) history.counts.left_out_used.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace outcore::prefetch
