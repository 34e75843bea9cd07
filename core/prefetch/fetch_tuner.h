// FetchTuner: chooses how many pages come in with a miss: a cluster of 1 to 128 pages, aligned
// around the page, or ahead of it, beginning with it. A program that touches an extent here and
// there gains by clusters around; one that reads pieces from their beginning, wherever they lie,
// gains by clusters ahead. It learns by place in the data (an extent of 2 MiB) and by place in the
// code (the fault site). Any thread; the fault path: no allocation, no lock.
//
// A pager cannot see hits, and so not whether a page that came in with a cluster was ever used. It
// can see misses. So some pages that could have come in are left out, at random, and watched: the
// share of them that is missed later estimates, without bias, the share of the others that is used.
// Watched pages are
// - one page of most clusters, somewhere in it; and
// - a page just outside of the cluster, which costs nothing: it would not have come in anyway. So
//   it
//   shows when a cluster is too small, as the first kind shows when one is too large. If another
//   cluster would bring it in, it is left out of that one, too. It is a page of a ring around the
// miss, or ahead of it. Watched pages ahead of a miss are evidence for clusters ahead; only pages
// that were drawn from a whole ring are evidence for clusters around. Such a page counts as used if
// it is missed before half as many pages have come in as memory has. If a cluster brings it in
// before that, its watch counts for the part of the time that it lasted. (If such watches were
// dropped, mostly used pages would be counted, and every place would look well used.)
//
// Evidence is kept for the extent and site together, for the site, and for the whole cache. What is
// known on one level is the prior of the one before (so a new extent begins as others did that the
// same code touched). A ring (use_evidence.h) is brought in as long as
//
//     pages used × time of a miss  >  pages × (time of a page + what it pushes out)
//
// with both times measured (FetchCost), and what is pushed out as well (EvictionWorth): where
// touches are spread evenly over more data than memory, a page that is brought in with others is
// used as often as the one that leaves for it, and nothing is gained.
//
// While there is room this does not apply: a page that pushes out nothing costs only its bandwidth,
// and what a program reads first it usually reads completely. Then a cluster may cost twice the
// time of the miss it comes with (more as misses go on; much more if the rest of the store fits): a
// program that needs one page waits at most three times as long, and one that needs all of them a
// small part of the time. That is the bound of renting until one has paid the price of buying
// (Karlin et al., "Competitive snoopy caching", Algorithmica 1988).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "core/os/address_space.h"
#include "core/prefetch/eviction_worth.h"
#include "core/prefetch/fetch_cost.h"
#include "core/prefetch/stream_table.h"
#include "core/prefetch/use_evidence.h"
#include "core/prefetch/watched_pages.h"
#include "outcore/metrics.h"
#include "outcore/result.h"

namespace outcore::prefetch {

// FetchCounts: which clusters were chosen for one cache, and how many left-out pages were used.
struct FetchCounts {
  // How many clusters of 2^k pages were chosen.
  std::array<std::atomic<uint64_t>, UseEvidence::kRings> clusters{};
  // Of the pages left out of clusters: how many, and how many were asked for.
  std::atomic<uint64_t> left_out{0}, left_out_used{0};
  FetchMetrics metrics() const;
  void clear();  // REQUIRES: no other thread counts meanwhile
};

// FetchEvidence: how often pages around misses are used, and pages ahead of them.
struct FetchEvidence {
  UseEvidence around, ahead;
  void clear() { around.clear(), ahead.clear(); }
};

// FetchHistory: what is known of one cache. The caller owns the counts.
struct FetchHistory {
  explicit FetchHistory(FetchCounts& counted);
  // With a given id, for tests: random choices depend on it, and a test must be repeatable.
  FetchHistory(FetchCounts& counted, uint64_t own_id) : id(own_id), counts(counted) {}

  const uint64_t id;  // unique in this process, over all time
  FetchCost cost;
  FetchEvidence evidence;
  std::atomic<uint64_t> misses{0};
  FetchCounts& counts;
};

class FetchTuner {
 public:
  static constexpr uint32_t kLevelMax = UseEvidence::kRings - 1;  // 128 pages
  static constexpr uint64_t kNone = UINT64_MAX;
  static constexpr uint64_t kPlaces = WatchedPages::kPlacesMax, kSites = WatchedPages::kSitesMax;

  struct Miss {
    uint64_t cache_id = 0, page = 0, extent = 0;  // cache_id: FetchHistory::id
    uint64_t site = 0;                            // where in the code; 0: unknown
    uint32_t level_max = 0;                       // clusters have at most 2^level_max pages
    uint64_t pages_begin = 0, pages_end = 0;      // nothing is watched outside
    StreamTable::Pages absent{};
    uint64_t room_pages = 0;      // of the whole memory
    bool is_full = false;         // pages leave for those that come in
    bool is_roomy = false;        // there is room for guesses that push out nothing
    bool is_all_fitting = false;  // and what is missing of the store fits, too
  };
  struct Choice {
    uint32_t level = 0;     // the cluster has 2^level pages
    bool is_ahead = false;  // and begins with the page; otherwise it is aligned, and contains it
    uint64_t left_out = kNone;  // a page of the cluster that is not to come in
    bool is_proven = false;     // by evidence; otherwise there was room for a guess

    uint64_t pages() const { return uint64_t{1} << level; }
    uint64_t first(uint64_t page) const { return is_ahead ? page : page & ~(pages() - 1); }
  };

  Status allocate();

  // A shortcut to be asked first where there is no room for guesses: true if pages of this place
  // have come in alone for long, so that this one does, too, without a choice or a watched page.
  bool is_decided(const Miss& miss);
  // Chooses for a miss that belongs to no stream. The caller reports afterwards what it cost
  // (FetchHistory::cost).
  Choice choose(FetchHistory& history, const Miss& miss);
  // How much a useful readahead saves, as a number of useless ones that would cost as much:
  // StreamTable::Miss::gain. is_full: pages leave for those that come in.
  double gain_ahead(const FetchCost& cost, bool is_full) const;
  // `pages` pages leave, of which `written` are written back first.
  void note_leaving(uint32_t pages, uint32_t written) { evictions_.note_leaving(pages, written); }
  // Pages have come in, by a miss or ahead of it. This is the clock by which watches end.
  void note_brought_in(uint32_t pages) { watched_.note_brought_in(pages); }
  // The level that choose() would choose; changes nothing.
  uint32_t level_of(FetchHistory& history, const Miss& miss);
  // To be called for any other miss of a page, which may be a watched one.
  void note_miss(FetchHistory& history, uint64_t page, uint64_t room_pages);
  // A page that may be watched has come in without a miss.
  void note_unasked(FetchHistory& history, uint64_t page, uint64_t room_pages);

  // Whether the page is watched; and whether the watch would still count if it were missed now.
  bool is_watched(uint64_t cache_id, uint64_t page) const { return watched_.has(cache_id, page); }
  bool is_wanted(uint64_t cache_id, uint64_t page, uint64_t room_pages) const {
    return is_watched(cache_id, page) && !is_over(watched_.note_of(cache_id, page), room_pages);
  }

  uint64_t metadata_bytes() const {
    return places_.touched() + sites_.touched() + watched_.touched();
  }

 private:
  // Evidence of one place; one that finds no free slot of its set takes over another's.
  struct Place {
    std::atomic<uint64_t> key;  // 0: nobody's
    FetchEvidence evidence;
    std::atomic<uint32_t> misses;    // since the place came here
    std::atomic<uint32_t> is_quiet;  // pages came in alone when that was last decided
  };
  using Note = WatchedPages::Note;
  // Where the evidence of a miss is kept.
  struct Where {
    uint32_t place_slot = 0, site_slot = 0;
    Place* place = nullptr;
    Place* site = nullptr;
  };

  static uint64_t place_key(const Miss& miss);
  Where find(const Miss& miss);
  Place* find_or_replace(os::Table<Place>& table, uint64_t key, uint32_t* slot) const;
  // Of a miss, and of a page that comes along, with what it pushes out.
  struct Prices {
    double miss_ns = 0, page_ns = 0;
  };
  Prices prices(const FetchCost& cost) const;
  // A cluster, and the time that it saves.
  struct Gain {
    uint32_t level = 0;
    double ns = 0;
  };
  static Gain best_of(const Prices& prices, const UseEvidence::Shares& shares, uint32_t level_max);
  // How much of each ring is believed to be used.
  struct Shares {
    UseEvidence::Shares around{}, ahead{};
    void refine(const FetchEvidence& evidence) {
      evidence.around.refine(around);
      evidence.ahead.refine(ahead);
    }
  };
  Choice choose_by_evidence(const FetchHistory& history, const Where& where, uint32_t level_max,
                            Shares* shares) const;
  static bool is_sure(const Where& where, const Shares& shares, const Choice& choice);
  static uint32_t level_by_room(const FetchHistory& history, const Miss& miss);
  void leave_out(FetchHistory& history, const Miss& miss, const Where& where, uint64_t chance,
                 bool is_sure, Choice* choice);
  void watch_outside(FetchHistory& history, const Miss& miss, const Where& where, uint64_t chance,
                     const Choice& choice);
  void watch(FetchHistory& history, const Miss& miss, const Where& where, uint64_t page,
             bool is_left_out, bool is_ahead);
  void end_early(FetchHistory& history, uint64_t page, uint64_t room_pages, uint64_t chance);
  void look_at_evictions(const Miss& miss, const Choice& choice, uint64_t chance);
  void watch_eviction(uint64_t cache_id, uint64_t page, bool has_left);
  uint64_t watched_for(const Note& note, uint64_t room_pages) const;
  bool is_over(const Note& note, uint64_t room_pages) const {
    return watched_.age_of(note) > watched_for(note, room_pages);
  }
  // f(evidence, ring) for all that is kept of a watched page.
  template <typename F>
  void for_each_evidence(FetchHistory& history, const Note& note, const F& f) {
    for (FetchEvidence* evidence :
         {&places_[note.place].evidence, &sites_[note.site].evidence, &history.evidence}) {
      if (note.rings.around != 0) f(evidence->around, note.rings.around);
      if (note.rings.ahead != 0) f(evidence->ahead, note.rings.ahead);
    }
  }

  os::Table<Place> places_;
  os::Table<Place> sites_;
  WatchedPages watched_;
  EvictionWorth evictions_;
  std::atomic<bool> is_full_{false};  // at the last miss that was decided
  std::atomic<uint64_t> seed_{0};
};

}  // namespace outcore::prefetch
