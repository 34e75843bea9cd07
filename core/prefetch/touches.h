// Touches: which parts of a file were needed, in the order in which they were first needed, and
// their form in a file. Plain values; not on the fault path.
//
// The form (docs/reference/learn-format.md): a run of neighbouring units that were needed whole has
// two or three bytes; a unit of which some system pages were needed has up to five in a file of 10
// GiB, whatever the order. So each unit of such a file fits into 800 KiB, in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/units.h"

namespace outcore::prefetch {

inline constexpr uint64_t kTouchUnitBytes = 64 << 10;
inline constexpr uint32_t kPartsOfUnit = kTouchUnitBytes / base::kSystemPage;
inline constexpr uint16_t kAllParts = 0xFFFF;
static_assert(kPartsOfUnit == 16);
// How many units of one file are kept (16 GiB), those that were needed first.
inline constexpr uint32_t kTouchedUnitsMax = 256 << 10;
inline constexpr uint32_t kTouchUnitEnd = uint32_t{1} << 30;  // no unit has this number: 64 TiB

// A unit of a file, and which of its system pages were needed: bit i is its page i.
struct Touch {
  uint32_t unit = 0;
  uint16_t parts = 0;
  bool operator==(const Touch&) const = default;
};

// Neighbouring units, all with the same parts.
struct TouchRun {
  uint32_t first = 0;
  uint32_t units = 0;
  uint16_t parts = 0;
};

// REQUIRES: units below kTouchUnitEnd, each with a part.
std::string encode_touches(std::span<const Touch> touches);

// TouchReader: reads that form, run by run. What is read may be forged: no run goes past
// kTouchUnitEnd, and all together have at most kTouchedUnitsMax units.
class TouchReader {
 public:
  // The bytes must live as long as this.
  explicit TouchReader(std::string_view bytes) : bytes_(bytes) {}
  // False: at the end, or the bytes from here on are not valid (is_broken).
  bool next(TouchRun* run);
  bool is_broken() const { return is_broken_; }
  size_t position() const { return at_; }  // bytes that were read

 private:
  bool read_number(uint64_t* number);
  bool read_run(TouchRun* run);

  std::string_view bytes_;
  size_t at_ = 0;
  uint32_t end_ = 0;  // of the run before
  uint32_t units_ = 0;
  bool is_broken_ = false;
};

bool are_touches(std::string_view bytes);
// REQUIRES: are_touches(bytes).
std::vector<Touch> decode_touches(std::string_view bytes);
// The longest beginning of them that has at most so many bytes.
std::string_view cut_touches(std::string_view bytes, size_t bytes_max);
// `newer`, then what `older` has beside. A unit that both have stands where the newer has it, with
// the parts of both. At most kTouchedUnitsMax.
std::vector<Touch> join_touches(std::vector<Touch> newer, std::string_view older);

}  // namespace outcore::prefetch
