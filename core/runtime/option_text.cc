#include "core/runtime/option_text.h"

#include <charconv>
#include <limits>

#include "core/base/units.h"

namespace outcore::runtime {
namespace {

// Reads the number at the start of a text; `rest` is what follows. False if there is no number, or
// it is too large.
bool read_number(const std::string& text, uint64_t* number, std::string* rest) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, *number);
  if (error != std::errc() || stopped == text.data()) return false;
  rest->assign(stopped, end);
  while (!rest->empty() && rest->front() == ' ') rest->erase(0, 1);
  return true;
}

}  // namespace

Result<uint64_t> read_budget(const std::string& text,
                             const std::function<os::MemoryAvailable()>& available,
                             std::string* remark) {
  if (text.empty()) {
    auto [bytes, why] = os::default_budget_of(available());
    *remark = why;
    return bytes;
  }
  if (text.back() != '%') return base::parse_bytes(text);
  uint64_t percent = 0;
  std::string rest;
  if (!read_number(text, &percent, &rest) || rest != "%" || percent < 1 || percent > 100)
    return Error{EINVAL,
                 "'" + text + "' is not a share: write 1% … 100%, or a number with k, M, G or T"};
  const os::MemoryAvailable all = available();
  *remark = text + " of " + base::format_bytes(all.bytes) + " available " + all.source;
  // In this order, so that the multiplication cannot overflow.
  return base::round_down(all.bytes / 100 * percent + all.bytes % 100 * percent / 100,
                          uint64_t{1} << 20);
}

std::string write_bytes(uint64_t bytes) {
  const std::string text = base::format_bytes(bytes);
  Result<uint64_t> again = base::parse_bytes(text);
  return again && again.value() == bytes ? text : std::to_string(bytes);
}

Result<unsigned> read_count(const std::string& text, unsigned max) {
  uint64_t number = 0;
  std::string rest;
  if (read_number(text, &number, &rest) && rest.empty() &&
      number <= std::numeric_limits<unsigned>::max())
    return static_cast<unsigned>(number);
  return Error{EINVAL, "'" + text + "' is not a number of 1 … " + std::to_string(max)};
}

}  // namespace outcore::runtime
