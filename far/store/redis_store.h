// RedisStore: bytes in the memory of Redis or Valkey servers, of a cluster or of one.
//
// A store has a name, a size and one writer at a time, or several that share its lease. Its bytes
// are values of 64 KiB (or `chunk`), spread over all servers. What was written has been
// acknowledged by as many replicas as were asked for before write() returns; so there is nothing
// left for sync() to do. Fault safe without TLS. See docs/guides/far-memory.md for what is promised
// when servers fail.
#pragma once

#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>

#include "core/store/registry.h"
#include "core/store/written_map.h"
#include "far/redis/chunks.h"
#include "far/redis/generation.h"
#include "far/redis/part_writer.h"
#include "far/redis/shared_lease.h"
#include "far/store/redis_servers.h"
#include "outcore/store.h"

namespace outcore::store {

class RedisStore final : public Store {
 public:
  // Errors: those of redis::Catalog::open; EINVAL (servers that are no cluster, that have too few
  // replicas, that evict); EIO (the servers lost some of it).
  static Result<std::shared_ptr<Store>> open(const RedisOptions& options, const OpenOptions& how,
                                             const StoreLimits& limits);
  // The same for one of several writers, who share the lease: each opens it for itself. ENOTSUP:
  // its chunks are packed.
  static Result<std::shared_ptr<RedisStore>> open_shared(const RedisOptions& options,
                                                         const OpenOptions& how);
  ~RedisStore() override;

  uint64_t size_bytes() const override { return size_bytes_.load(std::memory_order_acquire); }
  int read(uint64_t offset, std::span<std::byte> into) override;
  // Reads alone, on the fault path: in stretches that need little of the stack.
  void read_each(std::span<StoreRequest> batch);
  int write(uint64_t offset, std::span<const std::byte> from) override;
  void transfer(std::span<StoreRequest> batch) override;
  // What was written has been acknowledged; an error if some of it is lost, or another writes it.
  int sync() override;
  int resize(uint64_t size_bytes) override;
  // The largest size that there is space for; UINT64_MAX: the servers have no limit.
  Result<uint64_t> size_bytes_max();
  // When this goes, the store goes with it, as far as its servers answer soon.
  void remove_at_end() { is_removed_at_end_ = true; }
  // The process ends: soon the space is whoever's who needs it. What is touched until then is
  // there.
  void expire_soon();
  bool is_of_cluster() const { return servers_->servers->is_cluster(); }
  packing::Packing packing() const {
    return packer_ == nullptr ? packing::Packing{} : packer_->packing();
  }
  // Of one that was opened by open_shared().
  redis::SharedLease& shared_lease() { return *shared_lease_; }
  // What the servers said: another member may have made it larger. What was said before that, and
  // is heard after it, takes nothing back: a shared store never becomes smaller.
  void note_size(uint64_t size_bytes) {
    uint64_t known = size_bytes_.load(std::memory_order_relaxed);
    while (known < size_bytes &&
           !size_bytes_.compare_exchange_weak(known, size_bytes, std::memory_order_release)) {
    }
  }
  // The lease is broken: nobody of its members writes from now on, as far as the servers answer.
  void break_lease(uint64_t fence_token);
  // Gives the lease back: nothing is written any more.
  void leave();
  // Says nothing more, so that the lease ends, and with it everybody's: what it has asked for may
  // still happen, and then somebody else's bytes would be under it.
  void fall_silent() { lease_error_.store(ESTALE); }
  bool has_lease() const { return lease_error_.load() == 0; }
  const redis::Layout& layout() const { return chunks_->layout(); }
  int discard(uint64_t offset, uint64_t size_bytes) override;
  int release(uint64_t offset, uint64_t size_bytes) override { return discard(offset, size_bytes); }
  bool is_hole(uint64_t offset, uint64_t size_bytes) const override;
  StoreTraits traits() const override { return traits_; }
  std::string uri() const override { return options_.uri; }
  std::string remark() const override;
  bool is_unreplicated() const override {
    return is_writer_ && servers_->servers->is_unreplicated();
  }
  std::string identity() const override { return "redis:" + chunks_->layout().id; }

 private:
  explicit RedisStore(const RedisOptions& options) : options_(options) {}
  static Result<std::shared_ptr<RedisStore>> make(const RedisOptions& options,
                                                  const OpenOptions& how, const StoreLimits& limits,
                                                  bool is_shared);
  Status claim(const OpenOptions& how, int64_t capacity_bytes, bool is_shared);
  Status choose_packer();
  static constexpr uint64_t kRetiredMs = 1000;  // what expire_soon() leaves is kept for so long
  Status reclaim_expired();
  Status take_over();
  [[gnu::noinline]] void transfer_plain(std::span<StoreRequest> batch);
  [[gnu::noinline]] void write_parts(std::span<StoreRequest> batch);
  void keep_lease();
  void end_keeper();
  void note_change(int result);

  const RedisOptions options_;
  std::unique_ptr<RedisServers> servers_;
  std::shared_ptr<const packing::Packer> packer_;  // of a store whose chunks are packed
  std::unique_ptr<redis::Chunks> chunks_;
  std::unique_ptr<redis::PartWriter> parts_;          // of its writer
  std::unique_ptr<redis::SharedLease> shared_lease_;  // of one of several
  redis::Record record_;
  const uint32_t process_ = redis::generation();
  bool is_writer_ = false, is_removed_at_end_ = false;
  StoreTraits traits_;
  std::atomic<uint64_t> size_bytes_{0};
  WrittenMap written_;  // of a store that this process made: what was never written needs no fill
  bool knows_holes_ = false;

  std::thread keeper_;  // of the lease
  std::atomic<uint32_t> is_closing_{0};
  std::atomic<int> lease_error_{0};
};

}  // namespace outcore::store
