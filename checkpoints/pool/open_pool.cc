#include "checkpoints/pool/open_pool.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/error.h"

namespace outcore::versioned {

Status check_name(const std::string& name, const std::string& attempted) {
  if (!name.empty() && name.size() <= kNameBytesMax && name.find('\0') == std::string::npos)
    return {};
  return Error{EINVAL, attempted + ": a name has 1 to " + std::to_string(kNameBytesMax) +
                           " bytes, none of them zero"};
}

int OpenPool::check_writable(const Object& object) {
  if (object.is_removed()) return -ENOENT;
  if (disk->is_of_this_process()) return 0;
  last_failure.note("a forked child writes to a pool that is its parent's: open it in one of them");
  return -EPERM;
}

void OpenPool::note(int error, const char* what, const Object& object) {
  char text[512];
  std::snprintf(text, sizeof text, "%s object %s in %s: %s%s", what, object.name().c_str(),
                folder.c_str(), ::strerrordesc_np(-error),
                error == -ENOSPC ? ": remove checkpoints, or make space on the filesystem" : "");
  last_failure.note(text);
}

Status OpenPool::check_usable(const std::string& attempted) const {
  if (is_closed) return Error{EBADF, attempted + ": the pool is closed"};
  if (!disk->is_of_this_process())
    return Error{EPERM, attempted + ": it is the parent's: open it in one process"};
  if (lost.code != 0) return Error{lost.code, attempted + ": " + lost.message};
  return {};
}

Status OpenPool::fail(int error, const std::string& attempted, bool is_uncertain) {
  Error told = base::system_error(
      error, attempted, error == -ENOSPC ? "remove checkpoints, or make space on the disk" : "");
  last_failure.note(told.message.c_str());
  if (is_uncertain)
    lose({told.code, "what was stored last is uncertain (" + told.message +
                         "): mend the disk and open the pool again; it will have its last "
                         "complete commit"});
  return told;
}

void OpenPool::lose(const Error& why) {
  OC_ASSERT(why.code != 0);
  if (lost.code == 0) lost = why;
  is_lost = true;
}

bool OpenPool::has_changes() const {
  return !changed_objects.empty() || std::any_of(objects.begin(), objects.end(), [](const auto& o) {
    return o.second->map().has_changed();
  });
}

std::vector<uint32_t> OpenPool::held_commits() const {
  std::vector<uint32_t> all = read_commits->all();
  all.insert(all.end(), lingering.begin(), lingering.end());
  all.push_back(last_commit);
  for (const Checkpoint& checkpoint : checkpoints) all.push_back(checkpoint.number);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::shared_ptr<Object> OpenPool::find_object(const std::string& name) const {
  for (const auto& [id, object] : objects)
    if (object->name() == name) return object;
  return nullptr;
}

bool OpenPool::has_checkpoint(const std::string& name) const {
  return std::any_of(checkpoints.begin(), checkpoints.end(),
                     [&](const Checkpoint& checkpoint) { return checkpoint.name == name; });
}

Result<Checkpoint*> OpenPool::find_checkpoint(const std::string& name,
                                              const std::string& attempted) {
  const auto found = std::find_if(checkpoints.begin(), checkpoints.end(),
                                  [&](const Checkpoint& c) { return c.name == name; });
  if (found != checkpoints.end()) return &*found;
  return Error{ENOENT,
               attempted + ": there is none of this name: `outcore checkpoint ls` lists them"};
}

bool OpenPool::is_valid() const {
  std::vector<bool> seen(heap->capacity());
  bool is_right = heap->is_valid();
  uint64_t live_count = 0;
  const auto see = [&](uint32_t block) {
    is_right = is_right && block < seen.size() && !seen[block] && heap->is_used(block);
    if (block < seen.size()) seen[block] = true;
  };
  for (const auto& [id, object] : objects)
    object->map().for_each(0, UINT64_MAX, [&](uint64_t, Entry entry) {
      see(entry.block);
      ++live_count;
    });
  for (const Grave& grave : heap->kept()) see(grave.block);
  return is_right && live_count + heap->kept_count() <= heap->used_count();
}

}  // namespace outcore::versioned
