// Watch: looks at processes with a runtime again and again, and says what changed in between.
//
// The processes are not asked: their counters are read (outcore/sight.h). They come, go and unmap
// files between two looks; no rate is ever less than 0. One thread.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "outcore/buffers.h"
#include "outcore/sight.h"
#include "sight/commands/change.h"
#include "sight/commands/process_facts.h"

namespace outcore::cli {

// What was there at one moment.
struct Sample {
  struct Process {
    pid_t pid = 0;
    ProcessFacts facts;
    std::vector<PublishedRuntime> runtimes;
  };
  uint64_t since_boot_ns = 0;  // of a clock that nobody sets
  uint64_t since_1970_ns = 0;
  std::vector<Process> processes;
  std::vector<BufferFacts> buffers;
};

constexpr size_t kHistoryMax = 60;  // looks that are remembered

struct StoreView {
  RegionMetrics now;
  Change change;
  size_t occurrence = 0;                // of those with the same URI in its process: 0, 1, …
  std::optional<uint64_t> dirty_bytes;  // none: not asked, or not known
  std::deque<double> stalled;           // of the last looks, the latest at the end
};

struct RuntimeView {
  PublishedRuntime now;
  Change change;
  std::vector<StoreView> stores;
  std::string buffer;  // the one whose limit and use are shown as its budget; empty: it has its own
};

struct ProcessView {
  pid_t pid = 0;
  ProcessFacts facts;
  double cpu_share = -1;  // 1: one processor; less than 0: not known yet
  std::vector<RuntimeView> runtimes;
  Change change;  // of all its runtimes
  Counters counters;
  LatencyHistogram latency;
  Amplification amplification;  // of the stores that it has now
  // Of a buffer's members both are the buffer's, each buffer counted once.
  uint64_t budget_bytes = 0, used_bytes = 0, degraded = 0;
  std::deque<double> stalled;  // of the last looks, the latest at the end
  bool is_dirty_asked = false;
  std::optional<uint64_t> dirty_bytes;  // none: not asked, or not known

  // Whether it is known what part of the time it was stalled: not of a process without a store
  // whose mappings are the kernel's.
  bool is_stall_known() const {
    bool has_any = false, has_left = false;
    for (const RuntimeView& runtime : runtimes) {
      has_any |= !runtime.stores.empty();
      has_left |= !runtime.now.left_files.empty();
    }
    return change.is_stall_known() && (has_any || !has_left);
  }
  // For each store, in their order.
  template <typename F>
  void for_each_store(const F& f) const {
    for (const RuntimeView& runtime : runtimes)
      for (const StoreView& store : runtime.stores) f(store);
  }
};

struct BufferView {
  BufferFacts now;
  double fills_a_second = 0, evictions_a_second = 0;
};

class Watch {
 public:
  Watch() = default;                                                   // all that may be looked at
  explicit Watch(std::vector<pid_t> only) : only_(std::move(only)) {}  // and no buffers

  // Looks. Errors: none of `only` can be looked at (the first one's reason); buffers that cannot be
  // listed are none.
  Status look();
  // The same with what somebody else saw.
  void take(const Sample& sample);

  // What the process, and each of its stores, has written that is in no store: for pages that tell
  // it, as the kernel looks at all its memory. Once a look; nothing of a process that is not there.
  void ask_dirty(pid_t pid);

  double seconds() const { return seconds_; }  // since the look before; 0: there was none
  const std::vector<ProcessView>& processes() const { return processes_; }
  const std::vector<BufferView>& buffers() const { return buffers_; }
  // Processes that cannot be looked at, as their library is another.
  const std::vector<OtherLibrary>& others() const { return others_; }
  const ProcessView* find(pid_t pid) const;

 private:
  using StoreKey = std::pair<std::string, size_t>;
  struct Seen {
    Counters counters;
    LatencyHistogram latency;
  };
  struct SeenStore {
    Seen last;
    std::deque<double> stalled;
  };
  struct SeenRuntime {
    Seen highest;
    std::map<StoreKey, SeenStore> stores;
  };
  struct SeenProcess {
    uint64_t started = 0;
    double cpu_seconds = 0;
    std::map<uint64_t, SeenRuntime> runtimes;  // by when each started
    std::deque<double> stalled;
  };

  ProcessView view_of(const Sample::Process& process, const std::vector<BufferFacts>& buffers,
                      SeenProcess* seen);
  RuntimeView view_of(const PublishedRuntime& runtime, std::map<StoreKey, size_t>* occurrences,
                      const SeenRuntime* before, SeenRuntime* seen) const;
  void take_buffers(const std::vector<BufferFacts>& buffers);

  std::vector<pid_t> only_;
  double seconds_ = 0;
  uint64_t since_boot_ns_ = 0, since_1970_ns_ = 0;  // of the look before
  std::map<pid_t, SeenProcess> seen_;
  std::vector<ProcessView> processes_;
  std::vector<BufferView> buffers_;
  std::vector<OtherLibrary> others_;
};

}  // namespace outcore::cli
