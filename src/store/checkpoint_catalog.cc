#include "outcore/checkpoint_catalog.h"

#include <algorithm>
#include <cerrno>
#include <set>

#include "os/wait.h"
#include "store/registry.h"
#include "store/versioned_disk.h"
#include "store/versioned_pools.h"
#include "versioned/pool.h"
#include "versioned/state.h"

namespace outcore {
namespace {

using store::VersionedDisk;
using versioned::Disk;
using versioned::Pool;

constexpr int64_t kHourSeconds = 3600, kDaySeconds = 86400;
constexpr size_t kDamagedMax = 1000;

Result<store::Uri> pool_uri(const std::string& text) {
  auto uri = store::parse_uri(text);
  if (!uri) return uri.error();
  if (auto kind = store::find_kind(uri.value()); !kind) return kind.error();
  if (uri->scheme != "versioned" || uri->path.empty())
    return Error{EINVAL, "'" + uri->text +
                             "' has no checkpoints: write versioned:FOLDER, the folder of a pool"};
  return uri;
}

Result<std::shared_ptr<Pool>> pool_of(const std::string& text) {
  const auto uri = pool_uri(text);
  if (!uri) return uri.error();
  store::VersionedPoolOptions options;
  options.folder = uri->path;
  return store::open_versioned_pool(options);
}

// What the newest journal says. Its writer may be changing journals just now: what looks damaged
// then is looked at again.
Result<versioned::State> newest_state(const std::string& text) {
  constexpr int kAttempts = 20;
  const auto uri = pool_uri(text);
  if (!uri) return uri.error();
  auto disk = VersionedDisk::open(uri->path, false, store::DirectMode::kAuto, {});
  if (!disk) return disk.error();
  Error last{EINVAL, "look at " + uri->path + ": it has no journal: name the folder of a pool"};
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto numbers = versioned::list_journals(*disk.value());
    if (!numbers) return numbers.error();
    if (numbers->empty()) return last;
    for (size_t i = numbers->size(); i-- > 0;) {
      auto loaded = versioned::load_journal(*disk.value(), numbers.value()[i]);
      if (!loaded) {
        last = loaded.error();
      } else if (!loaded->damage) {
        last = loaded->damage.error();
        break;
      } else if (loaded->has_base) {
        return std::move(loaded->state);
      }
    }
    os::yield();
  }
  return last;
}

CheckpointInfo info_of(const versioned::Checkpoint& checkpoint) {
  constexpr uint64_t kSecondNs = 1'000'000'000;
  CheckpointInfo info;
  info.name = checkpoint.name;
  info.comment = checkpoint.comment;
  info.number = checkpoint.number;
  info.time_s = static_cast<int64_t>(checkpoint.time_ns / kSecondNs);
  info.size_bytes = checkpoint.size_bytes;
  return info;
}

// The newest of each of the last so many stretches of time that have any.
void keep_newest(const std::vector<CheckpointInfo>& ascending, int64_t seconds, uint32_t count,
                 std::set<uint32_t>* kept) {
  std::set<int64_t> seen;
  for (auto info = ascending.rbegin(); info != ascending.rend() && seen.size() < count; ++info)
    if (seen.insert(info->time_s / seconds).second) kept->insert(info->number);
}

}  // namespace

Result<std::vector<CheckpointInfo>> list_checkpoints(const std::string& uri) {
  const auto state = newest_state(uri);
  if (!state) return state.error();
  std::vector<CheckpointInfo> all;
  std::vector<uint32_t> held;
  for (const versioned::Checkpoint& checkpoint : state->checkpoints) {
    all.push_back(info_of(checkpoint));
    held.push_back(checkpoint.number);
  }
  if (held.empty() || held.back() != state->commit) held.push_back(state->commit);
  for (size_t i = 0; i < state->graves.size(); ++i) {
    const versioned::Grave& grave = state->graves[i];
    const auto first = std::lower_bound(held.begin(), held.end(), grave.birth);
    const bool is_of_one = first != held.end() && *first < grave.death &&
                           (first + 1 == held.end() || *(first + 1) >= grave.death);
    const auto at = static_cast<size_t>(first - held.begin());
    if (is_of_one && at < all.size()) all[at].only_bytes += state->chunk_bytes;
  }
  return all;
}

Result<std::vector<CheckpointObject>> list_objects(const std::string& uri,
                                                   const std::string& checkpoint) {
  std::vector<CheckpointObject> all;
  const auto add = [&](const auto& objects) {
    for (const auto& [id, object] : objects) all.push_back({object.name, object.size_bytes});
  };
  if (checkpoint.empty()) {
    const auto state = newest_state(uri);
    if (!state) return state.error();
    add(state->objects);
    return all;
  }
  const auto where = pool_uri(uri);
  if (!where) return where.error();
  auto disk = VersionedDisk::open(where->path, false, store::DirectMode::kAuto, {});
  if (!disk) return disk.error();
  const auto snapshot = versioned::Snapshot::open(disk.value(), checkpoint);
  if (!snapshot) return snapshot.error();
  add(snapshot.value()->objects());
  return all;
}

Result<uint32_t> make_checkpoint(const std::string& uri, const std::string& name,
                                 const std::string& comment) {
  if (name.empty())
    return Error{EINVAL, "make a checkpoint of '" + uri + "': it needs a name: give one"};
  const auto pool = pool_of(uri);
  if (!pool) return pool.error();
  return pool.value()->commit(name, comment);
}

Status remove_checkpoints(const std::string& uri, const std::vector<std::string>& names) {
  const auto pool = pool_of(uri);
  return pool ? pool.value()->remove(names) : Status(pool.error());
}

Status rename_checkpoint(const std::string& uri, const std::string& from, const std::string& to) {
  const auto pool = pool_of(uri);
  return pool ? pool.value()->rename(from, to) : Status(pool.error());
}

Status remove_object(const std::string& uri, const std::string& object) {
  const auto pool = pool_of(uri);
  if (!pool) return pool.error();
  if (Status s = pool.value()->remove_object(object); !s) return s;
  const auto committed = pool.value()->commit();
  return committed ? Status() : Status(committed.error());
}

Status roll_back(const std::string& uri, const std::string& name) {
  const auto pool = pool_of(uri);
  return pool ? pool.value()->roll_back(name) : Status(pool.error());
}

Result<std::vector<std::string>> choose_to_prune(const std::vector<CheckpointInfo>& checkpoints,
                                                 const Retention& retention) {
  if (retention.last == 0 && retention.hourly == 0 && retention.daily == 0)
    return Error{EINVAL,
                 "prune checkpoints: nothing would be kept: say how many of the last, of "
                 "hours, or of days; or remove them by name"};
  std::vector<CheckpointInfo> ascending = checkpoints;
  std::sort(ascending.begin(), ascending.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  std::set<uint32_t> kept;
  for (auto info = ascending.rbegin(); info != ascending.rend() && kept.size() < retention.last;
       ++info)
    kept.insert(info->number);
  keep_newest(ascending, kHourSeconds, retention.hourly, &kept);
  keep_newest(ascending, kDaySeconds, retention.daily, &kept);
  std::vector<std::string> names;
  for (const CheckpointInfo& info : ascending)
    if (!kept.contains(info.number)) names.push_back(info.name);
  return names;
}

Result<std::vector<DamagedChunk>> verify_checkpoints(const std::string& uri) {
  const auto pool = pool_of(uri);
  if (!pool) return pool.error();
  const auto found = pool.value()->verify(kDamagedMax);
  if (!found) return found.error();
  std::vector<DamagedChunk> damaged;
  for (const versioned::BadChunk& bad : found.value())
    damaged.push_back(
        {bad.object, bad.checkpoint, bad.chunk * pool.value()->chunk_bytes(), bad.why});
  return damaged;
}

Result<std::string> uri_of_checkpoint(const std::string& uri, const std::string& checkpoint,
                                      const std::string& object) {
  const auto where = pool_uri(uri);
  if (!where) return where.error();
  return "versioned:" + where->path + "?object=" + store::encode_percents(object) +
         "&at=" + store::encode_percents(checkpoint);
}

}  // namespace outcore
