#include "core/tests/sim/simulation.h"

#include <algorithm>
#include <cstring>

#include "core/region/address_map.h"
#include "core/region/view_pool.h"
#include "core/tests/sim/app.h"
#include "core/tests/sim/random_probes.h"

namespace outcore::sim {

using base::kSystemPage;
using base::round_up;

namespace {

// Simulated addresses: nothing is ever mapped there. They are never reused, because a failed run
// leaves its views behind.
std::byte* take_addresses() {
  static std::atomic<uint64_t> next{uint64_t{0x7000} << 32};
  return reinterpret_cast<std::byte*>(next.fetch_add(uint64_t{1} << 36));
}

}  // namespace

Simulation::Simulation(const Plan& plan, bool is_traced)
    : plan_(plan),
      fibers_(plan.seed, {.is_traced = is_traced}),
      kernel_(fibers_),
      next_address_(take_addresses()) {
  fibers_.describe = [this] { return describe(); };
}

// The pages that are not absent, by their words.
std::string Simulation::describe() const {
  constexpr const char* kStates[] = {"absent",  "filling",  "resident", "busy",  "unmapping",
                                     "leaving", "dropping", "failed",   "frozen"};
  if (engine_ == nullptr) return {};
  std::string text = "budget " + std::to_string(engine_->pager().budget.used()) + " of " +
                     std::to_string(engine_->pager().budget.limit()) + "\n";
  for (const auto& file : files_) {
    const uint64_t pages = file->cache == nullptr ? 0 : file->cache->page_count();
    for (uint64_t page = 0; page < pages; ++page) {
      // Without the scheduling point of load(), because the run has ended.
      uint64_t bits = 0;
      std::memcpy(&bits, &file->cache->words[page], sizeof bits);
      const region::PageValue word(bits);
      if (word.state() == region::PageState::kAbsent) continue;
      const unsigned flags = bits >> 4 & 31;
      text += " " + std::to_string(page) + ":" + kStates[static_cast<int>(word.state())] +
              (flags == 0 ? "" : " flags " + std::to_string(flags)) +
              (word.pins() == 0 ? "" : " pins " + std::to_string(word.pins()));
      if (word.state() != region::PageState::kFilling &&
          word.state() != region::PageState::kFailed) {
        const budget::FrameRecord& record = engine_->pager().frames[word.frame()];
        text += record.is_in_policy != 0 ? "" : " not in the policy";
        text += record.list == 0 ? "" : " in list " + std::to_string(record.list);
      }
      text += ",";
    }
    text += "\n";
  }
  return text;
}

bool Simulation::run() {
  fibers_.add("main", [this] { live(); });
  const bool is_good = fibers_.run();
  tally_.steps = fibers_.steps();
  if (is_good) {
    engine_.reset();
    return true;
  }
  // Fibers are still inside: what they use must stay.
  static_cast<void>(engine_.release());
  for (auto& file : files_) static_cast<void>(file.release());
  return false;
}

void Simulation::live() {
  start_engine();
  for (const FilePlan& file : plan_.files) open_file(file);
  watch_memory();
  kernel_.refusals = plan_.refusals;
  for (auto& file : files_) file->store->behaviour = plan_.behaviour;
  services_left_ = plan_.keepers_running + plan_.prefetchers;
  for (unsigned i = 0; i < plan_.keepers_running; ++i)
    fibers_.add("keeper " + std::to_string(i), [this, i] { keep(i); });
  for (unsigned i = 0; i < plan_.prefetchers; ++i)
    fibers_.add("prefetch " + std::to_string(i), [this] { prefetch(); });
  apps_left_ = plan_.apps;
  for (unsigned i = 0; i < plan_.apps; ++i)
    fibers_.add("app " + std::to_string(i), [this, i] {
      App(*this, plan_.seed * 64 + i).run();
      --apps_left_;
      os::wake_all(&apps_left_);
    });
  for (uint32_t left; (left = apps_left_.load()) != 0;) os::wait(&apps_left_, left, 1'000'000'000);
  finish();
}

// Finds the smallest budget by a search, because it depends on the budget itself (buffers grow with
// it).
void Simulation::start_engine() {
  uint64_t page_bytes = 0;
  for (const FilePlan& file : plan_.files) page_bytes = std::max(page_bytes, file.page_bytes);
  paging::PagerOptions options;
  options.policy = plan_.policy;
  options.keepers = plan_.shards;
  options.prefetch_threads = plan_.prefetchers;
  options.readahead_bytes = plan_.readahead_bytes;
  options.wait_ns_max = plan_.wait_ns_max;
  options.has_threads = false;
  options.frames_max = (8 << 20) / kSystemPage;
  uint64_t budget = 256 << 10;
  for (;; budget += 64 << 10) {
    options.budget_bytes = budget;
    Result<std::unique_ptr<paging::Engine>> engine = paging::Engine::start(options);
    if (engine && engine.value()->pager().least_budget(page_bytes) <= budget) break;
  }
  budget_least_ = budget;
  budget_most_ = options.budget_bytes = budget + plan_.budget_slack;
  Result<std::unique_ptr<paging::Engine>> engine = paging::Engine::start(options);
  fibers_.require(engine.ok(), "the engine starts");
  engine_ = std::move(engine).value();
  for (const auto& shard : engine_->pager().shards)
    if (plan_.probe_permille != 0)
      shard->policy = std::make_unique<RandomProbes>(std::move(shard->policy), options.frames_max,
                                                     plan_.seed, plan_.probe_permille);
  fixed_bytes_ = engine_->pager().budget.used();
}

void Simulation::open_file(const FilePlan& plan) {
  files_.push_back(std::make_unique<SimFile>());
  SimFile& file = *files_.back();
  file.plan = plan;
  file.store = std::make_shared<SimStore>(fibers_, plan.store_bytes, plan.traits);
  file.store->set_event_source(&events_);
  file.oracle = std::make_unique<Oracle>(plan.store_bytes, plan.page_bytes);
  Random random(plan_.seed + files_.size());
  for (uint64_t i = 0; i < file.oracle->cell_count(); ++i) {
    if (i / 64 % 3 == 0) continue;  // holes
    Cell& cell = file.oracle->cell(i);
    cell.value = random.next();
    file.store->preset(Oracle::offset_of(i), std::as_bytes(std::span(&cell.value, 1)));
  }
  file.cache = std::make_unique<paging::PageCache>();
  paging::PageCache& cache = *file.cache;
  cache.traits = file.store->traits();
  cache.uri = file.store->uri();
  cache.store_bytes = plan.store_bytes;
  cache.store = file.store.get();
  cache.owned.push_back(file.store);
  cache.page_bytes = plan.page_bytes;
  cache.is_writable = !plan.is_read_only;
  cache.read_gate.set_limit(plan.traits.read_concurrency);
  cache.write_gate.set_limit(plan.traits.write_concurrency);
  const uint64_t pages = round_up(plan.store_bytes, plan.page_bytes) / plan.page_bytes;
  fibers_.require(cache.allocate_words(pages).ok(), "a table of page words");
  auto frames = std::make_unique<SimFrames>(kernel_, plan.model, pages * plan.page_bytes);
  frames->set_defect(plan_.defect);
  if (plan_.pages_max != 0 && plan.model == FramesModel::kProtected)
    frames->set_pages_max(plan_.pages_max * (plan.page_bytes / 4096));
  cache.frames = std::move(frames);
  const Status added = engine_->add_cache(&cache);
  fibers_.require(added.ok(), "the least budget is enough for the cache");
  const uint64_t offset = std::min(plan.view_offset, plan.store_bytes / 2 / 4096 * 4096);
  const uint64_t bytes = plan.store_bytes - offset;
  const Status mapped = map_view(file, offset, bytes, bytes, !plan.is_read_only);
  fibers_.require(mapped.ok(), "the first view is mapped");
}

void Simulation::watch_memory() {
  kernel_.on_memory = [this](uint64_t resident_bytes) {
    const uint64_t used = engine_->pager().budget.used();
    fibers_.require(resident_bytes + fixed_bytes_ <= used, "memory is used that was never taken",
                    resident_bytes, used - fixed_bytes_);
    fibers_.require(is_resizing_ || used <= engine_->pager().budget.limit(),
                    "the budget is exceeded", used, engine_->pager().budget.limit());
  };
}

// The thread of a keeper, as keeper.h describes it.
void Simulation::keep(unsigned index) {
  paging::Shard& shard = *engine_->pager().shards[index];
  while (!is_stopping_) {
    if (shard.is_called.load() == 0) os::wait(&shard.is_called, 0, 10'000'000);
    shard.is_called = 0;
    if (!engine_->keep(shard)) fibers_.let_pass(1'000'000);
  }
  --services_left_;
}

void Simulation::prefetch() {
  while (!is_stopping_)
    if (!engine_->run_prefetch()) fibers_.let_pass(100'000);
  while (engine_->run_prefetch()) {
  }
  --services_left_;
}

void Simulation::finish() {
  kernel_.refusals = {};
  is_faultless_ = true;
  for (auto& file : files_) {
    file->store->behaviour.read_failures = file->store->behaviour.write_failures = 0;
    file->store->behaviour.discard_failures = 0;
  }
  for (auto& file : files_) finish_file(*file);
  is_stopping_ = true;
  while (services_left_ != 0) fibers_.let_pass(1'000'000);
  for (auto& file : files_) {
    if (file->is_handed_back) file->views.clear();
    while (!file->views.empty()) unmap_view(*file, file->views.back().get());
    engine_->remove_cache(file->cache.get());
  }
  fibers_.require(kernel_.resident_bytes() == 0, "memory is left behind", kernel_.resident_bytes());
  fibers_.require(engine_->pager().budget.used() == fixed_bytes_, "budget is left behind",
                  engine_->pager().budget.used(), fixed_bytes_);
  fibers_.require(engine_->pager().is_valid(), "the engine is valid at the end");
}

void Simulation::finish_file(SimFile& file) {
  const uint64_t pages = file.cache->page_count();
  // The first flush may return an earlier error; then everything is written.
  static_cast<void>(flush(file, 0, pages));
  const Status flushed = flush(file, 0, pages);
  if (!flushed.ok()) fibers_.fail("the last flush fails: " + flushed.message());
  fibers_.require(!file.cache->write_failures.is_any(),
                  "degraded after a flush of all that succeeded");
  check_all(file);
  engine_->retry_failed(*file.cache, 0, pages);
  App reader(*this, plan_.seed);
  for (const auto& view : file.views)
    for (uint64_t i = 0; i < file.oracle->cell_count(); ++i)
      if (const uint64_t at = Oracle::offset_of(i); at >= view->offset && at + 8 <= view->end())
        reader.read_cell(file, *view, i);
}

void Simulation::check_all(SimFile& file) {
  const std::vector<std::byte> expected = file.oracle->all_bytes();
  const std::vector<std::byte>& stored = file.store->bytes();
  for (uint64_t i = 0; i < expected.size(); ++i)
    fibers_.require(stored[i] == expected[i],
                    "after the last flush the store has another byte than was written", i,
                    static_cast<uint64_t>(stored[i]));
}

}  // namespace outcore::sim
