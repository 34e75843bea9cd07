#include "core/base/error.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace outcore::base {

Error system_error(int code, const std::string& attempted, const std::string& remedy) {
  const int positive = std::abs(code);
  char buffer[128];
  const char* reason = ::strerror_r(positive, buffer, sizeof buffer);
  return {positive, attempted + ": " + reason + (remedy.empty() ? "" : "; " + remedy)};
}

namespace {

// Letters that are added, left out, replaced, or swapped with their neighbour.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::string_view* candidates, size_t count) {
  std::string best;
  size_t best_distance = (word.size() + 3) / 4 + 1;  // others are other words
  for (size_t i = 0; i < count; ++i) {
    const size_t distance = edit_distance(word, candidates[i]);
    if (distance < best_distance) best_distance = distance, best = candidates[i];
  }
  return best;
}

}  // namespace outcore::base
