#include "core/prefetch/touches.h"

#include <algorithm>
#include <utility>

#include "core/base/assert.h"

namespace outcore::prefetch {
namespace {

// Seven bits a byte, the lowest first; the eighth says that more follow.
void append_number(std::string* into, uint64_t number) {
  for (; number >= 0x80; number >>= 7) into->push_back(static_cast<char>((number & 0x7f) | 0x80));
  into->push_back(static_cast<char>(number));
}

// Near numbers, of either sign, become small ones: 0, -1, 1, -2, …
uint64_t fold_sign(int64_t distance) {
  const auto doubled = static_cast<uint64_t>(distance) << 1;
  return distance < 0 ? ~doubled : doubled;
}
int64_t unfold_sign(uint64_t folded) {
  const auto half = static_cast<int64_t>(folded >> 1);
  return (folded & 1) != 0 ? ~half : half;
}

void append_run(std::string* into, const TouchRun& run, uint32_t end_before) {
  OC_CHECK(run.units != 0);
  OC_CHECK(run.parts != 0);
  OC_CHECK(run.first < kTouchUnitEnd && run.units <= kTouchUnitEnd - run.first);
  const bool is_whole = run.parts == kAllParts;
  OC_CHECK(is_whole || run.units == 1);
  const uint64_t distance = fold_sign(int64_t{run.first} - int64_t{end_before});
  append_number(into, distance << 1 | (is_whole ? 1 : 0));
  if (is_whole) {
    append_number(into, run.units - 1);
    return;
  }
  into->push_back(static_cast<char>(run.parts & 0xff));
  into->push_back(static_cast<char>(run.parts >> 8));
}

}  // namespace

std::string encode_touches(std::span<const Touch> touches) {
  std::string bytes;
  uint32_t end_before = 0;
  for (size_t i = 0; i < touches.size();) {
    TouchRun run{touches[i].unit, 1, touches[i].parts};
    for (++i; run.parts == kAllParts && i < touches.size() && touches[i].parts == kAllParts &&
              touches[i].unit == run.first + run.units;
         ++i)
      ++run.units;
    append_run(&bytes, run, end_before);
    end_before = run.first + run.units;
  }
  return bytes;
}

bool TouchReader::read_number(uint64_t* number) {
  constexpr unsigned kBitsMax = 35;  // a unit's number, its sign, and whether it is whole: 32
  *number = 0;
  for (unsigned shift = 0; shift < kBitsMax; shift += 7) {
    if (at_ == bytes_.size()) return false;
    const auto byte = static_cast<unsigned char>(bytes_[at_++]);
    *number |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool TouchReader::read_run(TouchRun* run) {
  uint64_t head = 0, more = 0;
  if (!read_number(&head)) return false;
  uint16_t parts = kAllParts;
  if ((head & 1) != 0) {
    if (!read_number(&more)) return false;
  } else {
    if (bytes_.size() - at_ < 2) return false;
    const auto byte = [this] { return static_cast<unsigned char>(bytes_[at_++]); };
    const unsigned low = byte(), high = byte();
    parts = static_cast<uint16_t>(low | high << 8);
    if (parts == 0) return false;
  }
  const int64_t first = int64_t{end_} + unfold_sign(head >> 1);
  if (first < 0 || first >= int64_t{kTouchUnitEnd}) return false;
  if (more >= kTouchedUnitsMax - units_) return false;
  if (static_cast<uint64_t>(first) + more >= kTouchUnitEnd) return false;
  *run = {static_cast<uint32_t>(first), static_cast<uint32_t>(more + 1), parts};
  return true;
}

bool TouchReader::next(TouchRun* run) {
  OC_CHECK(run != nullptr);
  OC_ASSERT(at_ <= bytes_.size());
  if (is_broken_ || at_ == bytes_.size()) return false;
  TouchRun read;
  is_broken_ = units_ == kTouchedUnitsMax || !read_run(&read);
  if (is_broken_) return false;
  units_ += read.units;
  end_ = read.first + read.units;
  OC_CHECK(units_ <= kTouchedUnitsMax);
  *run = read;
  return true;
}

bool are_touches(std::string_view bytes) {
  TouchReader reader(bytes);
  for (TouchRun run; reader.next(&run);) continue;
  return !reader.is_broken();
}

std::vector<Touch> decode_touches(std::string_view bytes) {
  std::vector<Touch> touches;
  TouchReader reader(bytes);
  for (TouchRun run; reader.next(&run);)
    for (uint32_t i = 0; i < run.units; ++i) touches.push_back({run.first + i, run.parts});
  OC_CHECK(!reader.is_broken());
  OC_CHECK(touches.size() <= kTouchedUnitsMax);
  return touches;
}

std::string_view cut_touches(std::string_view bytes, size_t bytes_max) {
  if (bytes.size() <= bytes_max) return bytes;
  size_t kept = 0;
  TouchReader reader(bytes);
  for (TouchRun run; reader.next(&run) && reader.position() <= bytes_max;) kept = reader.position();
  OC_CHECK(kept <= bytes_max);
  return bytes.substr(0, kept);
}

std::vector<Touch> join_touches(std::vector<Touch> newer, std::string_view older) {
  std::vector<std::pair<uint32_t, size_t>> places;  // of the newer: unit, index
  for (size_t i = 0; i < newer.size(); ++i) places.emplace_back(newer[i].unit, i);
  std::sort(places.begin(), places.end());
  TouchReader reader(older);
  for (TouchRun run; reader.next(&run);)
    for (uint32_t unit = run.first; unit < run.first + run.units; ++unit) {
      const auto found = std::lower_bound(places.begin(), places.end(), std::pair(unit, size_t{0}));
      if (found != places.end() && found->first == unit) {
        Touch& both = newer[found->second];
        both.parts = static_cast<uint16_t>(both.parts | run.parts);
      } else if (newer.size() < kTouchedUnitsMax) {
        newer.push_back({unit, run.parts});
      }
    }
  if (newer.size() > kTouchedUnitsMax) newer.resize(kTouchedUnitsMax);
  return newer;
}

}  // namespace outcore::prefetch
