// What a simulated program does with its pool. See simulation.h.
#include <algorithm>

#include "checkpoints/tests/pool/simulation.h"

namespace outcore::versioned_test {
namespace {

constexpr uint64_t kUnitsMax = 60;
constexpr size_t kObjectsMax = 3;
constexpr size_t kCheckpointsMax = 5;

}  // namespace

void Simulation::step() {
  switch (random_.below(16)) {
    case 0:
    case 1:
      return change_objects();
    case 2:
    case 3:
      return commit(false);
    case 4:
    case 5:
      return commit(true);
    case 6:
      return remove_checkpoints();
    case 7:
      return random_.chance(500) ? rename() : roll_back();
    case 8:
      return discard();
    case 9:
      return random_.chance(300) ? reopen() : read();
    case 10:
      return snapshot();
    default:
      return write_some(400);
  }
}

void Simulation::attempt(Outcome maybe, const std::function<bool()>& operation) {
  const std::string journal_before = disk_->has("journal.000002") ? "2" : "";
  maybe_ = std::move(maybe);
  handles_.clear();  // find() waits for the commit
  for (const auto& object : pool_->objects()) handles_[object->name()] = object;
  is_committing_ = true;
  const bool is_done = operation();
  is_committing_ = false;
  if (is_done) {
    sure_ = *maybe_;
    maybe_.reset();
  } else if (pool_->can_commit()) {
    maybe_.reset();
  }
  base_count_ += journal_before.empty() && disk_->has("journal.000002");
}

void Simulation::commit(bool is_checkpoint) {
  if (is_checkpoint && sure_.checkpoints.size() >= kCheckpointsMax) return;
  Outcome maybe = sure_;
  maybe.last = std::make_shared<Model>(current_);
  const std::string name = is_checkpoint ? "c" + std::to_string(++name_) : "";
  if (is_checkpoint) maybe.checkpoints[name] = maybe.last;
  const bool is_sync = !is_checkpoint && random_.chance(500);
  attempt(maybe, [&] { return is_sync ? pool_->sync() == 0 : pool_->commit(name, "it").ok(); });
}

void Simulation::remove_checkpoints() {
  if (sure_.checkpoints.empty()) return;
  Outcome maybe = sure_;
  std::vector<std::string> names;
  for (uint64_t i = 1 + random_.below(3); i > 0; --i) {
    names.push_back(pick_checkpoint());
    maybe.checkpoints.erase(names.back());
  }
  attempt(maybe, [&] {
    const Status removed = pool_->remove(names);
    if (!removed && removed.code() == EBUSY && snapshot_ == nullptr)
      fail("nobody reads: " + removed.message());
    return removed.ok();
  });
}

void Simulation::rename() {
  if (sure_.checkpoints.empty()) return;
  Outcome maybe = sure_;
  const std::string from = pick_checkpoint(), to = "c" + std::to_string(++name_);
  maybe.checkpoints[to] = maybe.checkpoints[from];
  maybe.checkpoints.erase(from);
  attempt(maybe, [&] { return pool_->rename(from, to).ok(); });
}

void Simulation::roll_back() {
  if (sure_.checkpoints.empty()) return;
  const std::string name = pick_checkpoint();
  Outcome maybe = sure_;
  maybe.last = maybe.checkpoints[name];
  current_ = *maybe.last;
  attempt(maybe, [&] { return pool_->roll_back(name).ok(); });
}

void Simulation::reopen() {
  snapshot_.reset();
  Outcome maybe = sure_;
  maybe.last = std::make_shared<Model>(current_);
  bool is_closed = false;
  attempt(maybe, [&] { return is_closed = pool_->close().ok(); });
  set_faults(false);
  if (!is_closed && !maybe_) {  // its destructor tries once more
    maybe_ = sure_;
    maybe_->last = std::make_shared<Model>(current_);
  }
  // close() left nothing uncertain, or both may be there.
  pool_.reset();
  disk_->before_change = nullptr;
  if (!open()) return;
  if (maybe_ && !compare(*pool_, sure_).empty()) sure_ = *maybe_;
  if (const std::string why = compare(*pool_, sure_); !why.empty()) fail("opened again: " + why);
  maybe_.reset();
  current_ = *sure_.last;
  attach(disk_);
}

void Simulation::change_objects() {
  const uint64_t units = random_.below(kUnitsMax);
  if (current_.objects.size() < kObjectsMax && random_.chance(600)) {
    const std::string name = "o" + std::to_string(random_.below(5));
    const bool is_new = !current_.objects.contains(name);
    const auto made = pool_->create(name, units * kUnit);
    if (made.ok() != is_new) fail("create: " + (made ? "made twice" : made.message()));
    if (is_new) current_.objects[name] = Units(units);
    return;
  }
  const std::string name = pick_object();
  if (name.empty()) return;
  if (random_.chance(200)) {
    current_.objects.erase(name);
    if (const Status s = pool_->remove_object(name); !s) fail(s.message());
    return;
  }
  const auto object = pool_->find(name);
  Units& now = current_.objects[name];
  if (pool_->resize(*object, units * kUnit) == 0) return now.resize(units);
  // It has a part of what was cut away.
  std::vector<std::byte> bytes(now.size() * kUnit);
  if (pool_->read(*object, 0, bytes) != 0) return fail(pool_->last_failure());
  for (size_t i = 0; i < now.size(); ++i) {
    if (is_unit(bytes.data() + i * kUnit, now[i])) continue;
    if (i < units || !is_unit(bytes.data() + i * kUnit, 0)) fail("a resize that failed wrote");
    now[i] = 0;
  }
}

void Simulation::settle_failed_write(const std::string& name, uint64_t first, const Units& before,
                                     const Units& wanted) {
  const auto object = pool_->find(name);
  std::vector<std::byte> bytes(wanted.size() * kUnit);
  if (pool_->read(*object, first * kUnit, bytes) != 0) return fail(pool_->last_failure());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool is_written = is_unit(bytes.data() + i * kUnit, wanted[i]);
    if (!is_written && !is_unit(bytes.data() + i * kUnit, before[i]))
      fail("a write that failed left other bytes");
    current_.objects[name][first + i] = is_written ? wanted[i] : before[i];
  }
}

void Simulation::write_some(uint64_t chance_of_batch) {
  const std::string name = pick_object();
  if (name.empty() || current_.objects[name].empty()) return;
  const auto object = pool_->find(name);
  Units& units = current_.objects[name];
  const uint64_t first = random_.below(units.size());
  const uint64_t count = 1 + random_.below(units.size() - first);
  Units wanted(count);
  std::vector<std::byte> bytes(count * kUnit);
  for (uint64_t i = 0; i < count; ++i) {
    wanted[i] = random_.chance(100) ? 0 : ++stamp_;
    fill_unit(bytes.data() + i * kUnit, wanted[i]);
  }
  const Units before(units.begin() + static_cast<ptrdiff_t>(first),
                     units.begin() + static_cast<ptrdiff_t>(first + count));
  int error = 0;
  if (random_.chance(chance_of_batch)) {
    std::vector<StoreRequest> batch;
    for (uint64_t i = 0; i < count;) {
      const uint64_t size = 1 + random_.below(std::min<uint64_t>(count - i, 9));
      batch.push_back({(first + i) * kUnit, bytes.data() + i * kUnit, size * kUnit, true, 77});
      i += size;
    }
    for (size_t i = batch.size(); i > 1; --i) std::swap(batch[i - 1], batch[random_.below(i)]);
    pool_->transfer(*object, batch);
    for (const StoreRequest& r : batch) error = r.result != 0 ? r.result : error;
  } else {
    error = pool_->write(*object, first * kUnit, bytes);
  }
  if (error != 0) return settle_failed_write(name, first, before, wanted);
  std::copy(wanted.begin(), wanted.end(), units.begin() + static_cast<ptrdiff_t>(first));
}

// Another thread writes while a commit is under way: that belongs to the next one.
void Simulation::write_during_commit() {
  if (is_inside_ || disk_->is_punching || !failure_.empty() || !random_.chance(250)) return;
  is_inside_ = true;
  const std::string name = pick_object();
  Units* const units = name.empty() ? nullptr : &current_.objects[name];
  if (units != nullptr && !units->empty() && handles_.contains(name)) {
    const auto object = handles_[name];
    const uint64_t at = random_.below(units->size());
    std::byte bytes[kUnit];
    fill_unit(bytes, ++stamp_);
    if (!object->is_removed() && object->size_bytes() == units->size() * kUnit &&
        pool_->write(*object, at * kUnit, bytes) == 0)
      (*units)[at] = stamp_;
  }
  is_inside_ = false;
}

void Simulation::discard() {
  const std::string name = pick_object();
  if (name.empty() || current_.objects[name].empty()) return;
  Units& units = current_.objects[name];
  const uint64_t first = random_.below(units.size());
  const uint64_t count = 1 + random_.below(units.size() - first);
  const Units before(units.begin() + static_cast<ptrdiff_t>(first),
                     units.begin() + static_cast<ptrdiff_t>(first + count));
  const int error = pool_->discard(*pool_->find(name), first * kUnit, count * kUnit);
  if (error != 0) return settle_failed_write(name, first, before, Units(count));
  std::fill_n(units.begin() + static_cast<ptrdiff_t>(first), count, 0);
}

void Simulation::read() {
  Outcome now;
  now.last = std::make_shared<Model>(current_);
  if (const std::string why = compare_objects(now, *pool_); !why.empty()) fail(why);
  if (snapshot_ == nullptr) return;
  for (const auto& [name, units] : snapshot_model_->objects) {
    const versioned::StateObject* const object = snapshot_->find(name);
    if (object == nullptr) return fail("a snapshot lacks an object");
    std::vector<std::byte> bytes(object->size_bytes);
    if (snapshot_->read(*object, 0, bytes) != 0) return fail(snapshot_->last_failure());
    for (size_t i = 0; i < units.size(); ++i)
      if (!is_unit(bytes.data() + i * kUnit, units[i])) fail("a snapshot has other bytes");
  }
}

void Simulation::snapshot() {
  if (snapshot_ != nullptr) {
    read();
    snapshot_.reset();
    return;
  }
  const std::string name = random_.chance(500) ? pick_checkpoint() : "";
  auto at = pool_->open_at(name);
  if (!at) return fail("open_at: " + at.message());
  snapshot_ = at.value();
  snapshot_model_ = name.empty() ? sure_.last : sure_.checkpoints[name];
}

}  // namespace outcore::versioned_test
