#include "checkpoints/capture/home.h"

#include <cerrno>

#include "core/store/registry.h"

namespace outcore::checkpoints {

Result<std::shared_ptr<Home>> home_named(const std::string& text) {
  const auto uri = store::parse_uri(text);
  if (!uri) return uri.error();
  const StoreKind::Checkpoints kept = store::checkpoints_of(uri.value());
  if (kept == StoreKind::Checkpoints::kInPool && !uri->path.empty()) return home_of_pool(text);
  if (kept != StoreKind::Checkpoints::kBySnapshots)
    return Error{EINVAL, "'" + uri->text +
                             "' holds no checkpoints: write versioned:FOLDER, or "
                             "rbd://POOL/IMAGE"};
  auto catalog = store::SnapshotCatalog::open(text, true);
  if (!catalog) return catalog.error();
  return home_of_snapshots(std::move(catalog).value());
}

Result<std::shared_ptr<Home>> home_of(const paging::Space& space) {
  Store* const store = space.store.load();
  if (auto home = home_of_pool(*store)) return home;
  if (store->snapshots() == nullptr || !store->snapshots()->can_snapshot())
    return std::shared_ptr<Home>();
  for (const std::shared_ptr<Store>& owned : space.owned)
    if (owned.get() == store)
      return home_of_snapshots(store::SnapshotCatalog(owned, store::SnapshotCatalog::open_by_uri));
  return std::shared_ptr<Home>();
}

Result<std::shared_ptr<Home>> home_of(std::span<const paging::Space* const> spaces) {
  for (const paging::Space* space : spaces)
    if (auto home = home_of_pool(*space->store.load())) return home;
  for (const paging::Space* space : spaces) {
    auto home = home_of(*space);
    if (!home || home.value() != nullptr) return home;
  }
  return std::shared_ptr<Home>();
}

}  // namespace outcore::checkpoints
