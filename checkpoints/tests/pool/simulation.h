// Simulation: a pool that is used at random on a disk that loses its power, from one seed.
//
// Before every operation of the disk (or every n-th) what could be found after a loss of power is
// drawn, opened and compared: it must be the last commit that was acknowledged, or the one under
// way, whole, with its checkpoints. A run has several lives: each goes on from what its
// predecessor's end left. failure() says what was wrong first.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "checkpoints/pool/pool.h"
#include "checkpoints/tests/pool/model.h"
#include "checkpoints/tests/pool/sim_disk.h"
#include "core/tests/sim/random.h"

namespace outcore::versioned_test {

struct SimulationOptions {
  uint64_t check_permille = 1000;  // of the operations before which power is lost
  uint64_t lives = 3;
  uint64_t steps = 25;  // a life
  bool has_faults = false;
  SimFaults planted;  // bugs of the disk, for the simulation to find
};

class Simulation {
 public:
  Simulation(uint64_t seed, const SimulationOptions& options);
  void run();
  const std::string& failure() const { return failure_; }
  uint64_t check_count() const { return check_count_; }
  uint64_t base_count() const { return base_count_; }

 private:
  using Pool = versioned::Pool;

  void live();
  void step();
  bool open();
  void attach(const std::shared_ptr<SimDisk>& disk);
  void lose_power();
  void write_some(uint64_t chance_of_batch);
  void write_during_commit();
  void discard();
  void change_objects();
  void commit(bool is_checkpoint);
  void remove_checkpoints();
  void rename();
  void roll_back();
  void read();
  void snapshot();
  void reopen();
  // Runs an operation that ends in `maybe`, or changes nothing.
  void attempt(Outcome maybe, const std::function<bool()>& operation);
  void settle_failed_write(const std::string& object, uint64_t first, const Units& before,
                           const Units& wanted);

  void check();
  std::string mismatch(SimDisk& disk, uint64_t seed);
  std::string compare(Pool& pool, const Outcome& outcome);
  std::string compare_objects(const Outcome& outcome, Pool& pool);
  void fail(const std::string& what);
  std::string pick_object();
  std::string pick_checkpoint();
  void set_faults(bool is_on);

  const uint64_t seed_;
  const SimulationOptions options_;
  sim::Random random_;
  sim::Random checks_;  // its own, so that how often is checked changes nothing else
  std::shared_ptr<SimDisk> disk_;
  std::shared_ptr<Pool> pool_;
  Model current_;
  std::map<std::string, std::shared_ptr<versioned::Object>> handles_;
  Outcome sure_;
  std::optional<Outcome> maybe_;
  // A moment in the middle of an operation at which the life may have ended instead.
  struct Moment {
    std::shared_ptr<SimDisk> disk;
    Outcome sure;
    std::optional<Outcome> maybe;
  };
  std::optional<Moment> moment_;
  bool is_founded_ = false;
  bool is_committing_ = false, is_inside_ = false;
  std::shared_ptr<versioned::Snapshot> snapshot_;
  std::shared_ptr<const Model> snapshot_model_;
  uint32_t stamp_ = 0, name_ = 0;
  uint64_t check_count_ = 0, base_count_ = 0;
  std::string failure_;
};

}  // namespace outcore::versioned_test
