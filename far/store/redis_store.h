// RedisStore: bytes in the memory of a cluster of Redis or Valkey servers, or of one server.
//
// A store has a name, a size and one writer at a time, or several that share a lease. Its bytes are
// values of 64 KiB (or `chunk`), spread over all servers. When write() returns, as many replicas as
// were asked for have acknowledged it, so there is nothing left for sync() to do. Fault safe
// without TLS. For what is promised when servers fail see docs/guides/far-memory.md.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "core/store/registry.h"
#include "far/redis/shared_lease.h"
#include "far/store/redis_lease.h"
#include "far/store/redis_opening.h"
#include "outcore/store.h"

namespace outcore::store {

class RedisStore final : public Store {
 public:
  // Errors: those of redis::Catalog::open; EINVAL (servers that are not a cluster, have too few
  // replicas, or evict values); EIO (the servers have lost some of the store).
  static Result<std::shared_ptr<Store>> open(const RedisOptions& options, const OpenOptions& how,
                                             const StoreLimits& limits);
  // The same for one of several writers that share the lease: each opens the store for itself.
  // ENOTSUP: its chunks are packed.
  static Result<std::shared_ptr<RedisStore>> open_shared(const RedisOptions& options,
                                                         const OpenOptions& how);

  uint64_t size_bytes() const override { return size_bytes_.load(std::memory_order_acquire); }
  int read(uint64_t offset, std::span<std::byte> into) override;
  // Reads for the fault path: in groups that need little of the stack.
  void read_each(std::span<StoreRequest> batch);
  int write(uint64_t offset, std::span<const std::byte> from) override;
  void transfer(std::span<StoreRequest> batch) override;
  // Everything that was written has been acknowledged already. An error if some of it is lost, or
  // another process writes the store.
  int sync() override;
  int resize(uint64_t size_bytes) override;
  // The largest size for which there is space; UINT64_MAX: the servers have no limit.
  Result<uint64_t> size_bytes_max();
  // The destructor removes the store, as far as its servers answer soon.
  void remove_at_end() {
    if (is_writer()) opened_.lease->remove_at_end();
  }
  // The process ends: others may have the space soon. What is read until then is still there.
  void expire_soon() {
    if (is_writer()) opened_.lease->expire_soon();
  }
  bool is_of_cluster() const { return opened_.servers->servers->is_cluster(); }
  packing::Packing packing() const {
    return opened_.packer == nullptr ? packing::Packing{} : opened_.packer->packing();
  }
  // REQUIRES: open_shared() has opened it.
  redis::SharedLease& shared_lease() { return *opened_.lease->shared(); }
  // The servers have reported a size: another member may have enlarged the store. A smaller size
  // was reported before that and arrived late; a shared store never becomes smaller.
  void note_size(uint64_t size_bytes) {
    uint64_t known = size_bytes_.load(std::memory_order_relaxed);
    while (known < size_bytes &&
           !size_bytes_.compare_exchange_weak(known, size_bytes, std::memory_order_release)) {
    }
  }
  // Breaks the lease: none of its members can write from now on, as far as the servers answer.
  void break_lease(uint64_t fence_token);
  // Gives the lease back; nothing may be written after it.
  void leave() {
    if (is_writer()) opened_.lease->leave();
  }
  // Stops renewing the lease, so that it ends for all members: a request that this member has sent
  // may still be carried out, and must not then hit what another member has written.
  void stop_renewing() {
    if (is_writer()) opened_.lease->end();
  }
  bool has_lease() const { return !is_writer() || opened_.lease->error() == 0; }
  const redis::Layout& layout() const { return opened_.chunks->layout(); }
  int discard(uint64_t offset, uint64_t size_bytes) override;
  int release(uint64_t offset, uint64_t size_bytes) override { return discard(offset, size_bytes); }
  bool is_hole(uint64_t offset, uint64_t size_bytes) const override;
  StoreTraits traits() const override { return traits_; }
  std::string uri() const override { return opened_.options.uri; }
  std::string remark() const override;
  bool is_unreplicated() const override {
    return is_writer() && opened_.servers->servers->is_unreplicated();
  }
  std::string identity() const override { return "redis:" + opened_.chunks->layout().id; }
  // Each writer has a number of its own, and each part counts its changes: what nobody was writing
  // when it was opened is the same for all who find the same of both. Empty for writers, and for
  // who has opened it beside one.
  std::string contents_id() const override;
  Result<std::shared_ptr<Store>> reopen() const override;

 private:
  RedisStore(OpenedRedis opened, const StoreLimits& limits);
  bool is_writer() const { return opened_.lease != nullptr; }
  bool is_shared() const { return is_writer() && opened_.lease->shared() != nullptr; }
  // A forked child does not own the lease.
  bool may_write() const {
    return is_writer() && opened_.lease->is_of_this_process() && opened_.lease->error() == 0;
  }
  [[gnu::noinline]] void transfer_plain(std::span<StoreRequest> batch);
  [[gnu::noinline]] void write_parts(std::span<StoreRequest> batch);
  void note_change(int result);

  const OpenedRedis opened_;
  mutable std::once_flag is_summed_;
  mutable std::string contents_id_;
  StoreTraits traits_;
  std::atomic<uint64_t> size_bytes_{0};
};

}  // namespace outcore::store
