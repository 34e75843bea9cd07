#include "outcore/checkpoint_catalog.h"

#include <algorithm>
#include <cerrno>
#include <set>

#include "checkpoints/pool/pool.h"
#include "checkpoints/pool/state.h"
#include "checkpoints/pool/verify.h"
#include "checkpoints/store/snapshot_catalog.h"
#include "checkpoints/store/versioned_disk.h"
#include "checkpoints/store/versioned_pools.h"
#include "core/os/wait.h"
#include "core/store/registry.h"

namespace outcore {
namespace {

using store::SnapshotCatalog;
using store::VersionedDisk;
using versioned::Pool;

constexpr int64_t kHourSeconds = 3600, kDaySeconds = 86400;
constexpr size_t kDamagedMax = 1000;

Result<store::Uri> pool_uri(const std::string& text) {
  auto uri = store::parse_uri(text);
  if (!uri) return uri.error();
  if (auto kind = find_store_kind(uri.value()); !kind) return kind.error();
  if (store::checkpoints_of(uri.value()) != StoreKind::Checkpoints::kInPool || uri->path.empty())
    return Error{EINVAL, "'" + uri->text +
                             "' has no checkpoints: write versioned:FOLDER, the folder of a pool, "
                             "or rbd://POOL/IMAGE"};
  return uri;
}

// Whether checkpoints of the URI's stores are snapshots.
bool is_of_snapshots(const std::string& uri) {
  const auto parsed = store::parse_uri(uri);
  return parsed && store::checkpoints_of(parsed.value()) == StoreKind::Checkpoints::kBySnapshots;
}
Result<SnapshotCatalog> to_read(const std::string& uri) {
  return SnapshotCatalog::open(uri, false);
}
Result<SnapshotCatalog> to_change(const std::string& uri) {
  return SnapshotCatalog::open(uri, true);
}

Result<std::shared_ptr<Pool>> pool_of(const std::string& text) {
  const auto uri = pool_uri(text);
  if (!uri) return uri.error();
  store::VersionedPoolOptions options;
  options.folder = uri->path;
  return store::open_versioned_pool(options);
}

// To read beside whoever writes.
Result<std::shared_ptr<versioned::Disk>> disk_of(const std::string& text) {
  const auto uri = pool_uri(text);
  if (!uri) return uri.error();
  return VersionedDisk::open(uri->path, false, store::DirectMode::kAuto, {});
}

// The state that the newest journal contains. Its writer may be replacing journals just now, so a
// journal that looks damaged is read again.
Result<versioned::State> newest_state(const std::string& text) {
  constexpr int kAttempts = 20;
  const auto disk = disk_of(text);
  if (!disk) return disk.error();
  const std::string path = disk.value()->name();
  Error last{EINVAL, "look at " + path + ": it has no journal: name the folder of a pool"};
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto numbers = versioned::list_journals(*disk.value());
    if (!numbers) return numbers.error();
    if (numbers->empty()) return last;
    for (size_t i = numbers->size(); i-- > 0;) {
      auto loaded = versioned::load_journal(*disk.value(), numbers.value()[i]);
      if (!loaded) {
        last = loaded.error();
      } else if (!loaded->damage) {
        last = {EIO, "list the checkpoints of " + path + ": " + loaded->damage.message() +
                         ": `outcore checkpoint verify` shows what can still be read; or restore "
                         "a copy"};
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

// Keeps the newest checkpoint of each of the last `count` intervals that have any.
void keep_newest(const std::vector<CheckpointInfo>& ascending, int64_t seconds, uint32_t count,
                 std::set<uint32_t>* kept) {
  std::set<int64_t> seen;
  for (auto info = ascending.rbegin(); info != ascending.rend() && seen.size() < count; ++info)
    if (seen.insert(info->time_s / seconds).second) kept->insert(info->number);
}

}  // namespace

Result<std::vector<CheckpointInfo>> list_checkpoints(const std::string& uri) {
  if (is_of_snapshots(uri)) {
    const auto catalog = to_read(uri);
    if (!catalog) return catalog.error();
    const auto entries = catalog->list();
    if (!entries) return entries.error();
    std::vector<CheckpointInfo> of_images;
    for (const auto& entry : entries.value()) of_images.push_back(store::info_of(entry));
    return of_images;
  }
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

namespace {

Result<std::vector<CheckpointObject>> list_objects_of_images(const std::string& uri,
                                                             const std::string& checkpoint) {
  const auto catalog = to_read(uri);
  if (!catalog) return catalog.error();
  if (checkpoint.empty()) {
    const std::string place = catalog->snapshots().place();
    return std::vector<CheckpointObject>{
        {place.substr(place.rfind('/') + 1), catalog->anchor().size_bytes(), uri}};
  }
  const auto entry = catalog->find(checkpoint);
  if (!entry) return entry.error();
  std::vector<CheckpointObject> all;
  for (const auto& object : entry->objects)
    all.push_back({object.name, object.size_bytes, catalog->uri_of(object)});
  return all;
}

}  // namespace

Result<std::vector<CheckpointObject>> list_objects(const std::string& uri,
                                                   const std::string& checkpoint) {
  if (is_of_snapshots(uri)) return list_objects_of_images(uri, checkpoint);
  std::vector<CheckpointObject> all;
  const auto where = pool_uri(uri);
  if (!where) return where.error();
  const auto add = [&](const auto& objects) {
    for (const auto& [id, object] : objects)
      all.push_back(
          {object.name, object.size_bytes,
           "versioned:" + where->path + "?object=" + store::encode_percents(object.name)});
  };
  if (checkpoint.empty()) {
    const auto state = newest_state(uri);
    if (!state) return state.error();
    add(state->objects);
    return all;
  }
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
  if (is_of_snapshots(uri)) {
    auto catalog = to_change(uri);
    if (!catalog) return catalog.error();
    const std::string place = catalog->snapshots().place();
    const SnapshotCatalog::Member member{place.substr(place.rfind('/') + 1), &catalog->anchor()};
    return catalog->add(name, comment, {&member, 1});
  }
  const auto pool = pool_of(uri);
  if (!pool) return pool.error();
  return pool.value()->commit(name, comment);
}

Status remove_checkpoints(const std::string& uri, const std::vector<std::string>& names) {
  if (is_of_snapshots(uri)) {
    auto catalog = to_change(uri);
    return catalog ? catalog->remove(names) : catalog.status();
  }
  const auto pool = pool_of(uri);
  return pool ? pool.value()->remove(names) : Status(pool.error());
}

Status rename_checkpoint(const std::string& uri, const std::string& from, const std::string& to) {
  if (is_of_snapshots(uri)) {
    auto catalog = to_change(uri);
    return catalog ? catalog->rename(from, to) : catalog.status();
  }
  const auto pool = pool_of(uri);
  return pool ? pool.value()->rename(from, to) : Status(pool.error());
}

Status remove_object(const std::string& uri, const std::string& object) {
  if (is_of_snapshots(uri))
    return Error{ENOTSUP, "remove '" + object + "' from " + uri +
                              ": it is an image: remove that (outcore store rm)"};
  const auto pool = pool_of(uri);
  if (!pool) return pool.error();
  if (Status s = pool.value()->remove_object(object); !s) return s;
  const auto committed = pool.value()->commit();
  return committed ? Status() : Status(committed.error());
}

Status roll_back(const std::string& uri, const std::string& name) {
  if (is_of_snapshots(uri)) {
    auto catalog = to_change(uri);
    return catalog ? catalog->roll_back(name) : catalog.status();
  }
  const auto pool = pool_of(uri);
  if (!pool) return pool.error();
  const auto disk = disk_of(uri);
  if (!disk) return disk.error();
  // What it rolls back to takes the place of what may be whole.
  const auto found = versioned::verify_checkpoint(disk.value(), name, 1);
  if (!found) return found.error();
  if (found->bad.empty()) return pool.value()->roll_back(name);
  const versioned::BadChunk& first = found->bad.front();
  return Error{EIO, "go back to the checkpoint '" + name + "' of " + uri + ": its object '" +
                        first.object + "' is damaged at byte " +
                        std::to_string(first.chunk * pool.value()->chunk_bytes()) +
                        ": nothing was changed: take one that `outcore checkpoint verify` finds "
                        "whole, or restore a copy"};
}

Status clone_checkpoint(const std::string& uri, const std::string& name, const std::string& object,
                        const std::string& to) {
  if (!is_of_snapshots(uri))
    return Error{ENOTSUP, "clone '" + name + "' of " + uri +
                              ": only checkpoints of rbd:// images have clones: export it"};
  const auto parsed = store::parse_uri(to);
  if (!parsed) return parsed.status();
  if (!is_of_snapshots(to) || !parsed->parameters.empty())
    return Error{EINVAL, "clone '" + name + "' to '" + to + "': write rbd://POOL/NEW-IMAGE"};
  auto catalog = to_read(uri);
  return catalog ? catalog->clone(name, object, to) : catalog.status();
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
  if (is_of_snapshots(uri)) {
    const auto catalog = to_read(uri);
    return catalog ? catalog->verify() : Result<std::vector<DamagedChunk>>(catalog.error());
  }
  const auto disk = disk_of(uri);
  if (!disk) return disk.error();
  const auto found = versioned::verify_pool(disk.value(), kDamagedMax);
  if (!found) return found.error();
  std::vector<DamagedChunk> damaged;
  for (const versioned::BadChunk& bad : found->bad)
    damaged.push_back({bad.object, bad.checkpoint, bad.chunk * found->chunk_bytes, bad.why});
  return damaged;
}

// A loss of power leaves the same as somebody who cuts the file: the beginning of a record may
// reach the disk before the size that the file has with it.
std::string find_torn_end(const std::string& text) {
  if (is_of_snapshots(text)) return {};
  const auto disk = disk_of(text);
  if (!disk) return {};
  const auto numbers = versioned::list_journals(*disk.value());
  if (!numbers || numbers->empty()) return {};
  const auto loaded = versioned::load_journal(*disk.value(), numbers->back());
  if (!loaded || !loaded->damage || !loaded->is_torn) return {};
  // Somebody may be just writing that record: then it is whole, or others follow, soon.
  constexpr uint64_t kPauseNs = 200'000'000;
  os::pause(kPauseNs);
  const auto later = versioned::load_journal(*disk.value(), numbers->back());
  if (!later || !later->damage || !later->is_torn || later->end != loaded->end) return {};
  return disk.value()->name() + "/" + versioned::journal_name(numbers->back()) +
         " ends early, at byte " + std::to_string(loaded->end) +
         ", within a record: its writer was stopped, or the file was cut short; if a checkpoint is "
         "missing (`outcore checkpoint ls`), restore a copy";
}

Result<std::string> uri_of_checkpoint(const std::string& uri, const std::string& checkpoint,
                                      const std::string& object) {
  if (is_of_snapshots(uri)) {
    const auto catalog = to_read(uri);
    if (!catalog) return catalog.error();
    const auto entry = catalog->find(checkpoint);
    if (!entry) return entry.error();
    const auto* const found = catalog->find_object(entry.value(), object);
    if (found != nullptr) return catalog->uri_of(entry.value(), *found);
    return Error{ENOENT, "'" + checkpoint + "' of " + uri + " has no object '" + object + "'"};
  }
  const auto where = pool_uri(uri);
  if (!where) return where.error();
  return "versioned:" + where->path + "?object=" + store::encode_percents(object) +
         "&at=" + store::encode_percents(checkpoint);
}

}  // namespace outcore
