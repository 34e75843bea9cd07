#include "bench/page_dropper.h"

#include <sys/mman.h>

#include "bench/check.h"

namespace outcore::bench {

void PageDropper::add(std::span<std::byte> mapped) {
  const std::lock_guard lock(lock_);
  mapped_.push_back(mapped);
  if (!thread_.joinable())
    thread_ = std::jthread([this](const std::stop_token& end) { drop_until(end); });
}

void PageDropper::forget_all() {
  const std::lock_guard lock(lock_);
  mapped_.clear();
}

void PageDropper::drop_until(const std::stop_token& end) {
  std::unique_lock lock(lock_);
  while (!end.stop_requested()) {
    wakes_.wait_for(lock, end, kInterval, [] { return false; });
    for (const std::span<std::byte> mapped : mapped_)
      BENCH_CHECK(madvise(mapped.data(), mapped.size(), MADV_DONTNEED) == 0);
  }
}

}  // namespace outcore::bench
