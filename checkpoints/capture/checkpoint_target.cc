#include "checkpoints/capture/checkpoint_target.h"

#include <cerrno>

#include "core/store/registry.h"

namespace outcore::checkpoints {

Result<std::shared_ptr<CheckpointTarget>> open_target(const std::string& text) {
  const auto uri = store::parse_uri(text);
  if (!uri) return uri.error();
  const StoreKind::Checkpoints kept = store::checkpoints_of(uri.value());
  if (kept == StoreKind::Checkpoints::kInPool && !uri->path.empty()) return target_of_pool(text);
  if (kept != StoreKind::Checkpoints::kBySnapshots)
    return Error{EINVAL, "'" + uri->text +
                             "' holds no checkpoints: write versioned:FOLDER, or "
                             "rbd://POOL/IMAGE"};
  auto catalog = store::SnapshotCatalog::open(text, true);
  if (!catalog) return catalog.error();
  return target_of_snapshots(std::move(catalog).value());
}

Result<std::shared_ptr<CheckpointTarget>> target_of(const paging::PageCache& cache) {
  Store* const store = cache.store.load();
  if (auto target = target_of_pool(*store)) return target;
  if (store->snapshots() == nullptr || !store->snapshots()->can_snapshot())
    return std::shared_ptr<CheckpointTarget>();
  for (const std::shared_ptr<Store>& owned : cache.owned)
    if (owned.get() == store)
      return target_of_snapshots(
          store::SnapshotCatalog(owned, store::SnapshotCatalog::open_by_uri));
  return std::shared_ptr<CheckpointTarget>();
}

Result<std::shared_ptr<CheckpointTarget>> target_of(
    std::span<const paging::PageCache* const> caches) {
  for (const paging::PageCache* cache : caches)
    if (auto target = target_of_pool(*cache->store.load())) return target;
  for (const paging::PageCache* cache : caches) {
    auto target = target_of(*cache);
    if (!target || target.value() != nullptr) return target;
  }
  return std::shared_ptr<CheckpointTarget>();
}

}  // namespace outcore::checkpoints
