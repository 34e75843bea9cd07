// Units: byte counts and times as people write them: "4G", "64k", "1.5MiB", "4096"; all units are
// powers of 1024.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/assert.h"
#include "outcore/result.h"

namespace outcore::base {

inline constexpr uint64_t kSystemPage = 4096;
inline constexpr uint64_t kHugePage = 2 << 20;  // of x86-64
inline constexpr uint64_t kPageBytesMax = uint64_t{16} << 20;

// Errors: EINVAL (not a number with one of the units, or more than 64 bits).
Result<uint64_t> parse_bytes(std::string_view text);
// "1.5 GiB", "64 KiB", "123 B".
std::string format_bytes(uint64_t bytes);

// "500ms", "30s", "2min", "2h", "7d", "0". Errors: EINVAL.
Result<uint64_t> parse_milliseconds(std::string_view text);
// In the largest unit that represents the value exactly.
std::string format_milliseconds(uint64_t milliseconds);

constexpr uint64_t round_up(uint64_t n, uint64_t multiple) {
  OC_ASSERT(multiple != 0);
  return (n + multiple - 1) / multiple * multiple;
}
constexpr uint64_t round_down(uint64_t n, uint64_t multiple) {
  OC_ASSERT(multiple != 0);
  return n / multiple * multiple;
}
constexpr bool is_power_of_two(uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

}  // namespace outcore::base
