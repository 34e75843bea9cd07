#include "bench/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace outcore::bench {

Progress::Progress(std::string title)
    : title_(std::move(title)), is_terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (has_shown_) std::fputs("\r\033[K", stderr);
}

void Progress::show(uint64_t done, uint64_t total, double seconds) {
  if (!is_terminal_ || total == 0) return;
  static constexpr int kWidth = 30;
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto full = static_cast<int>(share * kWidth);
  std::string bar(static_cast<size_t>(full), '#');
  bar.append(static_cast<size_t>(kWidth - full), '.');
  std::fprintf(stderr, "\r\033[K%s [%s] %3.0f %%  %.0f s", title_.c_str(), bar.c_str(), share * 100,
               seconds);
  has_shown_ = true;
}

void Progress::say(const std::string& phase) {
  if (!is_terminal_) return;
  std::fprintf(stderr, "\r\033[K%s: %s", title_.c_str(), phase.c_str());
  has_shown_ = true;
}

}  // namespace outcore::bench
