#include "checkpoints/store/versioned_pools.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <memory>
#include <mutex>

#include "checkpoints/store/versioned_disk.h"
#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::store {
namespace {

// Pools are opened and closed one after the other: to open a folder whose pool is just being closed
// waits for the lock. It is recursive, because opening one may release the last reference of
// another.
struct OpenPools {
  const pid_t process = ::getpid();
  std::recursive_mutex mutex;
  std::map<std::string, std::weak_ptr<versioned::Pool>> by_identity;
};

OpenPools& open_pools() {
  // Never destroyed, because stores may be static. A forked child has a table of its own: in its
  // parent another thread may have held the lock.
  static std::atomic<OpenPools*> made{nullptr};
  OpenPools* known = made.load();
  while (known == nullptr || known->process != ::getpid()) {
    auto fresh = std::make_unique<OpenPools>();
    if (made.compare_exchange_strong(known, fresh.get())) known = fresh.release();
  }
  return *known;
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
  OC_CHECK(known.expired() || !known.lock()->disk().is_of_this_process());
  known = shared;
  pool = shared;
  return shared;
}

}  // namespace outcore::store
