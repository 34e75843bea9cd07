#include "checkpoints/pool/object_table.h"

#include <algorithm>
#include <cerrno>

#include "core/base/error.h"
#include "core/base/units.h"

namespace outcore::versioned {

std::vector<std::shared_ptr<Object>> ObjectTable::list() const {
  const std::lock_guard guard(pool_.mutex);
  std::vector<std::shared_ptr<Object>> all;
  for (const auto& [id, object] : pool_.objects) all.push_back(object);
  return all;
}

std::shared_ptr<Object> ObjectTable::find(const std::string& name) const {
  const std::lock_guard guard(pool_.mutex);
  return pool_.find_object(name);
}

Result<std::shared_ptr<Object>> ObjectTable::create(const std::string& name, uint64_t size_bytes) {
  const std::string attempted = "make the object '" + name + "' in " + pool_.folder;
  const std::lock_guard guard(pool_.mutex);
  if (Status s = check_name(name, attempted); !s) return s.error();
  if (pool_.find_object(name) != nullptr)
    return Error{EEXIST, attempted + ": it exists: open it, or remove it first"};
  if (pool_.objects.size() >= kObjectsMax)
    return Error{ENOSPC, attempted + ": there are " + std::to_string(kObjectsMax) + " already"};
  if (size_bytes > ChunkMap::kChunksMax * pool_.chunk_bytes)
    return Error{EFBIG, attempted + ": at most " +
                            base::format_bytes(ChunkMap::kChunksMax * pool_.chunk_bytes) +
                            " with these chunks: make a pool of larger ones"};
  auto map = ChunkMap::make();
  if (map == nullptr) return base::system_error(ENOMEM, attempted);
  const auto object = std::make_shared<Object>(pool_.next_object, name, size_bytes, std::move(map));
  pool_.changed_objects.insert(pool_.next_object);
  pool_.objects[pool_.next_object++] = object;
  return object;
}

Status ObjectTable::remove(const std::string& name) {
  const std::lock_guard guard(pool_.mutex);
  const std::shared_ptr<Object> object = pool_.find_object(name);
  const std::string attempted = "remove the object '" + name + "' of " + pool_.folder;
  if (object == nullptr) return Error{ENOENT, attempted + ": there is none of this name"};
  pool_.changed_objects.insert(object->id());
  pool_.objects.erase(object->id());
  const os::SignalBlock block;
  pool_.gate.close();
  const int error = writer_.kill_all(*object);
  pool_.gate.open();
  // Blocks that only earlier commits need become free when the pool is opened again.
  return error == 0 ? Status() : base::system_error(error, attempted);
}

int ObjectTable::resize(Object& object, uint64_t size_bytes) {
  const std::lock_guard guard(pool_.mutex);
  if (const int error = pool_.check_writable(object); error != 0) return error;
  if (size_bytes > ChunkMap::kChunksMax * pool_.chunk_bytes) return -EFBIG;
  const uint64_t before = object.size_bytes();
  if (size_bytes < before) {
    const int error = writer_.discard(object, size_bytes, before - size_bytes);
    if (error != 0) {
      pool_.note(error, "resize", object);
      return error;
    }
  }
  pool_.changed_objects.insert(object.id());
  object.set_size_bytes(size_bytes);
  return 0;
}

}  // namespace outcore::versioned
