// Stage: where a workload runs: one process of one run, with its memory, its clock and its limits.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/memory.h"
#include "bench/memory_group.h"
#include "bench/options.h"
#include "bench/pause_watch.h"
#include "bench/result.h"

namespace outcore::bench {

// Board: what the processes of a run tell each other and the parent; in memory that they share.
struct Board {
  std::atomic<unsigned> settled{0}, mapped{0};  // processes that have come so far
  std::atomic<bool> has_limit{false}, has_failed{false};
  std::atomic<uint64_t> started_ns{0};      // when the first began its timed part
  std::atomic<uint64_t> done{0}, total{0};  // work, for the progress bar
  std::atomic<uint64_t> own_bytes{0}, limit_bytes{0};
};

// One thread calls everything but progress().
class Stage {
 public:
  // The group may be none. `memory_bytes` is how much data the run maps, in all processes.
  Stage(const Options& options, std::string memory_name, unsigned process, Board& board,
        const MemoryGroup& group, uint64_t memory_bytes);

  const Options& options() const { return options_; }
  const std::string& memory_name() const { return memory_name_; }
  unsigned process() const { return process_; }
  RunResult& result() { return result_; }

  // The workload's own arrays are allocated and touched: whatever comes now is data. Limits the
  // group to what is used now + budget + allowance, when all processes are here.
  Status settle();
  Result<std::span<std::byte>> map(const MapRequest& request);
  // REQUIRES: settled; it ends before the stage.
  Result<Heap> make_heap() { return memory_->make_heap(); }
  // As Memory's. REQUIRES: settled.
  Runtime* runtime() { return memory_->runtime(); }
  uint64_t page_bytes() const { return memory_->page_bytes(); }
  Status pin(std::span<const std::byte> part) { return memory_->pin(part); }
  Status prefetch(std::span<const std::byte> mapped, std::span<const uint64_t> pages) {
    return memory_->prefetch(mapped, pages);
  }
  // The timed part. start() waits for all processes.
  Status start(uint64_t work_total);
  void stop();
  void progress(uint64_t done) { board_.done.fetch_add(done, std::memory_order_relaxed); }
  // Another process of the run failed, or died: nobody may wait for it.
  bool has_failed() const { return board_.has_failed.load(); }
  static Status cancelled() { return Error{ECANCELED, "another process of the run failed"}; }
  // After stop(): flushes, takes the counters and unmaps. `work` is what was done between.
  Status finish(double work, const char* unit);

  // Memory that every rival gets beside budget and program: page tables, a pager's metadata, slack.
  static uint64_t allowance_bytes(const Options& options, uint64_t memory_bytes);

 private:
  uint64_t transfer_bytes() const;
  uint64_t record_bytes() const;
  void warm_up() const;
  Status wait_for(const std::atomic<unsigned>& count) const;
  const Options& options_;
  std::string memory_name_;
  unsigned process_;
  Board& board_;
  const MemoryGroup& group_;
  uint64_t memory_bytes_;
  std::unique_ptr<Memory> memory_;
  std::vector<std::span<std::byte>> mapped_;
  MemoryUsage before_;
  std::optional<PauseWatch> pauses_;  // after memory_, whose counters it reads
  bool is_recording_ = false;
  std::optional<Result<std::string>> record_;
  uint64_t start_ns_ = 0;
  RunResult result_;
};

}  // namespace outcore::bench
