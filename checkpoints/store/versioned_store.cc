#include "checkpoints/store/versioned_store.h"

#include <algorithm>
#include <cerrno>

#include "checkpoints/store/versioned_disk.h"
#include "checkpoints/store/versioned_pools.h"
#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/store/range.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace outcore::store {
namespace {

constexpr uint64_t kChunkBytesLeast = 4096;  // in a URI: the unit of pages and of direct I/O

StoreTraits traits_of(uint32_t chunk_bytes, const StoreLimits& limits) {
  OC_CHECK(base::is_power_of_two(chunk_bytes));
  StoreTraits traits;
  traits.is_fault_safe = true;
  traits.alignment_bytes = chunk_bytes;
  traits.read_concurrency = limits.read_concurrency;
  traits.write_concurrency = limits.write_concurrency;
  traits.can_read_while_written = true;  // a reader gets the old chunk or the new one, as a whole
  return traits;
}

struct Asked {
  std::string object = "main";
  VersionedPoolOptions pool;
  const std::string* at = nullptr;
};

Result<Asked> read_parameters(const Uri& uri, const StoreLimits& limits) {
  Asked asked;
  if (uri.path.empty()) return refuse(uri, "no folder: write versioned:FOLDER?object=NAME");
  if (const std::string* const object = uri.find("object")) asked.object = *object;
  if (Status s = versioned::check_name(asked.object, "open " + uri.text); !s) return s.error();
  asked.at = uri.find("at");
  const auto chunk_bytes = uri.bytes_of("chunk", 0);
  if (!chunk_bytes) return chunk_bytes.error();
  const bool is_right = base::is_power_of_two(chunk_bytes.value()) &&
                        chunk_bytes.value() >= kChunkBytesLeast &&
                        chunk_bytes.value() <= versioned::kChunkBytesMax;
  if (uri.find("chunk") != nullptr && !is_right)
    return refuse(uri, "chunk=" + *uri.find("chunk") + ": write a power of two from 4k to 1M");
  asked.pool.folder = uri.path;
  asked.pool.chunk_bytes = static_cast<uint32_t>(chunk_bytes.value());
  asked.pool.read_concurrency = limits.read_concurrency;
  asked.pool.write_concurrency = limits.write_concurrency;
  const auto direct = direct_mode_of(uri);
  if (!direct) return direct.error();
  asked.pool.direct = direct.value();
  return asked;
}

std::string names_of(const std::vector<std::string>& names) {
  constexpr size_t kToldMax = 8;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kToldMax; ++i)
    text += (i == 0 ? "'" : ", '") + names[i] + "'";
  return names.empty() ? "it has none" : "it has " + text;
}

Result<std::shared_ptr<Store>> open_snapshot(const Uri& uri, const Asked& asked,
                                             const OpenOptions& options,
                                             const StoreLimits& limits) {
  StoreTraits traits;
  traits.read_concurrency = limits.read_concurrency;
  auto disk = VersionedDisk::open(uri.path, false, asked.pool.direct, traits);
  if (!disk) return disk.error();
  auto opened = versioned::Snapshot::open(disk.value(), asked.at == nullptr ? "" : *asked.at);
  if (!opened) return opened.error();
  const auto& snapshot = opened.value();
  const versioned::StateObject* const object = snapshot->find(asked.object);
  if (object == nullptr) {
    std::vector<std::string> names;
    for (const auto& [id, about] : snapshot->objects()) names.push_back(about.name);
    return refuse(uri, "there is no object '" + asked.object + "': " + names_of(names), ENOENT);
  }
  if (options.size_bytes > object->size_bytes)
    return refuse(uri, "it has " + std::to_string(object->size_bytes) + " bytes, " +
                           std::to_string(options.size_bytes) + " are asked for: ask for less");
  const std::string identity = "versioned:" + disk.value()->identity() + ":" + asked.object + "@" +
                               std::to_string(snapshot->commit());
  return std::shared_ptr<Store>(
      std::make_shared<VersionedSnapshotStore>(snapshot, *object, uri.text, identity, limits));
}

}  // namespace

Status check_versioned(const Uri& uri) { return read_parameters(uri, {}).status(); }

Result<std::shared_ptr<Store>> open_versioned(const Uri& uri, const OpenOptions& options,
                                              const StoreLimits& limits) {
  auto asked = read_parameters(uri, limits);
  if (!asked) return asked.error();
  if (!options.is_writable) {
    if (options.may_create) return refuse(uri, "to create or extend it, open it writable");
    return open_snapshot(uri, asked.value(), options, limits);
  }
  if (asked->at != nullptr)
    return refuse(uri, "a checkpoint is never written: map it read-only, or roll back to it");
  asked->pool.may_create = options.may_create;
  auto opened = open_versioned_pool(asked->pool);
  if (!opened) return opened.error();
  const std::shared_ptr<versioned::Pool>& pool = opened.value();
  std::shared_ptr<versioned::Object> object = pool->find(asked->object);
  if (object == nullptr && !options.may_create) {
    std::vector<std::string> names;
    for (const auto& known : pool->objects()) names.push_back(known->name());
    return refuse(uri,
                  "there is no object '" + asked->object + "': " + names_of(names) +
                      ": name one, or create it first",
                  ENOENT);
  }
  if (object == nullptr) {
    auto made = pool->create(asked->object, options.size_bytes);
    if (!made) return made.error();
    object = made.value();
  }
  OC_CHECK(object != nullptr);
  if (options.size_bytes > object->size_bytes()) {
    const std::string attempted = "it has " + std::to_string(object->size_bytes()) + " bytes, " +
                                  std::to_string(options.size_bytes) + " are asked for";
    if (!options.may_create)
      return refuse(uri, attempted + ": ask for less, or allow to extend it");
    if (const int error = pool->resize(*object, options.size_bytes); error != 0)
      return base::system_error(error, "store '" + uri.text + "': " + attempted + "; extend it");
  }
  pool->note_store();
  return std::shared_ptr<Store>(std::make_shared<VersionedStore>(pool, object, uri.text, limits));
}

VersionedStore::VersionedStore(std::shared_ptr<versioned::Pool> pool,
                               std::shared_ptr<versioned::Object> object, std::string uri,
                               const StoreLimits& limits)
    : pool_(std::move(pool)),
      object_(std::move(object)),
      uri_(std::move(uri)),
      traits_(traits_of(pool_->chunk_bytes(), limits)) {
  OC_CHECK(object_ != nullptr);
}

std::string VersionedStore::remark() const {
  std::string text = "chunks of " + base::format_bytes(pool_->chunk_bytes());
  if (const std::string failure = pool_->last_failure(); !failure.empty())
    text += "; last failure: " + failure;
  return text;
}

std::string VersionedStore::identity() const {
  return "versioned:" + pool_->disk().identity() + ":" + std::to_string(object_->id());
}

VersionedSnapshotStore::VersionedSnapshotStore(std::shared_ptr<versioned::Snapshot> snapshot,
                                               const versioned::StateObject& object,
                                               std::string uri, std::string identity,
                                               const StoreLimits& limits)
    : snapshot_(std::move(snapshot)),
      object_(object),
      uri_(std::move(uri)),
      identity_(std::move(identity)),
      traits_(traits_of(snapshot_->chunk_bytes(), limits)) {}

void VersionedSnapshotStore::transfer(std::span<StoreRequest> batch) {
  snapshot_->transfer(object_, batch);
  for (StoreRequest& r : batch)
    if (r.is_write) r.result = -EACCES;
}

bool VersionedSnapshotStore::is_hole(uint64_t offset, uint64_t size_bytes) const {
  OC_CHECK(offset + size_bytes >= offset);
  const uint64_t chunk_bytes = snapshot_->chunk_bytes();
  const uint64_t end = base::round_up(offset + size_bytes, chunk_bytes) / chunk_bytes;
  for (uint64_t chunk = offset / chunk_bytes; chunk < end; ++chunk)
    if (object_.map->get(chunk).block != 0) return false;
  return true;
}

std::string VersionedSnapshotStore::contents_id() const {
  std::call_once(is_summed_, [this] {
    uint64_t high = 1, low = 2;
    object_.map->for_each(0, UINT64_MAX, [&](uint64_t chunk, versioned::Entry entry) {
      const uint64_t pair[] = {chunk, entry.sum};
      high = XXH3_64bits_withSeed(pair, sizeof pair, high);
      low = XXH3_64bits_withSeed(pair, sizeof pair, low);
    });
    contents_id_ = "chunks of " + std::to_string(snapshot_->chunk_bytes()) + " of " +
                   std::to_string(size_bytes()) + ": " + std::to_string(high) + "+" +
                   std::to_string(low);
  });
  return contents_id_;
}

Result<std::shared_ptr<Store>> VersionedSnapshotStore::reopen() const {
  auto disk = snapshot_->disk().reopen();
  if (!disk) return disk.error();
  auto opened = versioned::Snapshot::open_commit(disk.value(), snapshot_->commit());
  if (!opened) return opened.error();
  const versioned::StateObject* const object = opened.value()->find(object_.name);
  if (object == nullptr)
    return Error{ESTALE, "open " + uri_ + " in a forked child: it is not there any more"};
  const StoreLimits limits{traits_.read_concurrency, traits_.write_concurrency};
  return std::shared_ptr<Store>(
      std::make_shared<VersionedSnapshotStore>(opened.value(), *object, uri_, identity_, limits));
}

std::string VersionedSnapshotStore::remark() const {
  std::string text = "commit " + std::to_string(snapshot_->commit()) + ", read-only";
  if (!snapshot_->remark().empty()) text += "; " + snapshot_->remark();
  if (const std::string failure = snapshot_->last_failure(); !failure.empty())
    text += "; last failure: " + failure;
  return text;
}

}  // namespace outcore::store
