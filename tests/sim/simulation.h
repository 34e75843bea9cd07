// Simulation: the engine over a simulated kernel and stores, driven by programs whose every read is
// compared with an oracle. One seed decides all of it.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "paging/engine.h"
#include "tests/sim/oracle.h"
#include "tests/sim/plan.h"

namespace outcore::sim {

struct SimView {
  region::View* view = nullptr;
  unsigned users = 0;  // app fibers in the middle of something with it
};

// A store, its space, its views and its oracle.
struct SimFile {
  FilePlan plan;
  std::shared_ptr<SimStore> store;
  std::unique_ptr<paging::Space> space;
  std::unique_ptr<Oracle> oracle;
  std::vector<std::unique_ptr<SimView>> views;
};

class Simulation {
 public:
  Simulation(const Plan& plan, bool is_traced);

  // False after a failure.
  bool run();
  const std::string& failure() const { return fibers_.failure(); }
  uint64_t trace_hash() const { return fibers_.trace_hash(); }
  Fibers& fibers() { return fibers_; }
  struct Tally {
    uint64_t touches = 0, faults = 0, failed_faults = 0, evicted_writes = 0, flushes = 0,
             flush_errors = 0, rescues = 0, steps = 0;
  };
  const Tally& tally() const { return tally_; }

 private:
  friend class App;
  // simulation.cc
  void live();
  void start_engine();
  void open_file(const FilePlan& plan);
  void watch_memory();
  void keep(unsigned shard);
  void prefetch();
  void finish();
  void finish_file(SimFile& file);
  void check_all(SimFile& file);
  std::string describe() const;
  // views.cc
  Status map_view(SimFile& file, uint64_t offset, uint64_t size_bytes, bool is_writable);
  void unmap_view(SimFile& file, SimView* leaving);
  Status flush(SimFile& file, uint64_t first, uint64_t end);

  const Plan plan_;
  Fibers fibers_;
  SimKernel kernel_;
  std::unique_ptr<paging::Engine> engine_;
  std::vector<std::unique_ptr<SimFile>> files_;
  uint64_t fixed_bytes_ = 0;  // bounce and write buffers
  uint64_t budget_least_ = 0, budget_most_ = 0;
  uint64_t events_ = 0;  // a count of everything that the oracle orders
  bool is_resizing_ = false, is_faultless_ = false;
  bool is_stopping_ = false;
  std::atomic<uint32_t> apps_left_{0}, services_left_{0};
  os::Lock mapping_;
  std::byte* next_address_ = nullptr;
  Tally tally_;
};

}  // namespace outcore::sim
