// Whole or absent: a pool after a loss of power between any two operations of the disk.
//
// VERSIONED_SEEDS=N runs as many seeds, from VERSIONED_SEED on; OUTCORE_TEST_SHARE=N one part in N
// of the usual ones.
#include <gtest/gtest.h>

#include "checkpoints/tests/pool/pools.h"
#include "checkpoints/tests/pool/simulation.h"
#include "tests/share.h"

namespace outcore::versioned_test {
namespace {

uint64_t seeds() { return number_of("VERSIONED_SEEDS", scene::share_of(100)); }

struct Found {
  uint64_t seeds = 0, failed = 0, checks = 0, bases = 0;
  std::string first;
};

Found run_seeds(uint64_t first, uint64_t count, const SimulationOptions& options,
                bool stops_at_failure) {
  Found found;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Simulation simulation(seed, options);
    simulation.run();
    ++found.seeds;
    found.checks += simulation.check_count();
    found.bases += simulation.base_count();
    if (simulation.failure().empty()) continue;
    ++found.failed;
    if (found.first.empty()) found.first = simulation.failure();
    if (stops_at_failure) break;
  }
  return found;
}

TEST(PowerLoss, LeavesTheLastCommitOrTheOneUnderWay) {
  SimulationOptions options;
  const Found found = run_seeds(number_of("VERSIONED_SEED", 1), seeds(), options, true);
  EXPECT_EQ(found.first, "");
  EXPECT_GT(found.checks, found.seeds * 20);
  EXPECT_GT(found.bases, 0u);
  RecordProperty("cut_points", std::to_string(found.checks));
}

TEST(PowerLoss, LeavesTheSameWhereTheDiskIsFullOrFails) {
  SimulationOptions options;
  options.has_faults = true;
  const Found found = run_seeds(number_of("VERSIONED_SEED", 1), seeds(), options, true);
  EXPECT_EQ(found.first, "");
}

// The simulation can fail: it finds a disk that says that it has stored what it has not.
void expect_found(void (*plant)(SimFaults&)) {
  SimulationOptions options;
  plant(options.planted);
  EXPECT_GT(run_seeds(1, 100, options, true).failed, 0u);
}

TEST(PowerLoss, IsNoticedWhereDataIsNotSynced) {
  expect_found([](SimFaults& faults) { faults.drops_data_sync = true; });
}

TEST(PowerLoss, IsNoticedWhereTheJournalIsNotSynced) {
  expect_found([](SimFaults& faults) { faults.drops_journal_sync = true; });
}

TEST(PowerLoss, IsNoticedWhereTheFolderIsNotSynced) {
  expect_found([](SimFaults& faults) { faults.drops_folder_sync = true; });
}

}  // namespace
}  // namespace outcore::versioned_test
