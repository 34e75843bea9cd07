// WordWorkload: what random-io and scan have in common: a file of known words, made once, which
// `direct` reads, too.
#pragma once

#include <string>

#include "bench/word_data.h"
#include "bench/workload.h"

namespace outcore::bench {

class WordWorkload : public Workload {
 public:
  uint64_t data_bytes() const override { return options_.size_bytes; }
  const std::string& uri() const override { return words_.file().uri(); }
  void forget() override { words_.file().forget(); }
  bool takes(const std::string& memory) const override {
    return Workload::takes(memory) || memory == "direct";
  }
  Status prepare() override {
    if (is_ready_) return {};
    if (Status s = words_.make(); !s) return s;
    on_made();
    is_ready_ = true;
    return {};
  }

 protected:
  explicit WordWorkload(const Options& options) : options_(options), words_(options) {}
  // The words are there as they were made.
  virtual void on_made() = 0;

  Options options_;
  WordData words_;
  bool is_ready_ = false;  // false: what is there is to be made anew
};

}  // namespace outcore::bench
