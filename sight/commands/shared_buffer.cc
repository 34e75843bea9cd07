#include "sight/commands/shared_buffer.h"

#include <algorithm>

namespace outcore::cli {

const BufferFacts* buffer_of(const PublishedRuntime& runtime, const std::vector<BufferFacts>& all) {
  if (runtime.shared_buffer.empty()) return nullptr;
  uint64_t shared = 0, own = 0;
  for (const RegionMetrics& region : runtime.metrics.regions)
    (region.frames == "buffer" ? shared : own) +=
        region.counters.fills + region.counters.prefetch_fills;
  if (own > shared) return nullptr;
  const auto found = std::find_if(all.begin(), all.end(), [&](const BufferFacts& one) {
    return one.name == runtime.shared_buffer && one.limit_bytes != 0;
  });
  return found == all.end() ? nullptr : &*found;
}

std::vector<BufferFacts> buffers_of(const std::vector<PublishedRuntime>& runtimes) {
  const bool is_any = std::any_of(runtimes.begin(), runtimes.end(),
                                  [](const auto& one) { return !one.shared_buffer.empty(); });
  Result<std::vector<BufferFacts>> all = is_any ? list_buffers() : std::vector<BufferFacts>();
  return all ? std::move(all).value() : std::vector<BufferFacts>();
}

Json json_of(const BufferFacts& buffer) {
  return {{"name", buffer.name},
          {"limit_bytes", buffer.limit_bytes},
          {"used_bytes", buffer.used_bytes},
          {"used_bytes_max", std::max(buffer.used_bytes_max, buffer.used_bytes)}};
}

}  // namespace outcore::cli
