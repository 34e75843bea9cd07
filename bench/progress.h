// Progress: a bar on a terminal's standard error; nothing elsewhere. One thread.
#pragma once

#include <cstdint>
#include <string>

namespace outcore::bench {

class Progress {
 public:
  explicit Progress(std::string title);
  ~Progress();  // wipes the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(uint64_t done, uint64_t total, double seconds);
  void say(const std::string& phase);  // in place of the bar

 private:
  std::string title_;
  bool is_terminal_;
  bool has_shown_ = false;
};

}  // namespace outcore::bench
