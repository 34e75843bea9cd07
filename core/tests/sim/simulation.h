// Simulation: the engine on a simulated kernel and simulated stores, used by programs whose every
// read is compared with an oracle. One seed determines everything.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/paging/engine.h"
#include "core/tests/sim/oracle.h"
#include "core/tests/sim/plan.h"

namespace outcore::sim {

// A mapping of a program. Its addresses stay the same while the view behind them changes.
struct SimView {
  region::View* view = nullptr;
  std::byte* address = nullptr;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;  // that are mapped
  bool is_writable = false;
  unsigned pins = 0;
  // Offsets that the program is about to unmap, and no longer touches.
  uint64_t closing_from = 0, closing_to = 0;
  // App fibers that are using it, by the generation in which they began.
  unsigned users[2] = {}, generation = 0;

  uint64_t end() const { return offset + size_bytes; }
  bool is_closing(uint64_t at) const { return at >= closing_from && at < closing_to; }
  bool is_used() const { return pins + users[0] + users[1] != 0; }
};

// A store, its cache, its views and its oracle.
struct SimFile {
  FilePlan plan;
  std::shared_ptr<SimStore> store;
  std::unique_ptr<paging::PageCache> cache;
  std::unique_ptr<Oracle> oracle;
  std::vector<std::unique_ptr<SimView>> views;
  // Like the lock of `outcore run`: calls of the program on its mappings, and changes of their
  // shape.
  unsigned calls = 0, pins = 0;
  bool is_reshaping = false;
  bool had_pins = false;        // when the change began; none can begin during the change
  bool is_handed_back = false;  // the kernel's own mappings have replaced the views
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
             flush_errors = 0, reshapes = 0, refused_reshapes = 0, cuts = 0, failed_cuts = 0,
             frozen_pages = 0, steps = 0;
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
  Status map_view(SimFile& file, uint64_t offset, uint64_t size_bytes, uint64_t reserved_bytes,
                  bool is_writable);
  void unmap_view(SimFile& file, SimView* leaving);
  Status flush(SimFile& file, uint64_t first, uint64_t end);
  // cuts.cc
  void cut(Random& random);
  void check_cut(const SimFile& file, const std::vector<std::byte>& expected,
                 const std::vector<bool>& is_unknown);
  void stop_apps();
  void let_apps_go();
  // reshape.cc
  void cut_view(SimFile& file, SimView& view, uint64_t from, uint64_t to);
  void give_view(SimFile& file, SimView& giving);
  void extend_view(SimFile& file, SimView& view, uint64_t size_bytes);
  void write_to_store(SimFile& file, uint64_t first, uint64_t end, Random& random);
  void hand_back(SimFile& file);
  bool begin_reshape(SimFile& file);
  void end_reshape(SimFile& file, const Status& status, bool is_refusal_right);
  void wait_for_users(SimView& view);
  void check_hidden(std::byte* address, uint64_t bytes);
  void check_stored(SimFile& file, uint64_t from, uint64_t to, const char* what);

  const Plan plan_;
  Fibers fibers_;
  SimKernel kernel_;
  std::unique_ptr<paging::Engine> engine_;
  std::vector<std::unique_ptr<SimFile>> files_;
  uint64_t fixed_bytes_ = 0;  // bounce and write buffers
  uint64_t budget_least_ = 0, budget_most_ = 0;
  uint64_t events_ = 0;  // counts everything that the oracle orders
  bool is_resizing_ = false, is_faultless_ = false;
  bool is_stopping_ = false;
  std::atomic<uint32_t> apps_left_{0}, services_left_{0};
  std::atomic<uint32_t> stopped_{0};  // a cut has stopped the apps: they do not touch memory
  os::Lock mapping_;
  std::byte* next_address_ = nullptr;
  Tally tally_;
};

}  // namespace outcore::sim
