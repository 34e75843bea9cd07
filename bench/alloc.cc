// alloc: threads allocate and free blocks of mixed sizes, in the way of mimalloc's mstress: most
// small, some of pages, few large; each is written when it comes and checked before it goes, and
// one in sixteen is freed by another thread.
#include "bench/alloc.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

#include "bench/data.h"
#include "bench/random.h"
#include "bench/workload.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr size_t kLargeMax = size_t{256} << 10;
constexpr size_t kExchanged = 1024;  // blocks that wait for a thread to take them

// What a block holds: its size in the first word, and the low byte of that at each 4 KiB and at its
// end.
void write_block(void* bytes, size_t size) {
  auto* const at = static_cast<unsigned char*>(bytes);
  for (size_t i = 0; i < size; i += kUnitBytes) at[i] = static_cast<unsigned char>(size);
  at[size - 1] = static_cast<unsigned char>(size);
  std::memcpy(at, &size, sizeof size);
}
bool is_right(const void* bytes, size_t* size) {
  const auto* const at = static_cast<const unsigned char*>(bytes);
  std::memcpy(size, at, sizeof *size);
  if (*size < sizeof *size || *size > kLargeMax) return false;
  bool is = at[*size - 1] == static_cast<unsigned char>(*size) || *size == sizeof *size;
  for (size_t i = kUnitBytes; i < *size; i += kUnitBytes)
    is = is && at[i] == static_cast<unsigned char>(*size);
  return is;
}

// Of 1000 blocks 940 are of 8 … 512 bytes, 55 of up to 8 KiB and 5 of up to 256 KiB: most of the
// bytes are in the few that are large.
size_t size_of(uint64_t chance) {
  const uint64_t kind = chance % 1000, bits = chance >> 16;
  const size_t most = kind < 940 ? 512 : kind < 995 ? size_t{8} << 10 : kLargeMax;
  return std::max<size_t>(sizeof(uint64_t), bits % most + 1);
}
constexpr uint64_t kMeanBytes = 1150;

class Alloc : public Workload {
 public:
  explicit Alloc(const Options& options) : options_(options) {
    if (options_.touches == 0) options_.touches = 4'000'000;
    if (options_.store.empty()) options_.store = "scratch:" + data_dir(options_);
  }

  Status prepare() override { return {}; }
  void forget() override {}
  uint64_t data_bytes() const override { return options_.size_bytes; }
  const std::string& uri() const override { return options_.store; }
  bool takes(const std::string& memory) const override {
    return memory == "outcore" || memory == "dram" || memory == "malloc";
  }
  Status run(Stage& stage) override;
  Status check(const RunResult& result) override {
    if (result.is_stopped || result.extra.value("wrong", uint64_t{1}) == 0) return {};
    return Error{EILSEQ, "blocks did not hold what was written to them"};
  }

 private:
  struct Thread {
    std::vector<void*> live;
    uint64_t wrong = 0, failed = 0;
  };
  void churn(BlockSource source, Thread& thread, uint64_t seed, uint64_t steps, Stage& stage);
  void end_block(BlockSource source, Thread& thread, void* block) {
    size_t size = 0;
    thread.wrong += !is_right(block, &size);
    source.give(block);
  }

  Options options_;
  std::vector<std::atomic<void*>> exchange_{kExchanged};
};

// A step frees the block of a slot, if there is one, and puts a new one there.
void Alloc::churn(BlockSource source, Thread& thread, uint64_t seed, uint64_t steps, Stage& stage) {
  Random random(seed);
  for (uint64_t step = 0; step < steps; ++step) {
    const uint64_t chance = random.next();
    void*& slot = thread.live[(chance >> 40) % thread.live.size()];
    if (slot != nullptr && chance % 16 == 0)
      slot = exchange_[(chance >> 4) % kExchanged].exchange(slot);
    if (slot != nullptr) end_block(source, thread, slot);
    const size_t size = size_of(random.next());
    slot = source.take(size);
    if (slot == nullptr)
      ++thread.failed;
    else
      write_block(slot, size);
    if (step % 4096 == 4095) stage.progress(4096);
  }
}

Status Alloc::run(Stage& stage) {
  if (Status s = stage.settle(); !s) return s;
  std::optional<Heap> heap;
  if (stage.memory_name() != "malloc") {
    Result<Heap> made = stage.make_heap();
    if (!made) return made.error();
    heap.emplace(std::move(made).value());
  }
  const BlockSource source(heap ? &*heap : nullptr);
  const uint64_t slots =
      std::max<uint64_t>(options_.size_bytes / kMeanBytes / options_.threads, 16);
  const uint64_t steps = options_.touches / options_.threads;
  std::vector<Thread> threads(options_.threads);
  for (Thread& thread : threads) thread.live.resize(slots);
  if (Status s = stage.start(steps * options_.threads); !s) return s;
  on_threads(options_.threads, [&](unsigned t) {
    churn(source, threads[t], options_.seed * 1000 + t, steps, stage);
  });
  stage.stop();
  uint64_t wrong = 0, failed = 0;
  for (Thread& thread : threads) {
    for (void* const block : thread.live)
      if (block != nullptr) end_block(source, thread, block);
    wrong += thread.wrong;
    failed += thread.failed;
  }
  for (std::atomic<void*>& block : exchange_)
    if (void* const last = block.exchange(nullptr); last != nullptr) {
      size_t size = 0;
      wrong += !is_right(last, &size);
      BlockSource(source).give(last);
    }
  if (failed != 0)
    return Error{ENOMEM,
                 cli::format("%llu allocations failed", static_cast<unsigned long long>(failed))};
  stage.result().extra["wrong"] = wrong;
  if (heap) {
    const HeapMetrics m = heap->metrics();
    stage.result().extra["address_bytes"] = m.address_bytes;
    stage.result().extra["heap_metadata_bytes"] = m.metadata_bytes;
    if (heap->delivery())
      stage.result().extra["delivery"] =
          *heap->delivery() == Delivery::kMessages ? "messages" : "in-thread";
  }
  return stage.finish(static_cast<double>(steps) * options_.threads, "blocks/s");
}

}  // namespace

std::unique_ptr<Workload> make_alloc(const Options& options) {
  return std::make_unique<Alloc>(options);
}

}  // namespace outcore::bench
