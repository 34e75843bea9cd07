// PageDropper: a helper thread that takes the pages of mappings out of the page table, again and
// again, for the kernel to find them untouched (after DI-MMAP, section 6.5: every 10 seconds).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace outcore::bench {

// MADV_DONTNEED of a file's mapping leaves its pages in the page cache: they are mapped again when
// they are touched, at the price of a minor fault, and what is not touched is evicted without
// looking for who has it mapped. Theirs runs for minutes; here runs take seconds and less, so that
// the interval is shorter. Thread-safe.
class PageDropper {
 public:
  static constexpr std::chrono::milliseconds kInterval{100};

  PageDropper() = default;
  ~PageDropper() = default;
  PageDropper(const PageDropper&) = delete;
  PageDropper& operator=(const PageDropper&) = delete;

  // Pages of `mapped`, a whole mapping of a file that is only read (as theirs), until forget_all().
  // The thread begins with the first.
  void add(std::span<std::byte> mapped);
  // After it nothing is dropped any more.
  void forget_all();

 private:
  void drop_until(const std::stop_token& end);

  std::mutex lock_;
  std::condition_variable_any wakes_;
  std::vector<std::span<std::byte>> mapped_;
  std::jthread thread_;  // the last member: it ends first
};

}  // namespace outcore::bench
