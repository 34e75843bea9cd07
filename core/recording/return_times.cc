#include "core/recording/return_times.h"

#include <algorithm>
#include <cmath>

#include "core/base/assert.h"

namespace outcore::recording {
namespace {

double lower_bound_of(size_t bucket) {
  return bucket == 0 ? 0 : std::exp2((static_cast<double>(bucket) - 1) / 2);
}
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

}  // namespace

size_t ReturnTimes::bucket_of(double age) {
  OC_CHECK(age >= 0);
  if (age < 1) return 0;
  return std::min(kBuckets - 1, static_cast<size_t>(2 * std::log2(age)) + 1);
}

void ReturnTimes::note_end(Class* of, double age) {
  of->ended[bucket_of(age)] += 1;
  of->count += 1;
  if (of->count < kCountMax) return;
  for (size_t i = 0; i < kBuckets; ++i) {
    of->returned[i] /= 2;
    of->ended[i] /= 2;
  }
  of->count /= 2;
}

void ReturnTimes::note_return(uint32_t page_class, double age) {
  OC_CHECK(page_class < kClasses);
  classes_[page_class].returned[bucket_of(age)] += 1;
  note_end(&classes_[page_class], age);
}

void ReturnTimes::note_gone(uint32_t page_class, double age) {
  OC_CHECK(page_class < kClasses);
  note_end(&classes_[page_class], age);
}

void ReturnTimes::begin() {
  for (Row& row : out_) row.fill(0);
}

void ReturnTimes::still_out(uint32_t page_class, double age) {
  OC_CHECK(page_class < kClasses);
  out_[page_class][bucket_of(age)] += kOutWeight;
}

void ReturnTimes::end() {
  for (uint32_t c = 0; c < kClasses; ++c) {
    Class& known = classes_[c];
    double at_risk = 0;
    for (size_t i = kBuckets; i-- > 0;) {
      at_risk += known.ended[i] + out_[c][i];
      OC_ASSERT(known.returned[i] <= at_risk);
      known.odds[i] = at_risk == 0 ? 0 : known.returned[i] / at_risk;
    }
    known.is_known = known.count >= 1;
  }
}

double ReturnTimes::draw(uint32_t page_class, std::mt19937_64& random) const {
  OC_CHECK(page_class < kClasses);
  const Class& known = classes_[page_class];
  if (!known.is_known) return kNever;
  for (size_t i = 0; i < kBuckets; ++i) {
    if (known.odds[i] == 0 || uniform(random) >= known.odds[i]) continue;
    const double least = lower_bound_of(i);
    return least + uniform(random) * (lower_bound_of(i + 1) - least);
  }
  return kNever;
}

}  // namespace outcore::recording
