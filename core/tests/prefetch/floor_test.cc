// The floor of readahead: whatever programs do, readahead takes at most a tenth more time than no
// readahead, and reads at most a fifth more. Only a few readers that wait for the device, and whose
// time it halves, may read more: up to four times the bytes.
//
// The model: readers, each with a StreamTable, share one memory that is too small. It evicts the
// oldest page, or the least recently used one. Advised pages are filled some reads later, as by
// prefetch threads; pages that a reader may fill along are filled at once.
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/prefetch/stream_table.h"
#include "tests/share.h"

namespace outcore::prefetch {
namespace {

struct Random {
  uint64_t state;
  uint64_t next() {
    state += 0x9E3779B97F4A7C15ull;
    uint64_t x = state;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
  }
  uint64_t below(uint64_t n) { return next() % n; }
};

constexpr uint32_t kPages = 2200;  // of the file

struct Setting {
  uint32_t room = 0;  // of the memory, in pages
  unsigned readers = 1;
  bool is_lru = false;
  bool has_readahead = false;
  double gain = StreamCredit::kGainMost;
  unsigned delay = 0;  // reads until a hint is carried out
};

// Plain arrays: millions of reads are simulated.
class Memory {
 public:
  explicit Memory(const Setting& setting) : setting_(setting) {
    for (unsigned i = 0; i < setting.readers && setting.has_readahead; ++i)
      tables_.push_back(std::make_unique<Table>());
    older_[kPages] = newer_[kPages] = kPages;
  }

  void read(unsigned reader, uint64_t page) {
    ++reads_;
    while (!hints_.empty() && (hints_.front().due <= reads_ || hints_.size() > kHintsMax)) {
      const Hint hint = hints_.front();
      hints_.pop_front();
      bring_in(hint.page);
    }
    if (use(page)) return;
    ++misses_;
    bring_in(page);
    if (!setting_.has_readahead) return;
    const uint32_t window = std::min(512U, setting_.room / 3 / setting_.readers);
    if (window < 2) return;
    const StreamTable::Advice ahead = tables_[reader]->table.on_miss({.cache_id = 1,
                                                                      .page = page,
                                                                      .page_end = kPages,
                                                                      .window_max = window,
                                                                      .along_max = kAlongMax,
                                                                      .readers = setting_.readers,
                                                                      .gain = setting_.gain,
                                                                      .has_hints = !hints_.empty(),
                                                                      .absent = {this, is_absent}});
    for (uint32_t i = 1; i <= ahead.along; ++i) {
      const uint64_t next = page + static_cast<uint64_t>(ahead.stride) * i;
      if (next >= kPages || is_in_[next]) break;
      bring_in(next);
    }
    for (uint32_t r = 0; r < ahead.run_count; ++r)
      for (uint32_t i = 0; i < ahead.run[r].count; ++i) {
        const uint64_t next =
            ahead.run[r].first_page + static_cast<uint64_t>(ahead.run[r].stride) * i;
        if (next < kPages)
          hints_.push_back({next, reads_ + setting_.delay});
        else
          ADD_FAILURE() << "advice past the file: page " << next;
      }
  }

  uint64_t brought_in() const { return brought_in_; }
  uint64_t misses() const { return misses_; }

 private:
  static constexpr uint32_t kAlongMax = 31;
  static constexpr size_t kHintsMax = 16 * 32;
  struct Table {
    StreamTable table{};
  };
  struct Hint {
    uint64_t page, due;
  };

  static bool is_absent(const void* of, uint64_t page) {
    return !static_cast<const Memory*>(of)->is_in_[page];
  }
  bool use(uint64_t page) {
    if (!is_in_[page]) return false;
    if (setting_.is_lru) {
      unlink(page);
      link_newest(page);
    }
    return true;
  }
  void bring_in(uint64_t page) {
    if (is_in_[page]) return;
    ++brought_in_;
    if (count_ == setting_.room) {
      const uint64_t oldest = newer_[kPages];
      unlink(oldest);
      is_in_[oldest] = false;
    } else {
      ++count_;
    }
    link_newest(page);
    is_in_[page] = true;
  }
  void unlink(uint64_t page) {
    older_[newer_[page]] = older_[page];
    newer_[older_[page]] = newer_[page];
  }
  void link_newest(uint64_t page) {
    newer_[page] = kPages;
    older_[page] = older_[kPages];
    newer_[older_[kPages]] = static_cast<uint32_t>(page);
    older_[kPages] = static_cast<uint32_t>(page);
  }

  const Setting setting_;
  std::vector<std::unique_ptr<Table>> tables_;
  bool is_in_[kPages] = {};
  // A ring by age, through kPages: behind that the newest, before it the oldest.
  uint32_t older_[kPages + 1] = {}, newer_[kPages + 1] = {};
  uint32_t count_ = 0;
  std::deque<Hint> hints_;
  uint64_t reads_ = 0, misses_ = 0, brought_in_ = 0;
};

// The next page of a reader; `state` remembers its position.
using Program = std::function<uint64_t(Random& random, uint64_t* state, uint64_t pages)>;

struct Case {
  const char* name;
  Program next;
};

// Runs of a few pages at random places.
Program runs(uint64_t least, uint64_t most) {
  return [=](Random& random, uint64_t* state, uint64_t pages) {
    uint64_t left = *state >> 40, page = *state & ((uint64_t{1} << 40) - 1);
    if (left == 0) {
      left = least + random.below(most - least + 1);
      page = random.below(pages);
    }
    *state = (left - 1) << 40 | (page + 1) % pages;
    return page;
  };
}

const Case kCases[] = {
    {"random", [](Random& r, uint64_t*, uint64_t pages) { return r.below(pages); }},
    {"skewed",
     [](Random& r, uint64_t*, uint64_t pages) { return r.below(1 + r.below(1 + r.below(pages))); }},
    {"round and round",
     [](Random&, uint64_t* state, uint64_t pages) { return (*state)++ % pages; }},
    {"with gaps",
     [](Random& r, uint64_t* state, uint64_t pages) { return (*state += 1 + r.below(4)) % pages; }},
    {"runs of 3 to 6", runs(3, 6)},
    {"runs of 5 to 12", runs(5, 12)},
    {"runs of 8 to 60", runs(8, 60)},
    {"as a search of a graph",
     [](Random& r, uint64_t* state, uint64_t pages) {
       if (r.below(3) != 0) return r.below(pages);
       return (*state += r.below(3)) % pages;
     }},
};

struct Cost {
  uint64_t pages = 0;  // brought in
  uint64_t time = 0;   // in units of the time of a page that is read along with others
};

Cost cost_of(const Case& what, const Setting& setting, uint64_t reads) {
  Memory memory(setting);
  Random random{setting.readers + 7};
  std::vector<uint64_t> state(setting.readers);
  for (unsigned i = 0; i < setting.readers; ++i) state[i] = kPages / setting.readers * i;
  for (uint64_t i = 0; i < reads; ++i) {
    const auto reader = static_cast<unsigned>(random.below(setting.readers));
    memory.read(reader, what.next(random, &state[reader], kPages));
  }
  // The cost of a miss: for one reader that waits for the device, and for many that share its
  // processors.
  const uint64_t miss = std::max(24 / setting.readers, 4U);
  return {memory.brought_in(), memory.brought_in() + memory.misses() * (miss - 1)};
}

// `where`: what is compared.
void expect_it_pays(const Case& what, Setting setting, const Cost& none, uint64_t reads,
                    std::string where) {
  setting.has_readahead = true;
  const Cost with = cost_of(what, setting, reads);
  where += ": " + std::to_string(with.pages) + " : " + std::to_string(none.pages) +
           " pages, time " + std::to_string(with.time) + " : " + std::to_string(none.time);
  const uint64_t slack = 32 * setting.readers;
  EXPECT_LE(with.time, none.time + none.time / 10 + slack) << where;
  const bool pays = 2 * with.time <= none.time;
  const uint64_t more =
      pays || setting.readers <= StreamCredit::kFewReaders ? 3 * none.pages : none.pages / 5;
  EXPECT_LE(with.pages, none.pages + more + slack) << where;
}

// OUTCORE_TEST_SHARE=N: one setting in N.
TEST(Floor, ReadaheadIsNeverMuchSlowerThanNoneAndReadsLittleMoreUnlessItPays) {
  constexpr uint64_t kReads = 20'000;
  uint64_t count = 0, compared = 0;
  for (const Case& what : kCases)
    for (const unsigned readers : {1u, 2u, 16u, 96u, 192u})
      for (const uint32_t room : {550u, 1100u, 2100u})
        for (const bool is_lru : {false, true}) {
          // One of each N, and not always that of the same place in these loops.
          if (Random{count++}.below(scene::one_part_in()) != 0) continue;
          Setting setting{room, readers, is_lru, false, StreamCredit::kGainMost, 0};
          const Cost none = cost_of(what, setting, kReads);  // there are no hints to be late
          const std::string where = std::string(what.name) + ", " + std::to_string(readers) +
                                    " readers, room for " + std::to_string(room) +
                                    (is_lru ? ", lru" : ", fifo") + ", delay ";
          for (const unsigned delay : {0u, 100u}) {
            setting.delay = delay;
            expect_it_pays(what, setting, none, kReads, where + std::to_string(delay));
            ++compared;
          }
          setting.gain = StreamCredit::kGainLeast;
          expect_it_pays(what, setting, none, kReads, where + "100, little gain");
        }
  EXPECT_GT(compared, 0u);
}

}  // namespace
}  // namespace outcore::prefetch
