// What can be done with a pool's checkpoints: list, remove, rename, roll back, read.
#include <algorithm>
#include <cerrno>

#include "checkpoints/pool/pool.h"
#include "core/base/assert.h"
#include "core/base/error.h"

namespace outcore::versioned {
namespace {

Error no_such(const std::string& attempted) {
  return {ENOENT, attempted + ": there is none of this name: `outcore checkpoint ls` lists them"};
}

}  // namespace

std::vector<CheckpointInfo> Pool::checkpoints() const {
  const std::lock_guard guard(mutex_);
  std::vector<CheckpointInfo> all;
  for (const Checkpoint& checkpoint : checkpoints_) all.push_back({checkpoint, 0});
  const std::vector<uint32_t> held = holds();
  for (const Grave& grave : heap_->kept()) {
    const auto first = std::lower_bound(held.begin(), held.end(), grave.birth);
    const bool is_of_one = first != held.end() && *first < grave.death &&
                           (first + 1 == held.end() || *(first + 1) >= grave.death);
    if (!is_of_one) continue;
    const auto owner =
        std::lower_bound(all.begin(), all.end(), *first,
                         [](const CheckpointInfo& c, uint32_t n) { return c.about.number < n; });
    if (owner != all.end() && owner->about.number == *first) owner->only_bytes += chunk_bytes_;
  }
  return all;
}

Status Pool::remove(const std::vector<std::string>& names) {
  const std::lock_guard guard(mutex_);
  std::vector<uint32_t> numbers;
  const auto unclaim_all = [&] {
    for (const uint32_t number : numbers) disk_->unclaim(number);
  };
  std::string attempted = "remove checkpoints of " + folder_;
  if (Status s = check_usable(attempted); !s) return s;
  for (const std::string& name : names) {
    attempted = "remove the checkpoint '" + name + "' of " + folder_;
    const auto found = std::find_if(checkpoints_.begin(), checkpoints_.end(),
                                    [&](const Checkpoint& c) { return c.name == name; });
    if (found == checkpoints_.end()) return unclaim_all(), no_such(attempted);
    const uint32_t number = found->number;
    if (std::count(numbers.begin(), numbers.end(), number) > 0) continue;
    const bool is_read_here = read_commits_->has(number);
    if (is_read_here || !disk_->claim(number)) {
      unclaim_all();
      return Error{EBUSY, attempted + ": " +
                              (is_read_here ? "this process" : disk_->who_holds(number)) +
                              " reads it: end that first"};
    }
    numbers.push_back(number);
  }
  Encoder record;
  record.put(static_cast<uint32_t>(numbers.size()));
  for (const uint32_t number : numbers) record.put(number);
  const int error = numbers.empty()
                        ? 0
                        : append(RecordType::kRemoval, last_commit_, record.bytes(), {true, true});
  if (error == 0) {
    std::erase_if(checkpoints_, [&](const Checkpoint& c) {
      return std::count(numbers.begin(), numbers.end(), c.number) > 0;
    });
    heap_->free_runs(heap_->remove_unneeded(holds()));
    drop_journals();
  }
  unclaim_all();
  return error == 0 ? Status() : fail(error, attempted, journal_->is_broken());
}

Status Pool::rename(const std::string& from, const std::string& to) {
  const std::string attempted = "rename the checkpoint '" + from + "' of " + folder_;
  const std::lock_guard guard(mutex_);
  if (Status s = check_usable(attempted); !s) return s;
  if (Status s = check_name(to, attempted); !s) return s;
  Checkpoint* found = nullptr;
  for (Checkpoint& checkpoint : checkpoints_) {
    if (checkpoint.name == from) found = &checkpoint;
    if (checkpoint.name == to && from != to)
      return Error{EEXIST, attempted + " to '" + to + "': there is one: take another name"};
  }
  if (found == nullptr) return no_such(attempted);
  Encoder record;
  record.put(found->number);
  record.put(std::string_view(to));
  const int error = append(RecordType::kRename, last_commit_, record.bytes(), {true, true});
  if (error != 0) return fail(error, attempted, journal_->is_broken());
  found->name = to;
  return {};
}

Status Pool::roll_back(const std::string& name) {
  const std::string attempted = "go back to the checkpoint '" + name + "' of " + folder_;
  const std::lock_guard guard(mutex_);
  if (Status s = check_usable(attempted); !s) return s;
  const auto found = std::find_if(checkpoints_.begin(), checkpoints_.end(),
                                  [&](const Checkpoint& c) { return c.name == name; });
  if (found == checkpoints_.end()) return no_such(attempted);
  const auto state = load_commit(*disk_, found->number);
  if (!state) return Error{state.code(), attempted + ": " + state.message()};
  std::vector<std::shared_ptr<Object>> missing;
  for (const auto& [id, as] : state->objects) {
    if (objects_.contains(id)) continue;
    missing.emplace_back(new Object(id, as.name));
    missing.back()->map_ = ChunkMap::make();
    if (missing.back()->map_ == nullptr) return base::system_error(ENOMEM, attempted);
  }
  MappedArray<uint32_t> resurrected;
  if (const int error = restore(state.value(), missing, resurrected); error != 0) {
    // It is half done, and nothing of it is durable.
    return fail(error, attempted, true);
  }
  for (const auto& object : missing) objects_[object->id()] = object;
  std::erase_if(objects_, [](const auto& o) { return o.second->is_removed(); });
  if (const auto done = commit_locked({}, {}); !done)
    return Error{done.code(), attempted + ": " + done.message()};
  return {};
}

// Changes the maps to those of the state. Nobody writes meanwhile, and nothing is allocated from
// the program's heap.
int Pool::restore(const State& state, std::vector<std::shared_ptr<Object>>& missing,
                  MappedArray<uint32_t>& resurrected) {
  // This table is filled before, because sets allocate.
  for (const auto& [id, object] : objects_) changed_objects_.insert(id);
  for (const auto& object : missing) {
    changed_objects_.insert(object->id());
    reborn_objects_.insert(object->id());
  }
  const os::SignalBlock block;
  gate_.close();
  OC_ASSERT(std::all_of(missing.begin(), missing.end(),
                        [&](const auto& o) { return state.objects.contains(o->id()); }));
  int error = 0;
  for (const auto& [id, object] : objects_) {
    if (error != 0) break;
    const auto as = state.objects.find(id);
    error = as == state.objects.end() ? kill_all(*object)
                                      : restore_object(*object, as->second, resurrected);
  }
  for (size_t i = 0; i < missing.size() && error == 0; ++i)
    error = restore_object(*missing[i], state.objects.find(missing[i]->id())->second, resurrected);
  std::sort(resurrected.begin(), resurrected.end());
  if (error == 0) heap_->resurrect(resurrected);
  gate_.open();
  return error;
}

// Blocks of the state are not allocated to others meanwhile, so an equal block means an equal
// entry.
int Pool::restore_object(Object& object, const StateObject& as,
                         MappedArray<uint32_t>& resurrected) {
  const uint32_t now = interval_.load(), free_from = free_from_.load();
  OC_ASSERT(gate_.is_closed());
  ChunkMap& map = *object.map_;
  int error = 0;
  // Each chunk is exchanged in one step: concurrent readers find the old bytes or the new ones.
  const auto exchange = [&](uint64_t chunk, Entry old, Entry entry) {
    OC_ASSERT(old.block == 0 || old.birth <= now);
    if (old.block != 0 && old.birth < free_from) error = heap_->bury({old.block, old.birth, now});
    if (error != 0) return;
    map.set(chunk, entry);
    map.mark_changed(chunk);
    if (old.block != 0 && old.birth >= free_from) heap_->free(old.block);
  };
  map.for_each(0, UINT64_MAX, [&](uint64_t chunk, Entry old) {
    if (error == 0 && as.map->get(chunk).block == 0) exchange(chunk, old, Entry{});
  });
  as.map->for_each(0, UINT64_MAX, [&](uint64_t chunk, Entry entry) {
    const Entry old = map.get(chunk);
    if (error != 0 || old.block == entry.block) return;
    error = map.prepare(chunk);
    if (error == 0 && !resurrected.push_back(entry.block)) error = -ENOMEM;
    if (error == 0) exchange(chunk, old, entry);
  });
  object.size_bytes_.store(as.size_bytes, std::memory_order_release);
  return error;
}

Result<std::shared_ptr<Snapshot>> Pool::open_at(const std::string& name) {
  uint32_t commit = 0;
  {
    const std::lock_guard guard(mutex_);
    commit = last_commit_;
    const auto found = std::find_if(checkpoints_.begin(), checkpoints_.end(),
                                    [&](const Checkpoint& c) { return c.name == name; });
    if (!name.empty() && found == checkpoints_.end())
      return no_such("open the checkpoint '" + name + "' of " + folder_);
    if (!name.empty()) commit = found->number;
    read_commits_->add(commit);
  }
  return Snapshot::open_counted(disk_, commit, read_commits_);
}

bool Pool::has_checkpoint(const std::string& name) const {
  const std::lock_guard guard(mutex_);
  return is_taken(name);
}

bool Pool::is_taken(const std::string& name) const {
  return std::any_of(checkpoints_.begin(), checkpoints_.end(),
                     [&](const Checkpoint& checkpoint) { return checkpoint.name == name; });
}

}  // namespace outcore::versioned
