// FreshData: where a workload's own arrays rest that it fills itself: a file of the right size, or
// a store on servers that its run makes.
#pragma once

#include <string>

#include "bench/data.h"
#include "bench/medium.h"
#include "bench/options.h"

namespace outcore::bench {

class FreshData {
 public:
  FreshData(const Options& options, const std::string& file_name)
      : size_bytes_(options.size_bytes), data_(options, file_name) {}

  const Data& file() const { return data_; }

  // Before each run. What a file held is of no use; a store on servers is not there.
  Status make() {
    if (Status s = data_.claim(); !s) return s;
    if (data_.is_remote()) return data_.clear();
    data_.mark_changed();
    return open_medium(data_.uri(), size_bytes_, true).status();
  }

 private:
  uint64_t size_bytes_;
  Data data_;
};

}  // namespace outcore::bench
