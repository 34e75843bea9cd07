#include "core/os/process_stat.h"

#include <charconv>

#include "core/base/assert.h"

namespace outcore::os {

ProcessStat::ProcessStat(std::string_view text) {
  const size_t begin = text.find('('), end = text.rfind(')');
  if (begin == text.npos || end == text.npos || end < begin) return;
  name_ = text.substr(begin + 1, end - begin - 1);
  fields_ = text.substr(end + 1);
  if (fields_.starts_with(' ')) fields_.remove_prefix(1);
}

char ProcessStat::state() const { return fields_.empty() ? 0 : fields_.front(); }

uint64_t ProcessStat::number(Field field) const {
  const std::string_view text = behind_field(field - kState);
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// What follows so many fields.
std::string_view ProcessStat::behind_field(int count) const {
  OC_CHECK(count >= 0);
  std::string_view rest = fields_;
  for (int i = 0; i < count; ++i) {
    const size_t blank = rest.find(' ');
    if (blank == rest.npos) return {};
    rest.remove_prefix(blank + 1);
  }
  return rest;
}

}  // namespace outcore::os
