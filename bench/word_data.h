// WordData: the file of random-io and scan, known words, made once for a size and a seed.
#pragma once

#include "bench/data.h"
#include "bench/medium.h"
#include "bench/options.h"
#include "cli/text.h"

namespace outcore::bench {

class WordData {
 public:
  explicit WordData(const Options& options)
      : size_bytes_(options.size_bytes),
        seed_(options.seed),
        file_(options, cli::format("outcore-bench-words-%llu-%llu.dat",
                                   static_cast<unsigned long long>(options.size_bytes),
                                   static_cast<unsigned long long>(options.seed))),
        tag_(cli::format("words %llu seed %llu",
                         static_cast<unsigned long long>(options.size_bytes),
                         static_cast<unsigned long long>(options.seed))) {}

  Data& file() { return file_; }
  const Data& file() const { return file_; }

  // Claims the file, and makes it unless it is there unchanged.
  Status make() {
    if (Status s = file_.claim(); !s) return s;
    if (file_.is_clean(tag_)) return {};
    file_.mark_changed();
    auto medium = open_medium(file_.uri(), size_bytes_, true);
    if (!medium) return medium.error();
    if (Status s = write_words(**medium, size_bytes_, seed_); !s) return s;
    file_.mark_clean(tag_);
    return {};
  }

 private:
  uint64_t size_bytes_, seed_;
  Data file_;
  std::string tag_;
};

}  // namespace outcore::bench
