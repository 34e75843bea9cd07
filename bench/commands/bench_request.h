// BenchRequest: what the command line of a benchmark said, before it is made into Options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/options.h"
#include "outcore/result.h"

namespace outcore::cli {

struct BenchRequest {
  bench::Options options;
  std::string memory = "mmap,mmap-random,outcore";
  std::string distribution;  // empty: the workload's own
  std::string index;         // of kmers; empty: that of its table
  std::string latency = "auto";
  std::string share = "auto";
  std::string budget;                  // "8%": of --size
  std::optional<std::string> genomes;  // a folder of real ones
  uint64_t reads = 0;                  // of kmers; 0: not said
  bool is_json = false;

  // Makes `options` what the rest says; reads the genomes. Once. Errors: EINVAL, as the rest may
  // mean nothing, and those of GenomeFiles::read().
  Status resolve();
};

}  // namespace outcore::cli
