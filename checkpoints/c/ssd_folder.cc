// A folder as a pool of oc_ssd_malloc: memory lies in objects of a versioned pool.
#include "checkpoints/c/ssd_pool.h"
#include "checkpoints/store/versioned_pools.h"
#include "core/store/uri.h"

namespace outcore::c {
namespace {

class SsdFolder final : public SsdPool {
 public:
  explicit SsdFolder(const std::string& uri) : SsdPool(uri) {}

  bool is_there() const override { return list_checkpoints(uri()).ok(); }
  Status prepare() override { return {}; }  // mapping does it

  Result<uint64_t> size_of(const std::string& name) override {
    if (!is_there()) return uint64_t{0};
    const auto objects = list_objects(uri());
    if (!objects) return objects.error();
    for (const CheckpointObject& object : objects.value())
      if (object.name == name) return object.size_bytes;
    return uint64_t{0};
  }
  Result<Region> map(Runtime& runtime, const std::string& name, uint64_t size_bytes) override {
    MapOptions options;
    options.access = Access::kReadWrite;
    options.size_bytes = size_bytes;
    options.may_create = true;
    return runtime.map(uri() + "?object=" + store::encode_percents(name), options);
  }
  Status keep() override {
    auto pool = opened();
    if (!pool) return pool.status();
    kept_ = std::move(pool).value();
    return {};
  }
  void rest() override { kept_.reset(); }
  // Without a commit: what the other objects contain is not of one moment.
  Status remove(const std::string& name) override {
    const auto pool = opened();
    return pool ? pool.value()->remove_object(name) : pool.status();
  }

  CheckpointPart part_of(const std::string&, const Region& region) const override {
    return CheckpointPart(region);
  }
  Status forget_range(const std::string& range) override {
    if (!is_there()) return {};
    const auto pool = opened();
    if (!pool) return pool.status();
    return pool.value()->find(range) == nullptr ? Status() : pool.value()->remove_object(range);
  }

 private:
  // The pool, which some memory keeps open.
  Result<std::shared_ptr<versioned::Pool>> opened() const {
    const auto parsed = store::parse_uri(uri());
    if (!parsed) return parsed.error();
    store::VersionedPoolOptions options;
    options.folder = parsed->path;
    return store::open_versioned_pool(options);
  }

  std::shared_ptr<versioned::Pool> kept_;
};

}  // namespace

Result<std::unique_ptr<SsdPool>> ssd_pool(const std::string& text) {
  using Checkpoints = StoreKind::Checkpoints;
  const StoreKind* const kind = kind_of_scheme(text);
  const Checkpoints kept = kind == nullptr ? Checkpoints::kNone : kind->checkpoints;
  if (kept == Checkpoints::kBySnapshots) return ssd_images(text);
  const std::string uri = kept == Checkpoints::kInPool ? text : "versioned:" + text;
  return std::unique_ptr<SsdPool>(std::make_unique<SsdFolder>(uri));
}

}  // namespace outcore::c
