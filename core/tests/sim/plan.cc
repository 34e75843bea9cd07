#include "core/tests/sim/plan.h"

namespace outcore::sim {
namespace {

FilePlan make_file(Random& random, FramesModel model) {
  FilePlan file;
  file.model = model;
  constexpr uint64_t kPages[] = {4 << 10, 4 << 10, 16 << 10, 64 << 10};
  file.page_bytes = random.one_of(kPages);
  const uint64_t pages = file.page_bytes == 4096 ? random.between(40, 300) : random.between(12, 50);
  file.store_bytes = pages * file.page_bytes;
  // Half of the stores end within a page.
  if (random.chance(500)) file.store_bytes -= random.below(file.page_bytes);
  if (random.chance(250)) file.view_offset = 4096 * random.below(file.page_bytes / 4096 + 3);
  file.traits.is_fault_safe = random.chance(700);
  file.traits.can_read_while_written = random.chance(500);
  if (random.chance(300))
    file.traits.read_concurrency = static_cast<unsigned>(random.between(1, 3));
  if (random.chance(400))
    file.traits.write_concurrency = static_cast<unsigned>(random.between(1, 3));
  file.is_read_only = random.chance(200);
  return file;
}

}  // namespace

Plan Plan::make(uint64_t seed, FramesModel model) {
  Random random(seed ^ 0x517CC1B727220A95ull);
  Plan plan;
  plan.seed = seed;
  const char* const policies[] = {"s3-fifo", "di-mmap", "fifo"};
  plan.policy = random.one_of(policies);
  plan.shards = random.chance(300) ? 2 : 1;
  plan.prefetchers = random.chance(300) ? 2 : 1;
  plan.keepers_running = random.chance(800) ? plan.shards : 0;
  plan.apps = static_cast<unsigned>(random.between(1, 8));
  plan.ops = random.between(400, 2400) / plan.apps;
  plan.budget_slack = random.chance(500) ? 0 : random.below(1 << 20);
  plan.readahead_bytes = random.chance(600) ? 256 << 10 : 0;
  plan.has_pins = random.chance(600);
  plan.has_second_views = random.chance(500);
  const bool has_bad_store = random.chance(500);
  if (has_bad_store) {
    constexpr uint64_t kRates[] = {0, 2, 20, 100};
    plan.behaviour.read_failures = random.one_of(kRates);
    plan.behaviour.write_failures = random.one_of(kRates);
    plan.behaviour.discard_failures = random.one_of(kRates);
  }
  plan.behaviour.delay_steps_max = random.chance(500) ? random.below(30) : 0;
  const bool has_bad_kernel = random.chance(150);
  if (has_bad_kernel)
    plan.refusals = {random.below(20), random.below(20), random.below(20), random.below(20),
                     random.below(20)};
  plan.has_faults = has_bad_store || has_bad_kernel;
  plan.wait_ns_max = plan.has_faults ? 20'000'000 : 20'000'000'000;
  plan.files.push_back(make_file(random, model));
  if (random.chance(300)) {
    constexpr FramesModel kModels[] = {FramesModel::kShared, FramesModel::kPrivate,
                                       FramesModel::kProtected};
    plan.files.push_back(make_file(random, random.one_of(kModels)));
  }
  if (!plan.has_pins && random.chance(300)) plan.pages_max = 24 + random.below(16);
  // Without a keeper, nobody could write back for fillers that must not call the store.
  for (const FilePlan& file : plan.files)
    if (!file.traits.is_fault_safe) plan.keepers_running = plan.shards;
  plan.has_reshapes = random.chance(500);
  plan.has_cuts = random.chance(600);
  if (random.chance(250)) plan.policy = "auto";
  constexpr uint64_t kProbes[] = {0, 20, 200};
  plan.probe_permille = random.one_of(kProbes);
  return plan;
}

std::string Plan::describe() const {
  std::string text =
      "policy " + policy + ", probes " + std::to_string(probe_permille) + ", shards " +
      std::to_string(shards) + ", prefetchers " + std::to_string(prefetchers) + ", keepers " +
      std::to_string(keepers_running) + ", apps " + std::to_string(apps) + ", pages at most " +
      std::to_string(pages_max) + ", ops " + std::to_string(ops) + ", reshapes " +
      std::to_string(has_reshapes) + ", cuts " + std::to_string(has_cuts) + ", faults " +
      std::to_string(has_faults) + " (read " + std::to_string(behaviour.read_failures) +
      ", write " + std::to_string(behaviour.write_failures) + ", install " +
      std::to_string(refusals.install) + ", unmap " + std::to_string(refusals.unmap) + ")";
  constexpr const char* kNames[] = {"shared", "private", "protected"};
  for (const FilePlan& file : files)
    text += std::string("; ") + kNames[static_cast<int>(file.model)] + " frames, pages of " +
            std::to_string(file.page_bytes) + ", store of " + std::to_string(file.store_bytes) +
            ", view from " + std::to_string(file.view_offset) + ", read-only " +
            std::to_string(file.is_read_only) + ", fault safe " +
            std::to_string(file.traits.is_fault_safe) + ", read while written " +
            std::to_string(file.traits.can_read_while_written);
  return text;
}

}  // namespace outcore::sim
