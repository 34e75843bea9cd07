// ProcessStat: the text of /proc/PID/stat by its fields, which proc(5) numbers. Allocates nothing.
#pragma once

#include <cstdint>
#include <string_view>

namespace outcore::os {

class ProcessStat {
 public:
  enum Field { kState = 3, kUserTicks = 14, kSystemTicks = 15, kThreads = 20, kStartTicks = 22 };

  // Refers to `text`, which may be empty or cut short: the process has ended.
  explicit ProcessStat(std::string_view text);

  // The name may contain blanks and parentheses; it ends with the last one. Empty: unknown.
  std::string_view name() const { return name_; }
  // S: it sleeps, and so on; 0: unknown.
  char state() const;
  // 0: unknown.
  uint64_t number(Field field) const;

 private:
  std::string_view behind_field(int count) const;

  std::string_view name_, fields_;  // from the state on
};

}  // namespace outcore::os
