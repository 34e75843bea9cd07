// Plan: everything that the seed of a simulated run decides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tests/sim/sim_frames.h"
#include "core/tests/sim/sim_store.h"

namespace outcore::sim {

struct FilePlan {
  FramesModel model = FramesModel::kShared;
  uint64_t page_bytes = 4096;
  uint64_t store_bytes = 0;
  uint64_t view_offset = 0;   // of the first view
  bool is_read_only = false;  // all views are: its bytes change in the store alone
  StoreTraits traits;
};

struct Plan {
  uint64_t seed = 0;
  std::string policy = "s3-fifo";
  uint64_t probe_permille = 0;  // of the resident pages, a turn
  unsigned shards = 1;
  unsigned prefetchers = 1;
  unsigned keepers_running = 1;  // 0: fillers must help themselves
  unsigned apps = 1;
  uint64_t ops = 0;           // for each app
  uint64_t budget_slack = 0;  // in addition to the smallest budget that works
  uint64_t readahead_bytes = 0;
  // How many pages protected frames can show, independent of the budget; 0: any number.
  uint64_t pages_max = 0;
  uint64_t wait_ns_max = 0;
  bool has_faults = false;  // in the store or the kernel
  bool has_pins = true;
  bool has_second_views = true;
  // Views are cut, extended, blocked and handed back, as by `outcore run`.
  bool has_reshapes = true;
  bool has_cuts = true;
  SimStore::Behaviour behaviour;
  SimKernel::Refusals refusals;
  SimFrames::Defect defect = SimFrames::Defect::kNone;
  std::vector<FilePlan> files;

  static Plan make(uint64_t seed, FramesModel model);
  std::string describe() const;
};

}  // namespace outcore::sim
