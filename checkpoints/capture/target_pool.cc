// PoolTarget: a versioned pool as a checkpoint target.

#include "checkpoints/capture/checkpoint_target.h"
#include "checkpoints/store/versioned_pools.h"
#include "checkpoints/store/versioned_store.h"
#include "core/base/assert.h"
#include "core/base/error.h"

namespace outcore::checkpoints {
namespace {

class PoolTarget final : public CheckpointTarget {
 public:
  explicit PoolTarget(std::shared_ptr<versioned::Pool> pool) : pool_(std::move(pool)) {
    OC_CHECK(pool_ != nullptr);
  }

  bool is_same(const CheckpointTarget& other) const override {
    const auto* const target = dynamic_cast<const PoolTarget*>(&other);
    return target != nullptr && target->pool_ == pool_;
  }
  bool has(Store& store) const override {
    auto* const of_pool = dynamic_cast<store::VersionedStore*>(&store);
    return of_pool != nullptr && of_pool->share_pool() == pool_;
  }
  std::string object_of(Store& store) const override {
    OC_CHECK(has(store));
    return dynamic_cast<store::VersionedStore&>(store).object().name();
  }
  bool may_rename() const override { return false; }
  bool commits_all() const override { return true; }

  std::mutex& making() override { return pool_->making(); }
  Result<bool> has_checkpoint(const std::string& name) override {
    return pool_->has_checkpoint(name);
  }
  Result<Copy> copy_for(const std::string& name, uint64_t size_bytes) override {
    auto object = pool_->find(name);
    if (object == nullptr) {
      auto made = pool_->create(name, size_bytes);
      if (!made) return made.error();
      object = std::move(made).value();
    } else if (object->size_bytes() != size_bytes) {
      if (const int error = pool_->resize(*object, size_bytes); error != 0)
        return base::system_error(
            error, "make the object '" + name + "' " + std::to_string(size_bytes) + " bytes large");
    }
    OC_CHECK(object != nullptr && object->size_bytes() == size_bytes);
    auto store = std::make_shared<store::VersionedStore>(pool_, object, "the object '" + name + "'",
                                                         StoreLimits());
    return Copy{std::move(store), pool_->chunk_bytes(), object,
                [object] { return object->state(); }};
  }
  Status sync_copies() override { return pool_->sync_data(); }
  Result<uint32_t> commit(const std::string& name, const std::string& comment,
                          std::span<const Member>) override {
    return pool_->commit(name, comment);
  }
  void refuse_commits(Store&, const Error& why) override { pool_->refuse_commits(why); }

  Result<std::vector<CheckpointInfo>> checkpoints() override {
    std::vector<CheckpointInfo> all;
    for (const versioned::CheckpointInfo& one : pool_->checkpoints()) {
      CheckpointInfo info;
      info.name = one.about.name;
      info.number = one.about.number;
      info.time_s = static_cast<int64_t>(one.about.time_ns / 1'000'000'000);
      all.push_back(std::move(info));
    }
    return all;
  }
  Status remove(const std::vector<std::string>& names) override { return pool_->remove(names); }

 private:
  const std::shared_ptr<versioned::Pool> pool_;
};

}  // namespace

Result<std::shared_ptr<CheckpointTarget>> target_of_pool(const std::string& text) {
  const auto uri = store::parse_uri(text);
  if (!uri) return uri.error();
  store::VersionedPoolOptions options;
  options.folder = uri->path;
  options.may_create = true;
  const auto chunk = uri->bytes_of("chunk", 0);
  if (!chunk) return chunk.error();
  options.chunk_bytes = static_cast<uint32_t>(chunk.value());
  auto pool = store::open_versioned_pool(options);
  if (!pool) return pool.error();
  return std::shared_ptr<CheckpointTarget>(std::make_shared<PoolTarget>(std::move(pool).value()));
}

std::shared_ptr<CheckpointTarget> target_of_pool(Store& store) {
  auto* const of_pool = dynamic_cast<store::VersionedStore*>(&store);
  return of_pool == nullptr ? nullptr : std::make_shared<PoolTarget>(of_pool->share_pool());
}

}  // namespace outcore::checkpoints
