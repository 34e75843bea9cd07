#include "bench/judges.h"

#include <algorithm>

#include "cli/text.h"

namespace outcore::bench {
namespace {

const Series* find(const std::vector<Series>& all, const std::string& memory) {
  for (const Series& series : all)
    if (series.memory == memory) return &series;
  return nullptr;
}

RowResult unmeasured(std::string why) { return {{}, {}, std::move(why), false, false}; }

// The better of the mmaps that was not stopped; nullptr if all were.
const Series* better_mmap(const std::vector<Series>& all) {
  const Series* best = nullptr;
  for (const char* name : {"mmap", "mmap-random"}) {
    const Series* const series = find(all, name);
    if (series == nullptr || series->runs.empty() || series->is_stopped()) continue;
    if (best == nullptr || series->median_rate() > best->median_rate()) best = series;
  }
  return best;
}

}  // namespace

Judge at_least(std::vector<double> targets, std::string rival) {
  return [targets = std::move(targets), rival = std::move(rival)](const Parts& parts) {
    RowResult result;
    result.is_met = true;
    for (size_t i = 0; i < parts.size(); ++i) {
      const Series* const outcore = find(parts[i], "outcore");
      const Series* const other = rival == "mmaps" ? better_mmap(parts[i]) : find(parts[i], rival);
      if (!result.figure.empty()) result.figure += ", ";
      if (outcore == nullptr) return unmeasured("outcore did not run");
      if (other == nullptr || (other->is_stopped() && !outcore->is_stopped())) {
        result.figure += "the rival did not finish";
        continue;
      }
      const auto ratio = compare(*outcore, *other);
      if (!ratio) {
        result.is_measured = result.is_met = false;
        result.figure += ratio.message();
        continue;
      }
      result.figure += cli::format("%.2f", ratio->value);
      result.is_met = result.is_met && ratio->value >= targets[std::min(i, targets.size() - 1)];
    }
    return result;
  };
}

RowResult judge_miss(const Parts& parts, double target_us) {
  const Series* const outcore = find(parts[0], "outcore");
  const Series* const device = find(parts[0], "direct");
  if (outcore == nullptr || device == nullptr) return unmeasured("did not run");
  const double more = outcore->median_run().p50_us() - device->median_run().p50_us();
  return {{}, {}, cli::format("device + %.1f us", more), more <= target_us, true};
}

RowResult judge_scaling(const Parts& parts) {
  RowResult result;
  result.is_met = true;
  const double base = find(parts[0], "outcore")->median_rate();
  for (size_t i = 1; i < parts.size(); ++i) {
    const double ratio = find(parts[i], "outcore")->median_rate() / base;
    result.figure += cli::format(i == 1 ? "%.2f" : ", %.2f", ratio);
    result.is_met = result.is_met && ratio >= 0.95;
  }
  return result;
}

RowResult judge_loop(const Parts& parts) {
  const Series* const outcore = find(parts[0], "outcore");
  const Series* const mmap = find(parts[0], "mmap-random");
  if (outcore == nullptr || mmap == nullptr || mmap->median_run().fills == 0)
    return unmeasured("did not run");
  const double ratio = static_cast<double>(outcore->median_run().fills) /
                       static_cast<double>(mmap->median_run().fills);
  return {{}, {}, cli::format("%.2f of the fills", ratio), ratio <= 0.4, true};
}

RowResult judge_readahead(const Parts& parts) {
  constexpr unsigned kFewThreads = 8;
  RowResult result;
  result.is_met = true;
  for (const auto& part : parts) {
    const Series* const with = find(part, "outcore");
    const Series* const without = find(part, "outcore-random");
    if (with == nullptr || without == nullptr) return unmeasured("outcore did not run");
    const auto ratio = compare(*with, *without);
    if (!ratio) {
      result.is_measured = result.is_met = false;
      result.figure += (result.figure.empty() ? "" : ", ") + ratio.message();
      continue;
    }
    const double speed = ratio->value;
    const RunResult &a = with->median_run(), &b = without->median_run();
    const double bytes = double(a.read_bytes) / double(std::max<uint64_t>(b.read_bytes, 1));
    result.figure +=
        cli::format(result.figure.empty() ? "%.2f (%.2f)" : ", %.2f (%.2f)", speed, bytes);
    const double bytes_max = a.threads <= kFewThreads || speed >= 2 ? 4 : 1.2;
    result.is_met = result.is_met && speed >= 0.9 && bytes <= bytes_max;
  }
  return result;
}

RowResult judge_resident(const Parts& parts) {
  RowResult result;
  result.is_met = true;
  for (const auto& part : parts) {
    const auto ratio = compare(*find(part, "outcore"), *find(part, "dram"));
    if (!ratio) return unmeasured(ratio.message());
    result.figure += (result.figure.empty() ? "" : ", ") + cli::format("%.2f", ratio->value);
    result.is_met = result.is_met && ratio->value >= 0.98;
  }
  return result;
}

RowResult judge_write_back(const Parts& parts) {
  const RunResult& run = find(parts[0], "outcore")->median_run();
  const double dirty = static_cast<double>(run.extra.value("writes", uint64_t{0})) * 4096;
  const double ratio = dirty > 0 ? static_cast<double>(run.written_bytes) / dirty : 0;
  return {{}, {}, cli::format("%.2f of the dirty 4 KiB", ratio), ratio > 0 && ratio <= 1.1, true};
}

RowResult judge_peak(const Parts& parts) {
  constexpr uint64_t kBeside = uint64_t{16} << 20;
  RowResult result;
  result.is_met = true;
  for (const auto& part : parts) {
    const RunResult& run = find(part, "outcore")->median_run();
    if (!run.is_limited) return unmeasured("no memory cgroup: run as root");
    const uint64_t allowed = run.budget_bytes + run.extra.value("metadata_bytes", uint64_t{0}) +
                             run.data_bytes / 512 + kBeside;
    result.figure += (result.figure.empty() ? "" : ", ") +
                     cli::format("%s of %s", cli::format_bytes(run.peak_bytes).c_str(),
                                 cli::format_bytes(allowed).c_str());
    result.is_met = result.is_met && run.peak_bytes <= allowed;
  }
  return result;
}

}  // namespace outcore::bench
