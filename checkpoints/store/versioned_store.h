// VersionedStore: a store whose bytes are an object of a versioned pool. VersionedSnapshotStore:
// the object as a checkpoint contains it, read-only.
//
// sync() commits the whole pool: all its objects become durable as one state. What was written
// after the last sync() is lost when the process dies or the power fails. Fault safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "checkpoints/pool/pool.h"
#include "core/store/committing.h"
#include "core/store/registry.h"
#include "outcore/store.h"

namespace outcore::store {

// versioned:FOLDER?object=NAME&chunk=4k&at=CHECKPOINT&direct=auto
Result<std::shared_ptr<Store>> open_versioned(const Uri& uri, const OpenOptions& options,
                                              const StoreLimits& limits);
// What is wrong with such a URI. Errors: EINVAL.
Status check_versioned(const Uri& uri);

class VersionedStore final : public Store, public Committing {
 public:
  VersionedStore(std::shared_ptr<versioned::Pool> pool, std::shared_ptr<versioned::Object> object,
                 std::string uri, const StoreLimits& limits);

  versioned::Pool& pool() { return *pool_; }
  const std::shared_ptr<versioned::Pool>& share_pool() const { return pool_; }
  const versioned::Object& object() const { return *object_; }

  uint64_t size_bytes() const override { return object_->size_bytes(); }
  int read(uint64_t offset, std::span<std::byte> into) override {
    return pool_->read(*object_, offset, into);
  }
  int write(uint64_t offset, std::span<const std::byte> from) override {
    return pool_->write(*object_, offset, from);
  }
  void transfer(std::span<StoreRequest> batch) override { pool_->transfer(*object_, batch); }
  int sync() override { return pool_->sync(); }
  int resize(uint64_t size_bytes) override { return pool_->resize(*object_, size_bytes); }
  int discard(uint64_t offset, uint64_t size_bytes) override {
    return pool_->discard(*object_, offset, size_bytes);
  }
  int release(uint64_t offset, uint64_t size_bytes) override {
    return pool_->discard(*object_, offset, size_bytes);
  }
  bool is_hole(uint64_t offset, uint64_t size_bytes) const override {
    return pool_->is_hole(*object_, offset, size_bytes);
  }
  void register_buffer(std::span<std::byte> buffer) override { pool_->register_buffer(buffer); }
  void begin_writing() override { pool_->begin_writer(); }
  Status end_writing(bool is_forced) override { return pool_->end_writer(is_forced); }
  Status can_commit() const override { return pool_->is_lost() ? pool_->can_commit() : Status(); }
  StoreTraits traits() const override { return traits_; }
  std::string uri() const override { return uri_; }
  std::string remark() const override;
  std::string identity() const override;

 private:
  const std::shared_ptr<versioned::Pool> pool_;
  const std::shared_ptr<versioned::Object> object_;
  const std::string uri_;
  StoreTraits traits_;
};

class VersionedSnapshotStore final : public Store {
 public:
  VersionedSnapshotStore(std::shared_ptr<versioned::Snapshot> snapshot,
                         const versioned::StateObject& object, std::string uri,
                         std::string identity, const StoreLimits& limits);

  uint64_t size_bytes() const override { return object_.size_bytes; }
  int read(uint64_t offset, std::span<std::byte> into) override {
    return snapshot_->read(object_, offset, into);
  }
  int write(uint64_t, std::span<const std::byte>) override { return -13; }  // EACCES
  void transfer(std::span<StoreRequest> batch) override;
  int discard(uint64_t, uint64_t) override { return -13; }
  bool is_hole(uint64_t offset, uint64_t size_bytes) const override;
  void register_buffer(std::span<std::byte> buffer) override {
    snapshot_->data().register_buffer(buffer);
  }
  StoreTraits traits() const override { return traits_; }
  std::string uri() const override { return uri_; }
  std::string remark() const override;
  std::string identity() const override { return identity_; }
  // The sum of the sums of its chunks. Looks at all of them, once.
  std::string contents_id() const override;
  // The same commit, by the folder that the parent has open: it may be at another place by then.
  Result<std::shared_ptr<Store>> reopen() const override;

 private:
  const std::shared_ptr<versioned::Snapshot> snapshot_;
  const versioned::StateObject& object_;
  const std::string uri_, identity_;
  StoreTraits traits_;
  mutable std::once_flag is_summed_;
  mutable std::string contents_id_;
};

}  // namespace outcore::store
