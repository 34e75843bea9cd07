#include "bench/static/program.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/check.h"
#include "bench/clock.h"
#include "bench/options.h"
#include "cli/text.h"
#ifdef OUTCORE_OCC
#include "outcore/sight.h"
#endif

namespace outcore::bench {
namespace {

#ifdef OUTCORE_OCC
constexpr const char* kMemory = "outcore";
#else
constexpr const char* kMemory = "dram";
#endif

}  // namespace

Program::Program(const char* name, uint64_t data_bytes, unsigned usual_passes, int argc,
                 char** argv, unsigned passes_min)
    : name_(name), data_bytes_(data_bytes), passes_(usual_passes) {
  if (argc == 1) return;
  if (argc == 2 && std::strcmp(argv[1], "--size") == 0) {
    std::printf("%" PRIu64 "\n", data_bytes_);
    std::exit(0);
  }
  if (std::strcmp(argv[1], "--passes") != 0)
    refuse(argv[1], "is unknown: use --passes N, or --size");
  if (argc != 3) refuse(argv[1], "takes one number");
  char* end = nullptr;
  const unsigned long passes = std::strtoul(argv[2], &end, 10);
  if (*argv[2] < '0' || *argv[2] > '9' || *end != 0 || passes < passes_min || passes > kLoopsMax)
    refuse(argv[2], cli::format("is not a number of passes: use %u … %u", passes_min, kLoopsMax));
  passes_ = static_cast<unsigned>(passes);
}

void Program::refuse(const char* word, const std::string& why) const {
  std::fprintf(stderr, "%s: '%s' %s\n", name_, word, why.c_str());
  std::exit(2);
}

Program::Usage Program::usage() {
  Usage all;
#ifdef OUTCORE_OCC
  const auto runtimes = look_at(getpid());
  if (!runtimes) return all;  // the sheet cannot be had here: the rate counts
  for (const PublishedRuntime& runtime : runtimes.value()) {
    const Metrics& m = runtime.metrics;
    all.budget_bytes += m.gauges.budget_bytes;
    all.fills += m.counters.fills + m.counters.prefetch_fills;
    all.read_bytes += m.counters.read_bytes;
    all.written_bytes += m.counters.written_bytes;
    for (const RegionMetrics& region : m.regions) all.page_bytes = region.page_bytes;
  }
#endif
  return all;
}

void Program::start() {
  before_ = usage();
  start_ns_ = now_ns();
}

void Program::stop() {
  BENCH_CHECK(start_ns_ != 0);
  seconds_ = seconds_since(start_ns_);
  after_ = usage();
}

int Program::finish(double work, const char* unit, const Status& answer,
                    const std::vector<std::pair<std::string, double>>& more) const {
  BENCH_CHECK(seconds_ > 0);
  if (!answer) {
    std::fprintf(stderr, "%s: %s\n", name_, answer.message().c_str());
    return 1;
  }
  std::printf(
      "{\"workload\": \"%s\", \"memory\": \"%s\", \"class\": \"%s\", \"passes\": %u, "
      "\"data_bytes\": %" PRIu64 ", \"budget_bytes\": %" PRIu64
      ", \"threads\": %u, \"processes\": 1, \"page_bytes\": %" PRIu64 ", \"started_ns\": %" PRIu64
      ", \"seconds\": %.6f, \"rate\": %.3f, \"unit\": \"%s\", \"fills\": %" PRIu64
      ", \"read_bytes\": %" PRIu64 ", \"written_bytes\": %" PRIu64
      ", \"limited\": false, \"stopped\": false, \"checked\": true",
      name_, kMemory, kNasClass.data(), passes_, data_bytes_, after_.budget_bytes, kThreads,
      after_.page_bytes, start_ns_, seconds_, work / seconds_, unit, after_.fills - before_.fills,
      after_.read_bytes - before_.read_bytes, after_.written_bytes - before_.written_bytes);
  for (const auto& [name, value] : more) std::printf(", \"%s\": %.3f", name.c_str(), value);
  std::puts("}");
  return 0;
}

}  // namespace outcore::bench
