// ReuseDistances: how much of other pages is touched between two touches of a page: the stack
// distance of Mattson et al. (IBM Systems Journal 1970), in bytes. A page that is touched the first
// time has none, and is counted apart.
//
// Exact for the touches that it gets. Of a sample of the pages distances and counts are the
// sample's times its size (SHARDS: Waldspurger et al., FAST 2015). One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <unordered_map>
#include <vector>

#include "core/base/json.h"

namespace outcore::recording {

class ReuseDistances {
 public:
  // The first: no other page. The i-th: 4 KiB * 2^(i-1) or more, less than 4 KiB * 2^i.
  static constexpr size_t kBuckets = 48;
  static constexpr size_t kPagesMax = 1
                                      << 16;  // that are remembered: of more a sample is looked at

  static size_t bucket_of(uint64_t bytes);

  // Touches are of one in so many pages, or more. REQUIRES: a power of two.
  void sample_one_in(uint64_t one_in);
  uint64_t sampled_one_in() const { return one_in_; }

  // `page`: as MissCurve::note_fill() has it. Those that are not in the sample are passed over.
  // REQUIRES: page_bytes is a multiple of 4 KiB, and not 0.
  void note_touch(uint64_t page, uint64_t page_bytes);
  // Forgets pages that are gone: they lie between no two touches any more.
  template <typename Stays>
  void keep(const Stays& stays) {
    for (auto it = pages_.begin(); it != pages_.end();)
      it = stays(it->first) ? std::next(it) : forget(it);
  }

  // Of all pages, estimated from the sample.
  uint64_t first_touches() const { return first_; }
  const std::array<uint64_t, kBuckets>& touches_again() const { return again_; }
  // `first`, `again` (up to the last that is not 0), `sampled_one_in`.
  base::Json to_json() const;
  bool is_valid() const;

 private:
  // Moments are numbered from 1; each page has a moment of its own, that of its last touch.
  static constexpr uint32_t kMomentsMax = 2 * kPagesMax;
  struct Touch {
    uint32_t moment = 0;
    uint64_t bytes = 0;
  };
  using Pages = std::unordered_map<uint64_t, Touch>;

  Pages::iterator forget(Pages::iterator page);
  void number_anew();
  void add(uint32_t moment, uint64_t bytes);  // modulo 2^64: also takes away
  uint64_t bytes_until(uint32_t moment) const;

  Pages pages_;
  // By moment, the bytes of the page whose last touch it was, as sums (Fenwick 1994).
  std::vector<uint64_t> sums_;
  uint32_t last_moment_ = 0;
  uint64_t bytes_ = 0;  // of all pages
  uint64_t one_in_ = 1;
  uint64_t first_ = 0;
  std::array<uint64_t, kBuckets> again_{};
};

}  // namespace outcore::recording
