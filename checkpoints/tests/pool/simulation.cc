#include "checkpoints/tests/pool/simulation.h"

#include "checkpoints/pool/verify.h"

namespace outcore::versioned_test {
namespace {

constexpr uint32_t kChunkBytes = 1024;

template <typename Map>
std::string pick_key(const Map& map, sim::Random& random) {
  if (map.empty()) return {};
  auto at = map.begin();
  std::advance(at, static_cast<ptrdiff_t>(random.below(map.size())));
  return at->first;
}

}  // namespace

Simulation::Simulation(uint64_t seed, const SimulationOptions& options)
    : seed_(seed), options_(options), random_(seed), checks_(seed + 1'000'000'007) {
  attach(std::make_shared<SimDisk>(seed));
}

void Simulation::attach(const std::shared_ptr<SimDisk>& disk) {
  disk_ = disk;
  disk_->faults = options_.planted;
  disk_->before_change = [this] {
    if (checks_.chance(options_.check_permille)) check();
    if (is_founded_ && !is_inside_ && checks_.chance(60))
      moment_ = Moment{disk_->after_kill(), sure_, maybe_};
    if (is_committing_) write_during_commit();
  };
}

void Simulation::fail(const std::string& what) {
  if (failure_.empty())
    failure_ = "seed " + std::to_string(seed_) + ", operation " +
               std::to_string(disk_->operation_count) + ": " + what;
}

void Simulation::set_faults(bool is_on) {
  SimFaults faults = options_.planted;
  if (is_on && options_.has_faults && random_.chance(150)) {
    faults.enospc_permille = random_.one_of({uint64_t{0}, uint64_t{300}, uint64_t{1000}});
    faults.eio_permille = random_.one_of({uint64_t{0}, uint64_t{0}, uint64_t{300}});
    faults.sync_eio_permille = random_.one_of({uint64_t{0}, uint64_t{0}, uint64_t{100}});
  }
  disk_->faults = faults;
}

bool Simulation::open() {
  versioned::PoolOptions options;
  options.may_create = true;
  options.chunk_bytes = kChunkBytes;
  options.delta_bytes_min = 600;
  auto pool = Pool::open(disk_, options);
  if (!pool) {
    fail("open: " + pool.message());
    return false;
  }
  is_founded_ = true;
  pool_ = pool.value();
  return true;
}

void Simulation::run() {
  for (uint64_t life = 0; life < options_.lives && failure_.empty(); ++life) {
    live();
    lose_power();
  }
}

void Simulation::live() {
  if (!open()) return;
  for (uint64_t i = 0; i < options_.steps && failure_.empty(); ++i) {
    set_faults(true);
    step();
    set_faults(false);
    if (!pool_->is_valid()) fail("maps, graves and bits do not agree");
    // Nothing more can be stored: people open it again.
    if (!pool_->can_commit()) return;
  }
}

// The process dies, too, or dies alone: then what it wrote is still in the kernel's memory.
void Simulation::lose_power() {
  if (!failure_.empty()) return;
  std::shared_ptr<SimDisk> dying = disk_;
  if (moment_ && random_.chance(500)) {
    dying = moment_->disk;
    sure_ = moment_->sure;
    maybe_ = moment_->maybe;
  }
  moment_.reset();
  // A kill leaves what was written in the kernel's memory.
  const auto found =
      random_.chance(400) ? dying->after_kill() : dying->after_power_loss(random_.next());
  // What the dying process does at its end goes to a disk that nobody looks at any more.
  disk_->before_change = nullptr;
  snapshot_.reset();
  pool_.reset();
  handles_.clear();
  attach(found);
  // What it has is now what it has for sure.
  disk_->before_change = nullptr;
  if (!open()) return;
  std::string why = compare(*pool_, sure_);
  if (!why.empty() && maybe_) {
    const std::string other = compare(*pool_, *maybe_);
    if (other.empty()) sure_ = *maybe_, why.clear();
  }
  if (!why.empty()) fail("after the end of a life: " + why);
  maybe_.reset();
  current_ = *sure_.last;
  pool_.reset();
  attach(disk_);
}

void Simulation::check() {
  if (is_inside_ || !failure_.empty()) return;
  is_inside_ = true;
  ++check_count_;
  const uint64_t seed = checks_.next();
  const auto found = disk_->after_power_loss(seed);
  const std::string why = mismatch(*found, seed);
  if (!why.empty()) fail("power lost: " + why + " (state " + std::to_string(seed) + ")");
  is_inside_ = false;
}

std::string Simulation::mismatch(SimDisk& disk, uint64_t seed) {
  versioned::PoolOptions options;
  options.may_create = !is_founded_;
  const auto shared = std::shared_ptr<SimDisk>(&disk, [](SimDisk*) {});
  auto pool = Pool::open(shared, options);
  if (!pool) return "open: " + pool.message();
  std::string why = compare(*pool.value(), sure_);
  if (!why.empty() && maybe_) {
    const std::string other = compare(*pool.value(), *maybe_);
    why = other.empty() ? "" : why + "; or " + other;
  }
  if (!why.empty()) return why;
  if (!pool.value()->is_valid()) return "maps, graves and bits do not agree";
  const auto checked = versioned::verify_pool(shared);
  if (!checked) return "verify: " + checked.message();
  if (!checked->bad.empty()) return "verify finds " + checked->bad.front().why;
  // It can be written to.
  if (seed % 4 == 0)
    if (const auto done = pool.value()->commit("after"); !done) return "commit: " + done.message();
  return {};
}

std::string Simulation::compare(Pool& pool, const Outcome& outcome) {
  const auto checkpoints = pool.checkpoints();
  if (checkpoints.size() != outcome.checkpoints.size())
    return std::to_string(checkpoints.size()) + " checkpoints instead of " +
           std::to_string(outcome.checkpoints.size());
  for (const auto& [name, model] : outcome.checkpoints) {
    const auto at = pool.open_at(name);
    if (!at) return "checkpoint " + name + ": " + at.message();
    if (at.value()->objects().size() != model->objects.size())
      return "checkpoint " + name + " has another number of objects";
    for (const auto& [object, units] : model->objects) {
      const versioned::StateObject* const found = at.value()->find(object);
      if (found == nullptr || found->size_bytes != units.size() * kUnit)
        return "checkpoint " + name + ": object " + object + " is absent or has another size";
      std::vector<std::byte> bytes(found->size_bytes);
      if (at.value()->read(*found, 0, bytes) != 0) return at.value()->last_failure();
      for (size_t i = 0; i < units.size(); ++i)
        if (!is_unit(bytes.data() + i * kUnit, units[i]))
          return "checkpoint " + name + ": " + object + " has other bytes in unit " +
                 std::to_string(i);
    }
  }
  return compare_objects(outcome, pool);
}

std::string Simulation::compare_objects(const Outcome& outcome, Pool& pool) {
  if (pool.objects().size() != outcome.last->objects.size())
    return std::to_string(pool.objects().size()) + " objects instead of " +
           std::to_string(outcome.last->objects.size());
  for (const auto& [name, units] : outcome.last->objects) {
    const auto object = pool.find(name);
    if (object == nullptr || object->size_bytes() != units.size() * kUnit)
      return "object " + name + " is absent or has another size";
    std::vector<std::byte> bytes(object->size_bytes());
    if (pool.read(*object, 0, bytes) != 0) return pool.last_failure();
    for (size_t i = 0; i < units.size(); ++i)
      if (!is_unit(bytes.data() + i * kUnit, units[i]))
        return "object " + name + " has other bytes in unit " + std::to_string(i);
  }
  return {};
}

std::string Simulation::pick_object() { return pick_key(current_.objects, random_); }
std::string Simulation::pick_checkpoint() { return pick_key(sure_.checkpoints, random_); }

}  // namespace outcore::versioned_test
