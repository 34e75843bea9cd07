// SharedStorage: a container in a store that several processes write at the same time. It transfers
// ranges of bytes, without a region, because pages of a region would write back old bytes over
// those of other processes.
//
// Runs that are close to each other are read together. Writes contain exactly the given bytes, many
// runs in one batch. There are no mapped views: they would show old bytes.
#pragma once

#include <memory>

#include "arrays/container/container_storage.h"
#include "outcore/shared_writers.h"

namespace outcore::arrays {

class SharedStorage final : public ContainerStorage {
 public:
  // REQUIRES: outcore::can_be_shared(options.uri), and options.is_writable.
  static Result<std::shared_ptr<ContainerStorage>> open(const StorageOptions& options);

  uint64_t size_bytes() const override;
  Status clear() override;
  Status grow(uint64_t size_bytes) override;
  Status provide(uint64_t offset, uint64_t size_bytes) override;
  Status provide_sparse(uint64_t offset, uint64_t size_bytes) override;
  Status release(uint64_t offset, uint64_t size_bytes) override;
  Status read(uint64_t offset, std::span<std::byte> into) override;
  Status write(uint64_t offset, std::span<const std::byte> from) override;
  Status read_runs(uint64_t first, const Runs& runs, std::byte* into) override;
  Status write_runs(uint64_t first, const Runs& runs, const std::byte* from) override;
  Status sync() override;
  Status forget(uint64_t offset, uint64_t size_bytes) override;
  Result<std::shared_ptr<Mapping>> map(const std::shared_ptr<ContainerStorage>& self,
                                       uint64_t offset, uint64_t size_bytes) override;
  bool ends_where_used() const override { return false; }
  bool can_be_shared() const override { return true; }
  Status hear_of_others() override { return writers_->hear_of_others(); }
  void leave() override { writers_->leave(); }
  std::string patience() const override { return ", or for 15 s if it has ended"; }
  Status lock(Lease lease, bool is_exclusive, bool may_wait) override;
  void unlock(Lease lease) override;
  Status lock_range(uint64_t offset) override;
  void unlock_range(uint64_t offset) override;
  bool knows_readers() const override { return false; }
  Result<bool> is_locked_by_others(Lease lease) override;
  std::string uri() const override { return uri_; }
  std::string identity() const override { return identity_; }
  std::string describe() const override {
    return "a store that several processes write, by ranges of bytes";
  }

 private:
  Status check(int result, const char* verb, uint64_t offset, uint64_t size_bytes);
  Status transfer(std::span<StoreRequest> batch);

  std::string uri_, identity_;
  std::shared_ptr<SharedWriters> writers_;
};

}  // namespace outcore::arrays
