// Recorder: keeps what a runtime does while it runs, for the report of the run (the option
// `report`; docs/reference/run-format.md). A thread of its own reads the ring of events and the
// counters twenty times a second; the fault path is not asked to wait for it, and events that it
// was too slow for are counted as lost.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "core/base/json.h"
#include "core/published/sheet.h"
#include "core/recording/miss_curve.h"
#include "core/recording/reuse_distances.h"
#include "core/recording/site_table.h"
#include "core/recording/timeline.h"
#include "outcore/result.h"

namespace outcore::recording {

// BufferState: the buffer that a runtime shares with other processes, as it is now.
struct BufferState {
  std::string name;  // empty: there is none
  uint64_t limit_bytes = 0, used_bytes = 0, used_bytes_max = 0;
};

class Recorder {
 public:
  static constexpr uint64_t kPeriodNs = 50'000'000;
  static constexpr size_t kFilesMax = 1024, kHeatMapsMax = 48, kDecisionsMax = 200;
  static constexpr size_t kOutMax = 1 << 16;  // pages that have left, to know what comes back

  // `policy`: the name of the policy as it is now; `buffer`: empty if there never is one. Both: any
  // thread, until finish(). Errors: ENOMEM (there is no memory for events), EAGAIN (no thread).
  static Result<std::unique_ptr<Recorder>> start(std::shared_ptr<published::Sheet> sheet,
                                                 std::function<std::string()> policy,
                                                 std::function<BufferState()> buffer = nullptr);
  ~Recorder();

  // The page cache of this entry is about to go. Any thread but the fault path.
  void note_end(const published::Entry& entry);

  // Ends the recording and gives the record, one object; `settings`: the options by name.
  // `metrics`: of the whole runtime, of now; what it counted before start() is taken off. Once.
  base::Json finish(const Metrics& metrics, const std::map<std::string, std::string>& settings);

 private:
  struct File {
    RegionMetrics seen;         // counters: of caches that are gone
    uint64_t buffer_pages = 0;  // of what came into these: pages of a buffer
    std::unique_ptr<HeatMap> heat;
  };
  struct Known {  // of a slot
    uint32_t users = 0, file = 0;
    uint32_t cache = 0;  // a number of its own, other than that of the slot's user before
    Counters before;     // what it had counted when the recording began
  };

  Recorder(std::shared_ptr<published::Sheet> sheet, std::function<std::string()> policy,
           std::function<BufferState()> buffer);
  void run();
  void end_thread();
  // REQUIRES: the lock.
  void drain();
  void find_files();
  void take(const published::Event& event);
  void note_moment(double at_s);
  void note_decision(double at_s, std::string what);
  void sample_less();
  uint64_t resident_bytes() const;
  static void add_counters_of(const published::StoreSlot& slot, const Counters& before, File* file);
  void note_beginning();
  Counters counters_of_now() const;
  void look_at_buffer(const Counters& now);
  base::Json files_json(double seconds);
  base::Json curve_json() const;
  double seconds_at(uint64_t time_ns) const;

  const std::shared_ptr<published::Sheet> sheet_;
  const std::function<std::string()> policy_;
  const std::function<BufferState()> buffer_;
  const uint64_t start_ns_, started_ns_;  // now; since 1970
  Counters before_;                       // what the runtime had counted when the recording began
  LatencyHistogram latency_before_;
  std::thread thread_;
  std::atomic<uint32_t> is_ending_{0};

  std::mutex lock_;  // of all that follows
  bool is_finished_ = false;
  uint64_t next_event_ = 0, lost_ = 0;
  uint32_t caches_ = 0;  // seen so far
  std::array<Known, published::Layout::kSlots> known_{};
  std::vector<File> files_;
  std::map<std::string, uint32_t> file_of_uri_;
  Timeline timeline_;
  SiteTable sites_;
  std::unordered_set<uint64_t> out_;  // the names of pages that have left
  MissCurve curve_;
  ReuseDistances reuse_;
  std::string policy_first_, policy_now_;
  base::Json run_command_;  // at the start
  uint64_t budget_now_ = 0;
  // When the last moment was noted. A buffer has a name here as long as most of what came in are
  // its pages: then its limit is the budget, and its use what is used.
  BufferState buffer_now_;
  uint64_t buffer_pages_ = 0;
  base::Json decisions_ = base::Json::array();
};

}  // namespace outcore::recording
