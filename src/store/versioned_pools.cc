#include "store/versioned_pools.h"

#include <cerrno>
#include <map>
#include <mutex>

#include "base/units.h"
#include "store/versioned_disk.h"

namespace outcore::store {
namespace {

// Opening and ending pools come one after the other: who opens a folder again that is just being
// closed waits for its lock. Recursive: what opens may have the last reference, too.
struct OpenPools {
  std::recursive_mutex mutex;
  std::map<std::string, std::weak_ptr<versioned::Pool>> by_identity;
};

OpenPools& open_pools() {
  static OpenPools* const made = new OpenPools;  // never destroyed: stores may be static
  return *made;
}

}  // namespace

Result<std::shared_ptr<versioned::Pool>> open_versioned_pool(const VersionedPoolOptions& options) {
  StoreTraits traits;
  traits.read_concurrency = options.read_concurrency;
  traits.write_concurrency = options.write_concurrency;
  OpenPools& all = open_pools();
  const std::lock_guard guard(all.mutex);
  auto disk = VersionedDisk::open(options.folder, options.may_create, options.direct, traits);
  if (!disk) return disk.error();
  std::weak_ptr<versioned::Pool>& known = all.by_identity[disk.value()->identity()];
  if (auto pool = known.lock(); pool != nullptr && pool->disk().is_of_this_process()) {
    if (options.chunk_bytes == 0 || options.chunk_bytes == pool->chunk_bytes()) return pool;
    return Error{EINVAL, "open " + options.folder + ": it has chunks of " +
                             base::format_bytes(pool->chunk_bytes()) + ": leave out chunk="};
  }
  versioned::PoolOptions how;
  how.may_create = options.may_create;
  how.chunk_bytes = options.chunk_bytes;
  auto pool = versioned::Pool::open(disk.value(), how);
  if (!pool) return pool.error();
  versioned::Pool* const bare = pool.value().get();
  const std::shared_ptr<versioned::Pool> shared(bare, [kept = pool.value()](void*) mutable {
    const std::lock_guard inner(open_pools().mutex);
    kept.reset();
  });
  known = shared;
  pool = shared;
  return shared;
}

}  // namespace outcore::store
