// FreshWorkload: what workloads have in common that fill their own arrays in each run: a file of
// the right size, or a store on servers that the run makes, mapped as a whole for writing.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "bench/data.h"
#include "bench/medium.h"
#include "bench/workload.h"
#include "cli/text.h"

namespace outcore::bench {

class FreshWorkload : public Workload {
 public:
  uint64_t data_bytes() const final { return options_.size_bytes; }
  const std::string& uri() const final { return data_.uri(); }
  void forget() final { data_.forget(); }

  // What a file held is of no use; a store on servers is not there.
  Status prepare() override {
    if (Status s = data_.claim(); !s) return s;
    if (data_.is_remote()) return data_.clear();
    data_.mark_changed();
    return open_medium(data_.uri(), options_.size_bytes, true).status();
  }

 protected:
  // `what`: the arrays, in the file's name.
  FreshWorkload(const Options& options, const char* what)
      : options_(options),
        data_(options, cli::format("outcore-bench-%s-%llu.dat", what,
                                   static_cast<unsigned long long>(options.size_bytes))) {}

  // All data_bytes() of it, which may hold anything.
  Result<std::span<std::byte>> map_all(Stage& stage) const {
    MapRequest request{uri(), 0, data_bytes(), true};
    request.is_fresh = true;
    return stage.map(request);
  }

  const Options options_;

 private:
  Data data_;
};

}  // namespace outcore::bench
