#include "checkpoints/pool/rollback.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"

namespace outcore::versioned {

Status Rollback::roll_back(const std::string& name) {
  const std::string attempted = "go back to the checkpoint '" + name + "' of " + pool_.folder;
  const std::lock_guard guard(pool_.mutex);
  if (Status s = pool_.check_usable(attempted); !s) return s;
  const auto found = pool_.find_checkpoint(name, attempted);
  if (!found) return found.error();
  const auto state = load_commit(*pool_.disk, found.value()->number);
  if (!state) return Error{state.code(), attempted + ": " + state.message()};
  std::vector<std::shared_ptr<Object>> missing;
  for (const auto& [id, as] : state->objects) {
    if (pool_.objects.contains(id)) continue;
    auto map = ChunkMap::make();
    if (map == nullptr) return base::system_error(ENOMEM, attempted);
    missing.push_back(std::make_shared<Object>(id, as.name, 0, std::move(map)));
  }
  MappedArray<uint32_t> resurrected;
  if (const int error = restore(state.value(), missing, resurrected); error != 0) {
    // It is half done, and nothing of it is durable.
    return pool_.fail(error, attempted, true);
  }
  for (const auto& object : missing) pool_.objects[object->id()] = object;
  std::erase_if(pool_.objects, [](const auto& o) { return o.second->is_removed(); });
  if (const auto done = committer_.commit_locked({}, {}); !done)
    return Error{done.code(), attempted + ": " + done.message()};
  return {};
}

// Changes the maps to those of the state. Nobody writes meanwhile, and nothing is allocated from
// the program's heap.
int Rollback::restore(const State& state, std::vector<std::shared_ptr<Object>>& missing,
                      MappedArray<uint32_t>& resurrected) {
  // This table is filled before, because sets allocate.
  for (const auto& [id, object] : pool_.objects) pool_.changed_objects.insert(id);
  for (const auto& object : missing) {
    pool_.changed_objects.insert(object->id());
    pool_.reborn_objects.insert(object->id());
  }
  const os::SignalBlock block;
  pool_.gate.close();
  OC_ASSERT(std::all_of(missing.begin(), missing.end(),
                        [&](const auto& o) { return state.objects.contains(o->id()); }));
  int error = 0;
  for (const auto& [id, object] : pool_.objects) {
    if (error != 0) break;
    const auto as = state.objects.find(id);
    error = as == state.objects.end() ? writer_.kill_all(*object)
                                      : restore_object(*object, as->second, resurrected);
  }
  for (size_t i = 0; i < missing.size() && error == 0; ++i)
    error = restore_object(*missing[i], state.objects.find(missing[i]->id())->second, resurrected);
  std::sort(resurrected.begin(), resurrected.end());
  if (error == 0) pool_.heap->resurrect(resurrected);
  pool_.gate.open();
  return error;
}

// Blocks of the state are not allocated to others meanwhile, so an equal block means an equal
// entry.
int Rollback::restore_object(Object& object, const StateObject& as,
                             MappedArray<uint32_t>& resurrected) {
  const uint32_t now = pool_.interval.load(), free_from = pool_.free_from.load();
  OC_ASSERT(pool_.gate.is_closed());
  ChunkMap& map = object.map();
  int error = 0;
  // Each chunk is exchanged in one step: concurrent readers find the old bytes or the new ones.
  const auto exchange = [&](uint64_t chunk, Entry old, Entry entry) {
    OC_ASSERT(old.block == 0 || old.birth <= now);
    if (old.block != 0 && old.birth < free_from)
      error = pool_.heap->bury({old.block, old.birth, now});
    if (error != 0) return;
    map.set(chunk, entry);
    map.mark_changed(chunk);
    if (old.block != 0 && old.birth >= free_from) pool_.heap->free(old.block);
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
  object.set_size_bytes(as.size_bytes);
  return error;
}

}  // namespace outcore::versioned
