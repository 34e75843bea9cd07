// KeptRecords: records of runs, as many as fit a page that a browser can show; of more those whose
// runtimes waited longest. In the order in which they came. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cli/json.h"

namespace outcore::cli {

// What threads lost by waiting for pages: in faults, and in calls.
inline double waited_ns_of(const Json& record) {
  const Json& counters = record["counters"];
  return counters.value("fault_ns", 0.0) + counters.value("call_wait_ns", 0.0);
}

class KeptRecords {
 public:
  static constexpr uint64_t kBytesMax = uint64_t{256} << 20;

  void add(Json record, size_t bytes) {
    bytes_ += bytes;
    all_.push_back({std::move(record), bytes});
    while (bytes_ > kBytesMax && all_.size() > 1) {
      const auto least = std::min_element(all_.begin(), all_.end(), [](const One& a, const One& b) {
        return waited_ns_of(a.record) < waited_ns_of(b.record);
      });
      bytes_ -= least->bytes;
      all_.erase(least);
      ++left_out_;
    }
  }
  size_t left_out() const { return left_out_; }
  std::vector<Json> take() {
    std::vector<Json> records;
    for (One& one : all_) records.push_back(std::move(one.record));
    return records;
  }

 private:
  struct One {
    Json record;
    size_t bytes;
  };
  std::vector<One> all_;
  size_t bytes_ = 0, left_out_ = 0;
};

}  // namespace outcore::cli
