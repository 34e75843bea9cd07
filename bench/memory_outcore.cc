// Outcore as a benchmark's memory: what any user of the public API would write.
#include <algorithm>
#include <cerrno>

#include "bench/check.h"
#include "bench/data.h"
#include "bench/memory.h"
#include "cli/text.h"
#include "outcore/buffers.h"
#include "outcore/runtime.h"

namespace outcore::bench {
namespace {

template <typename T>
struct Choice {
  const char* name;
  T value;
};

// Errors: EINVAL with the names that would do.
template <typename T, size_t kCount>
Result<T> choose(const std::string& what, const std::string& name,
                 const Choice<T> (&choices)[kCount]) {
  std::string names;
  for (const Choice<T>& choice : choices) {
    if (name == choice.name) return choice.value;
    names += std::string(names.empty() ? "" : ", ") + choice.name;
  }
  return Error{EINVAL, what + " '" + name + "' is unknown: use one of " + names};
}

constexpr Choice<Delivery> kDeliveries[] = {{"auto", Delivery::kAuto},
                                            {"in-thread", Delivery::kInThread},
                                            {"messages", Delivery::kMessages},
                                            {"mprotect", Delivery::kMprotect}};
constexpr Choice<FrameKind> kFrames[] = {
    {"auto", FrameKind::kAuto}, {"shared", FrameKind::kShared}, {"private", FrameKind::kPrivate}};
constexpr Choice<Advice> kAdvices[] = {
    {"normal", Advice::kNormal}, {"random", Advice::kRandom}, {"sequential", Advice::kSequential}};

// Runtimes keep for themselves what cannot be shared, and say nothing: a run of processes that
// share is then none. Errors: EBUSY (no file is in the buffer), those of list_buffers().
Status check_is_shared(const std::string& buffer, const std::string& uri) {
  const Result<std::vector<BufferFacts>> all = list_buffers();
  if (!all) return all.status();
  for (const BufferFacts& facts : all.value())
    if (facts.name == buffer && facts.files != 0) return {};
  return Error{EBUSY, uri + " cannot be shared by the processes: use --share off"};
}

class OutcoreMemory : public Memory {
 public:
  // `buffer` is that of the runtime; empty: none.
  OutcoreMemory(Runtime runtime, std::string buffer, MapOptions map_options,
                HeapOptions heap_options, uint64_t page_bytes)
      : runtime_(std::move(runtime)),
        buffer_(std::move(buffer)),
        map_options_(map_options),
        heap_options_(std::move(heap_options)),
        page_bytes_(page_bytes) {}

  Result<std::span<std::byte>> map(const MapRequest& request) override {
    MapOptions options = map_options_;
    options.access = request.is_writable ? Access::kReadWrite : Access::kReadOnly;
    options.offset = request.offset;
    options.size_bytes = request.size_bytes;
    options.may_create = request.is_fresh;
    if (request.address != nullptr) {
      Result<Reservation> place = runtime_.reserve(request.size_bytes, request.address);
      if (!place) return place.error();
      places_.push_back(std::move(place).value());
      options.address = request.address;
    }
    Result<Region> region = runtime_.map(request.uri, options);
    if (!region) return region.error();
    regions_.push_back(std::move(region).value());
    if (!buffer_.empty())
      if (Status s = check_is_shared(buffer_, request.uri); !s) return s.error();
    return std::span<std::byte>{regions_.back().data(), request.size_bytes};
  }

  Status flush() override {
    for (Region& region : regions_)
      if (region.access() == Access::kReadWrite)
        if (Status s = region.sync(); !s) return s;
    return {};
  }

  Status close() override {
    Status first;
    for (Region& region : regions_)
      if (Status s = region.unmap(true); !s && first) first = s;
    regions_.clear();
    places_.clear();
    return first;
  }

  Status pin(std::span<const std::byte> part) override {
    Region& region = region_of(part);
    return region.pin(static_cast<uint64_t>(part.data() - region.data()), part.size());
  }

  Status prefetch(std::span<const std::byte> mapped, std::span<const uint64_t> pages) override {
    return region_of(mapped).prefetch(pages);
  }

  MemoryUsage usage() const override {
    const Metrics m = runtime_.metrics();
    MemoryUsage usage;
    usage.fills = m.counters.fills + m.counters.prefetch_fills;
    usage.read_bytes = m.counters.read_bytes;
    usage.written_bytes = m.counters.written_bytes;
    const MemoryUsage kernel = kernel_usage();
    usage.major_faults = kernel.major_faults;
    usage.minor_faults = kernel.minor_faults;
    usage.extra = {{"faults", m.counters.faults},
                   {"fault_fills", m.counters.fills},
                   {"prefetch_fills", m.counters.prefetch_fills},
                   {"rescues", m.counters.rescues},
                   {"evictions", m.counters.evictions},
                   {"write_backs", m.counters.write_backs},
                   {"write_faults", m.counters.write_faults},
                   {"waits_for_frame", m.counters.waits_for_frame},
                   {"waits_for_page", m.counters.waits_for_page},
                   {"used_bytes_max", m.gauges.used_bytes_max},
                   {"metadata_bytes", m.gauges.metadata_bytes},
                   {"device_read_bytes", kernel.read_bytes},
                   {"device_written_bytes", kernel.written_bytes},
                   {"shared", !buffer_.empty()}};
    if (!m.policies.empty()) usage.extra["policy"] = m.policies.front().policy;
    if (!regions_.empty()) {
      const RegionMetrics region = regions_.front().metrics();
      usage.extra["delivery"] = region.delivery;
      usage.extra["frames"] = region.frames;
      usage.extra["fetches"] = region.fetches.to_text(region.page_bytes);
    }
    return usage;
  }

  uint64_t page_bytes() const override { return page_bytes_; }
  Runtime* runtime() override { return &runtime_; }
  Result<Heap> make_heap() override {
    HeapOptions options = heap_options_;
    options.page_bytes = page_bytes_;
    options.advice = map_options_.advice;
    options.delivery = map_options_.delivery;
    return Heap::create(runtime_, options);
  }

 private:
  // REQUIRES: the bytes are of one
  Region& region_of(std::span<const std::byte> bytes) {
    const auto found = std::find_if(regions_.begin(), regions_.end(), [&](const Region& region) {
      return bytes.data() >= region.data() && bytes.data() < region.data() + region.size_bytes();
    });
    BENCH_CHECK(found != regions_.end());
    return *found;
  }

  Runtime runtime_;
  std::string buffer_;
  MapOptions map_options_;
  HeapOptions heap_options_;
  uint64_t page_bytes_;
  std::vector<Reservation> places_;
  std::vector<Region> regions_;  // after runtime_ and places_: they go first
};

}  // namespace

Result<std::unique_ptr<Memory>> make_outcore_memory(const Options& options) {
  RuntimeOptions runtime_options;
  runtime_options.budget_bytes = options.budget_bytes;
  if (options.buffer.empty())
    runtime_options.budget_bytes = options.budget_bytes / std::max(1U, options.processes);
  else
    runtime_options.buffer = options.buffer;
  if (!options.policy.empty()) runtime_options.policy = options.policy;
  MapOptions map_options;
  map_options.page_bytes = options.page_bytes;
  if (!options.delivery.empty()) {
    const Result<Delivery> delivery = choose("delivery", options.delivery, kDeliveries);
    if (!delivery) return delivery.error();
    map_options.delivery = delivery.value();
  }
  if (!options.frames.empty()) {
    const Result<FrameKind> frames = choose("frames", options.frames, kFrames);
    if (!frames) return frames.error();
    map_options.frames = frames.value();
  }
  if (!options.advice.empty()) {
    const Result<Advice> advice = choose("advice", options.advice, kAdvices);
    if (!advice) return advice.error();
    map_options.advice = advice.value();
  }
  Result<Runtime> runtime = Runtime::start(runtime_options);
  if (!runtime) return runtime.error();
  HeapOptions heap_options;
  heap_options.store = options.store.empty() ? "scratch:" + data_dir(options) : options.store;
  return std::unique_ptr<Memory>(new OutcoreMemory(std::move(runtime).value(), options.buffer,
                                                   map_options, heap_options, options.page_bytes));
}

}  // namespace outcore::bench
