// Cuts in a simulation: when a cut is stored, the stores must contain, byte by byte, what the
// oracles contained at its moment.
#include <cerrno>

#include "core/paging/cut.h"
#include "core/tests/sim/simulation.h"

namespace outcore::sim {

namespace {

// An oracle at one moment. Pages that a discard was changing are unknown.
struct Snapshot {
  std::vector<std::byte> bytes;
  std::vector<bool> is_unknown;  // by page
};

Snapshot snapshot_of(const SimFile& file) {
  Snapshot taken;
  taken.bytes = file.oracle->all_bytes();
  const uint64_t pages = file.cache->page_count();
  for (uint64_t page = 0; page < pages; ++page) {
    const PageUse& use = file.oracle->use_of_page(page);
    taken.is_unknown.push_back(use.is_discarded || use.is_undefined);
  }
  return taken;
}

}  // namespace

void Simulation::check_cut(const SimFile& file, const std::vector<std::byte>& expected,
                           const std::vector<bool>& is_unknown) {
  const std::vector<std::byte>& stored = file.store->bytes();
  for (uint64_t i = 0; i < expected.size(); ++i)
    if (!is_unknown[i / file.plan.page_bytes])
      fibers_.require(stored[i] == expected[i],
                      "a cut has another byte than there was at its moment", i,
                      static_cast<uint64_t>(stored[i]));
}

void Simulation::stop_apps() {
  stopped_ = 1;
  fibers_.step("apps are stopped");
}

void Simulation::let_apps_go() {
  stopped_ = 0;
  os::wake_all(&stopped_);
}

void Simulation::cut(Random& random) {
  std::vector<SimFile*> files;
  for (const auto& file : files_)
    if (!file->is_handed_back && !file->is_reshaping && random.chance(800))
      files.push_back(file.get());
  if (files.empty()) return;
  for (SimFile* file : files) ++file->calls;  // no reshape changes the store meanwhile
  std::vector<paging::PageCache*> caches;
  for (SimFile* file : files) caches.push_back(file->cache.get());
  std::vector<Snapshot> snapshots;
  bool is_stored = false;
  const bool is_bad = random.chance(100);
  paging::CutCalls calls;
  calls.candidate = [&] {
    snapshots.clear();
    for (const SimFile* file : files) snapshots.push_back(snapshot_of(*file));
  };
  calls.stored = [&]() -> Status {
    for (size_t i = 0; i < files.size(); ++i)
      check_cut(*files[i], snapshots[i].bytes, snapshots[i].is_unknown);
    fibers_.step("a cut is stored");
    for (size_t i = 0; i < files.size(); ++i)
      check_cut(*files[i], snapshots[i].bytes, snapshots[i].is_unknown);
    is_stored = true;
    if (is_bad) return Error{EIO, "on purpose"};
    return {};
  };
  if (random.chance(700)) {
    calls.stop = [&] {
      stop_apps();
      return uint32_t{1};
    };
    calls.go_on = [&] { let_apps_go(); };
  }
  const Result<paging::CutReport> cut = engine_->cut(caches, calls);
  for (SimFile* file : files) --file->calls;
  ++tally_.cuts;
  if (cut.ok()) {
    fibers_.require(is_stored, "a cut succeeds, and was not stored");
    tally_.frozen_pages += cut.value().frozen_pages;
    return;
  }
  ++tally_.failed_cuts;
  const bool is_refused = cut.code() == EAGAIN || (cut.code() == EBUSY && plan_.has_pins);
  if (!is_refused && !plan_.has_faults && !(is_bad && is_stored))
    fibers_.fail("a cut fails though nothing else does: " + cut.message());
}

}  // namespace outcore::sim
