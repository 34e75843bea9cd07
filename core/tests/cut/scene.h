// Scene of cuts: a runtime with access to its engine, stores in memory that tests can read, and
// writers for which a test can tell exactly which writes a cut contains.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/paging/cut.h"
#include "core/runtime/mapper.h"
#include "core/runtime/runtime_impl.h"
#include "core/tests/conformance/mechanism.h"

namespace outcore::scene {

// Bytes in memory, which a test may read while nobody writes them.
class OpenStore : public Store {
 public:
  OpenStore(uint64_t size_bytes, std::string name) : bytes_(size_bytes), name_(std::move(name)) {}
  uint64_t size_bytes() const override { return bytes_.size(); }
  int read(uint64_t offset, std::span<std::byte> into) override {
    const std::lock_guard<std::mutex> guard(lock_);
    std::memcpy(into.data(), bytes_.data() + offset, into.size());
    return 0;
  }
  int write(uint64_t offset, std::span<const std::byte> from) override {
    if (const int error = error_.load(); error != 0) return -error;
    const std::lock_guard<std::mutex> guard(lock_);
    std::memcpy(bytes_.data() + offset, from.data(), from.size());
    return 0;
  }
  std::string uri() const override { return name_; }

  void fail(bool on, int error = EIO) { error_ = on ? error : 0; }
  uint64_t word_at(uint64_t offset) const {
    uint64_t word = 0;
    std::memcpy(&word, bytes_.data() + offset, sizeof word);
    return word;
  }

 private:
  std::vector<std::byte> bytes_;
  const std::string name_;
  std::mutex lock_;
  std::atomic<int> error_{0};  // of writes
};

// Regions of one runtime, each with a store of its own. Without prefetch nothing is on its way into
// memory but what the test touches.
class Regions {
 public:
  enum class Prefetch : uint8_t { kOn, kOff };

  Regions(const Mechanism& mechanism, uint64_t budget_bytes, uint64_t count, uint64_t size_bytes,
          Prefetch prefetch = Prefetch::kOn) {
    RuntimeOptions options = options_with(budget_bytes);
    if (prefetch == Prefetch::kOff) options.readahead_bytes = 0;
    Result<std::shared_ptr<Runtime::Impl>> started = Runtime::Impl::start(options);
    EXPECT_TRUE(started.ok()) << started.message();
    runtime_ = started.value();
    for (uint64_t i = 0; i < count; ++i) {
      MapOptions map;
      map.access = Access::kReadWrite;
      map.page_bytes = mechanism.page_bytes;
      map.delivery = mechanism.delivery;
      map.frames = mechanism.frames;
      stores_.push_back(std::make_shared<OpenStore>(size_bytes, "open:" + std::to_string(i)));
      auto region = runtime_->mapper->map(stores_.back(), stores_.back()->uri(), map);
      if (!region.ok()) {
        why_not_ = region.message();
        return;
      }
      regions_.push_back(std::move(region).value());
      caches_.push_back(regions_.back()->cache);
    }
  }
  ~Regions() {
    for (auto& region : regions_) static_cast<void>(runtime_->mapper->unmap(*region, true));
  }
  // Empty, or what the kernel lacks.
  const std::string& why_not() const { return why_not_; }
  std::byte* data(uint64_t i) const { return regions_[i]->view->address; }
  uint64_t count() const { return regions_.size(); }
  OpenStore& store(uint64_t i) const { return *stores_[i]; }
  Region::Impl& region(uint64_t i) const { return *regions_[i]; }
  paging::Engine& engine() const { return *runtime_->engine; }
  Result<paging::CutReport> cut(const paging::CutCalls& calls = {}) const {
    return engine().cut(caches_, calls);
  }

 private:
  std::shared_ptr<Runtime::Impl> runtime_;
  std::vector<std::shared_ptr<OpenStore>> stores_;
  std::vector<std::unique_ptr<Region::Impl>> regions_;
  std::vector<paging::PageCache*> caches_;
  std::string why_not_;
};

// Writer: a thread whose i-th write puts i into a cell determined by i. So the cells alone tell
// which write was the last, and whether all earlier ones are there. Now and then it notes how far
// another writer was; in any cut that contains the note, that writer must have come at least as
// far.
class Writer {
 public:
  static constexpr uint64_t kWritersMax = 8;

  Writer(const Regions& regions, uint64_t number, uint64_t pages)
      : regions_(regions), number_(number), pages_(pages), expected_(regions.count() * pages) {}

  void run(const Writer& peer, const std::atomic<bool>& must_end) {
    for (uint64_t i = 1; !must_end.load(std::memory_order_relaxed); ++i) {
      const uint64_t seen = peer.progress();
      put(cell_of(i), 0, i);
      if (i % 7 == 0) put(i / 7 % (regions_.count() * pages_), 8, seen);
      progress_.store(i, std::memory_order_release);
    }
  }
  uint64_t progress() const { return progress_.load(std::memory_order_acquire); }

  // Checks that the stores contain exactly the first n writes, and returns n.
  uint64_t check() {
    uint64_t last = checked_;
    for (uint64_t cell = 0; cell < expected_.size(); ++cell) last = std::max(last, stored(cell, 0));
    for (uint64_t i = checked_ + 1; i <= last; ++i) expected_[cell_of(i)] = i;
    uint64_t wrong = 0, which = 0;
    for (uint64_t cell = 0; cell < expected_.size(); ++cell)
      if (stored(cell, 0) != expected_[cell]) ++wrong, which = cell;
    EXPECT_EQ(wrong, 0u) << "writer " << number_ << " had done " << last << "; of cell " << which
                         << " the cut has write " << stored(which, 0) << ", but "
                         << expected_[which] << " came before";
    checked_ = last;
    return last;
  }
  // The highest count of the other writer that it has noted.
  uint64_t noted() const {
    uint64_t most = 0;
    for (uint64_t cell = 0; cell < expected_.size(); ++cell) most = std::max(most, stored(cell, 8));
    return most;
  }

 private:
  uint64_t cell_of(uint64_t i) const {
    uint64_t x = (i + (number_ << 40)) * 0x9E3779B97F4A7C15ull;
    x ^= x >> 31, x *= 0xD6E8FEB86659FD93ull, x ^= x >> 32;
    // Mostly neighbours of recent writes: a hot set that moves.
    return ((i / 512 * 64) + x % (i % 4 == 0 ? regions_.count() * pages_ : 200)) %
           (regions_.count() * pages_);
  }
  uint64_t offset_of(uint64_t cell, uint64_t at) const {
    return cell / regions_.count() * 4096 + number_ * 512 + at;
  }
  void put(uint64_t cell, uint64_t at, uint64_t value) {
    std::byte* to = regions_.data(cell % regions_.count()) + offset_of(cell, at);
    __atomic_store_n(reinterpret_cast<uint64_t*>(to), value, __ATOMIC_RELEASE);
  }
  uint64_t stored(uint64_t cell, uint64_t at) const {
    return regions_.store(cell % regions_.count()).word_at(offset_of(cell, at));
  }

  const Regions& regions_;
  const uint64_t number_, pages_;
  std::atomic<uint64_t> progress_{0};
  std::vector<uint64_t> expected_;  // by cell: the last of the first checked_ writes
  uint64_t checked_ = 0;
};

}  // namespace outcore::scene
