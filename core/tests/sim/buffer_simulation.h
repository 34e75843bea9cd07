// BufferSimulation: processes that share a file in a buffer come, work, leave, are stopped and are
// killed, as one seed decides; every read of each is compared with what was last written.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/tests/sim/buffer_process.h"

namespace outcore::sim {

class BufferSimulation {
 public:
  BufferSimulation(const BufferPlan& plan, bool is_traced);
  ~BufferSimulation();

  // False after a failure; what killed processes had stays in memory in any case.
  bool run();
  Fibers& fibers() { return world_.fibers; }
  const BufferWorld::Tally& tally() const { return world_.tally; }

 private:
  void live();
  void begin_process();
  void befall(BufferProcess& process);
  void stop(const BufferProcess& process);
  void let_go_on();
  uint64_t all_stand_still_ns();
  bool may_be_killed(const BufferProcess& process);
  bool could_store(const BufferProcess& process, const buffer::FileRecord& file) const;
  bool is_all_over() const;
  unsigned living() const;
  void finish();
  void check_memory();
  void map_words();
  std::string describe() const;

  BufferWorld world_;
  // Makes the buffer and stays to the end: no program, no threads, nobody's heir.
  std::unique_ptr<buffer::Member> anchor_;
  buffer::Board* board_ = nullptr;
  std::vector<std::unique_ptr<BufferProcess>> processes_;
  // By the process's number; and until when one that was stopped is not stopped again.
  std::map<uint32_t, uint64_t> stopped_until_ns_, runs_until_ns_;
};

}  // namespace outcore::sim
