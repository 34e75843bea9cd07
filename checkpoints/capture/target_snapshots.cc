// SnapshotTarget: snapshots of stores that have them, as a checkpoint target. Memory, and stores of
// other systems, are copied to stores beside the anchor, which are named ANCHOR.OBJECT.
#include <atomic>
#include <cerrno>
#include <map>

#include "checkpoints/capture/checkpoint_target.h"
#include "core/base/assert.h"
#include "core/base/error.h"

namespace outcore::checkpoints {
namespace {

constexpr uint64_t kChunkBytes = 4096;

class SnapshotTarget final : public CheckpointTarget {
 public:
  explicit SnapshotTarget(store::SnapshotCatalog catalog) : catalog_(std::move(catalog)) {}

  bool is_same(const CheckpointTarget& other) const override {
    const auto* const target = dynamic_cast<const SnapshotTarget*>(&other);
    return target != nullptr &&
           target->catalog_.anchor().identity() == catalog_.anchor().identity();
  }
  bool has(Store& store) const override {
    const Snapshots* const own = store.snapshots();
    return own != nullptr && own->can_snapshot() &&
           own->cluster() == catalog_.snapshots().cluster();
  }
  std::string object_of(Store& store) const override {
    OC_CHECK(has(store));
    const std::string place = store.snapshots()->place();
    return place.substr(place.rfind('/') + 1);
  }
  bool may_rename() const override { return true; }
  bool commits_all() const override { return false; }

  std::mutex& making() override { return state().making; }
  Result<bool> has_checkpoint(const std::string& name) override {
    const auto found = catalog_.find(name);
    if (!found && found.code() != ENOENT) return found.error();
    return found.code() != ENOENT;
  }
  Result<Copy> copy_for(const std::string& object, uint64_t size_bytes) override {
    std::shared_ptr<Store> store;
    std::shared_ptr<std::atomic<uint64_t>> writes;
    {
      const std::lock_guard<std::mutex> guard(state().mutex);
      store = state().copies[object];
      writes = state().writes[object];
    }
    if (store == nullptr) {
      auto opened =
          catalog_.open_copy(place() + "." + store::plain_name(object), object, size_bytes);
      if (!opened) return opened.error();
      store = std::move(opened).value();
      writes = std::make_shared<std::atomic<uint64_t>>(0);
      const std::lock_guard<std::mutex> guard(state().mutex);
      state().copies[object] = store;
      state().writes[object] = writes;
    }
    OC_CHECK(store != nullptr && writes != nullptr);
    copies_[object] = store;
    if (store->size_bytes() != size_bytes) {
      const int error = store->resize(size_bytes);
      writes->fetch_add(1);
      if (error != 0)
        return base::system_error(
            error, "make " + store->uri() + " " + std::to_string(size_bytes) + " bytes large");
    }
    return Copy{store, kChunkBytes, store, [writes] { return writes->load(); },
                [writes] { writes->fetch_add(1); }};
  }
  Status sync_copies() override {
    for (const auto& [name, store] : copies_)
      if (const int error = store->sync(); error != 0)
        return base::system_error(error, "sync " + store->uri());
    return {};
  }
  Result<uint32_t> commit(const std::string& name, const std::string& comment,
                          std::span<const Member> members) override {
    return catalog_.add(name, comment, members);
  }
  void refuse_commits(Store& store, const Error& why) override {
    store::SnapshotState& of = store::SnapshotState::of(store);
    const std::lock_guard<std::mutex> guard(of.mutex);
    of.refused = why;
  }

  Result<std::vector<CheckpointInfo>> checkpoints() override {
    const auto entries = catalog_.list();
    if (!entries) return entries.error();
    std::vector<CheckpointInfo> all;
    for (const store::SnapshotEntry& entry : entries.value()) all.push_back(info_of(entry));
    return all;
  }
  Status remove(const std::vector<std::string>& names) override { return catalog_.remove(names); }

 private:
  store::SnapshotState& state() const { return store::SnapshotState::of(catalog_.anchor()); }
  std::string place() const { return catalog_.snapshots().place(); }

  store::SnapshotCatalog catalog_;
  // The copies of this checkpoint, by object.
  std::map<std::string, std::shared_ptr<Store>> copies_;
};

}  // namespace

std::shared_ptr<CheckpointTarget> target_of_snapshots(store::SnapshotCatalog catalog) {
  return std::make_shared<SnapshotTarget>(std::move(catalog));
}

}  // namespace outcore::checkpoints
