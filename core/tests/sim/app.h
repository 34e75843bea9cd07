// App: one simulated program thread, which touches, pins, flushes and advises as its seed decides.
#pragma once

#include "core/tests/sim/simulation.h"

namespace outcore::sim {

class App {
 public:
  App(Simulation& simulation, uint64_t seed) : sim_(simulation), random_(seed) {}

  void run();
  // Reads or writes one cell through the view's page table, and takes the faults. False if the page
  // could not be filled.
  bool read_cell(SimFile& file, SimView& view, uint64_t cell);
  bool write_cell(SimFile& file, SimView& view, uint64_t cell);

 private:
  struct Pin {
    SimFile* file;
    SimView* view;
    std::byte* from;
    uint64_t size_bytes;
  };
  static constexpr size_t kPinsMax = 3;

  void act();
  void touch_some(SimFile& file, SimView& view);
  void hold_and_copy(SimFile& file, SimView& view);
  void pin_range(SimFile& file, SimView& view);
  void write_pinned();
  void unpin_one();
  void flush_range(SimFile& file);
  void evict_range(SimFile& file);
  void cool_range(SimFile& file);
  void prefetch_range(SimFile& file, SimView& view);
  void discard_range(SimFile& file, SimView& view);
  void rewrite(SimFile& file, SimView& view, uint64_t first, uint64_t end);
  void resize();
  void change_views(SimFile& file);
  void reshape(SimFile& file);
  void call(SimFile& file, SimView& view, uint64_t dice);

  void fault_with_others(region::View& view, const os::Touch& own);
  std::byte* touch(SimFile& file, SimView& view, std::byte* address, bool is_write);
  void check_cell(SimFile& file, uint64_t cell, uint64_t seen);
  void set_cell(SimFile& file, uint64_t cell, std::byte* bytes);
  // A cell that the view shows; false if it shows none.
  bool pick_cell(SimFile& file, const SimView& view, uint64_t* cell);
  static std::byte* address_of(const SimView& view, uint64_t offset) {
    return view.address + (offset - view.offset);
  }

  Simulation& sim_;
  Random random_;
  std::vector<Pin> pins_;
  bool is_inside_ = false;  // a call, which signals do not interrupt
};

}  // namespace outcore::sim
