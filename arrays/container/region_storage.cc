// RegionStorage: a container in any kind of store. Its bytes are those of a region, and one process
// writes them.
#include <algorithm>
#include <cerrno>
#include <mutex>
#include <set>

#include "arrays/container/container_storage.h"
#include "arrays/container/file_storage.h"
#include "arrays/container/shared_storage.h"
#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/store/registry.h"
#include "core/store/uri.h"
#include "outcore/runtime.h"

namespace outcore::arrays {
namespace {

constexpr uint64_t kReserveBytes = uint64_t{1} << 40;

// The stores in which this process writes containers. A second writer in the same process would
// have another copy of the catalog.
struct Writers {
  std::mutex mutex;
  std::set<std::string> identities;
  static Writers& instance() {
    static Writers* const writers = new Writers;
    return *writers;
  }
};

class RegionStorage final : public ContainerStorage {
 public:
  static Result<std::shared_ptr<ContainerStorage>> open(const StorageOptions& options) {
    auto storage = std::make_shared<RegionStorage>();
    storage->uri_ = options.uri;
    storage->is_writable_ = options.is_writable;
    // The store may be larger than asked for: map it to its end.
    OpenOptions how;
    how.is_writable = options.is_writable;
    how.may_create = options.may_create;
    how.size_bytes = options.may_create ? kNewContainerBytes : 0;
    auto store = open_store(options.uri, how);
    if (!store) return store.error();
    if (!options.is_writable) storage->store_ = store.value();
    storage->identity_ = store.value()->identity();
    if (storage->identity_.empty()) storage->identity_ = options.uri;
    MapOptions map;
    map.access = options.is_writable ? Access::kReadWrite : Access::kReadOnly;
    if (options.is_writable)
      map.reserve_bytes = std::max(kReserveBytes, 4 * store.value()->size_bytes());
    auto runtime = options.runtime->get();
    if (!runtime) return runtime.error();
    auto region = runtime.value()->map(std::move(store).value(), map);
    if (!region) return region.error();
    storage->runtime_ = options.runtime;
    storage->region_ = std::make_shared<Region>(std::move(region).value());
    return std::shared_ptr<ContainerStorage>(std::move(storage));
  }

  ~RegionStorage() override { unlock(Lease::kWriter); }

  uint64_t size_bytes() const override { return region_->size_bytes(); }
  Status clear() override { return discard(0, size_bytes()); }
  Status grow(uint64_t size_bytes) override {
    return size_bytes <= this->size_bytes()
               ? Status()
               : region_->grow(base::round_up(size_bytes, base::kSystemPage));
  }
  Status provide(uint64_t offset, uint64_t size_bytes) override {
    const uint64_t old_end = this->size_bytes();
    if (offset < old_end)
      if (Status s = discard(offset, std::min(size_bytes, old_end - offset)); !s) return s;
    return grow(offset + size_bytes);
  }
  Status provide_sparse(uint64_t offset, uint64_t size_bytes) override {
    return provide(offset, size_bytes);  // this allocates nothing either
  }
  Status release(uint64_t offset, uint64_t size_bytes) override {
    return discard(offset, size_bytes);
  }
  Status read(uint64_t offset, std::span<std::byte> into) override {
    OC_CHECK(region_ != nullptr);
    return region_->read(offset, into);
  }
  // A writer's own pages are the newest.
  Status read_anew(uint64_t offset, std::span<std::byte> into) override {
    if (store_ == nullptr) return read(offset, into);
    const int error = -store_->read(offset, into);
    return error == 0 ? Status() : base::system_error(error, "read " + uri_);
  }
  Status write(uint64_t offset, std::span<const std::byte> from) override {
    OC_CHECK(region_ != nullptr && is_writable_);
    return region_->write(offset, from);
  }
  Status read_runs(uint64_t first, const Runs& runs, std::byte* into) override {
    return all(runs, [&](uint64_t there, uint64_t here) {
      return region_->read(first + there, {into + here, runs.run_bytes});
    });
  }
  Status write_runs(uint64_t first, const Runs& runs, const std::byte* from) override {
    return all(runs, [&](uint64_t there, uint64_t here) {
      return region_->write(first + there, {from + here, runs.run_bytes});
    });
  }
  // Otherwise its runtime could keep others from writing while the container's object exists.
  void leave() override { region_.reset(); }
  Status sync() override { return region_->sync(); }
  Status forget(uint64_t, uint64_t) override { return region_->sync(); }
  std::string identity() const override { return identity_; }

  Result<std::shared_ptr<Mapping>> map(const std::shared_ptr<ContainerStorage>&, uint64_t offset,
                                       uint64_t) override {
    OC_CHECK(region_ != nullptr);
    auto mapping = std::make_shared<OfRegion>();
    mapping->runtime = runtime_;
    mapping->region = region_;
    mapping->data = region_->data() + offset;
    return std::shared_ptr<Mapping>(std::move(mapping));
  }
  bool ends_where_used() const override { return false; }
  bool knows_readers() const override { return false; }
  bool can_be_shared() const override { return false; }  // the store has one writer
  // The store's own lock excludes other processes; the table excludes others in this one.
  Status lock(Lease lease, bool, bool) override {
    if (lease != Lease::kWriter) return {};
    const std::lock_guard<std::mutex> guard(Writers::instance().mutex);
    OC_CHECK(!is_writer_ && is_writable_);
    is_writer_ = Writers::instance().identities.insert(identity_).second;
    if (is_writer_) return {};
    return Error{EBUSY, "open " + uri_ + ": this process writes it already: close that first"};
  }
  void unlock(Lease lease) override {
    if (lease != Lease::kWriter || !is_writer_) return;
    const std::lock_guard<std::mutex> guard(Writers::instance().mutex);
    Writers::instance().identities.erase(identity_);
    is_writer_ = false;
  }
  Status lock_range(uint64_t) override { return {}; }  // one process writes
  void unlock_range(uint64_t) override {}
  Result<bool> is_locked_by_others(Lease lease) override {
    if (lease != Lease::kWriter || is_writer_) return false;
    const std::lock_guard<std::mutex> guard(Writers::instance().mutex);
    return Writers::instance().identities.contains(identity_);
  }
  std::string uri() const override { return uri_; }
  std::string describe() const override { return "a store, by the pages of a region"; }

 private:
  struct OfRegion final : Mapping {
    std::shared_ptr<LentRuntime> runtime;
    std::shared_ptr<Region> region;
  };

  template <typename Do>
  static Status all(const Runs& runs, const Do& act) {
    Status first;
    for_each_run(runs, [&](uint64_t there, uint64_t here) {
      first = act(there, here);
      return !first.ok();
    });
    return first;
  }
  Status discard(uint64_t offset, uint64_t size_bytes) {
    const uint64_t end = base::round_down(offset + size_bytes, base::kSystemPage);
    return offset >= end ? Status() : region_->discard(offset, end - offset);
  }

  std::string uri_, identity_;
  bool is_writable_ = false, is_writer_ = false;
  std::shared_ptr<LentRuntime> runtime_;
  std::shared_ptr<Store> store_;    // if it is only read
  std::shared_ptr<Region> region_;  // shared with views
};

Result<std::shared_ptr<ContainerStorage>> open_pmem(const StorageOptions& options,
                                                    const store::Uri& uri) {
  if (const auto kind = find_store_kind(uri); !kind) return kind.error();
  if (uri.path.empty() || uri.parameters.size() > (uri.find("map_sync") == nullptr ? 0 : 1))
    return Error{EINVAL, "arrays in '" + uri.text +
                             "': persistent memory has a path and no parameter but map_sync: "
                             "write pmem:PATH or pmem:PATH?map_sync=off"};
  const auto is_on = store::is_on(uri, "map_sync", true);
  if (!is_on) return is_on.error();
  return FileStorage::open(options, uri.path, is_on.value() ? MapSync::kOn : MapSync::kOff);
}

}  // namespace

Result<std::shared_ptr<ContainerStorage>> open_storage(const StorageOptions& options) {
  const auto uri = store::parse_uri(options.uri);
  if (!uri) return uri.error();
  if (store::is_persistent_memory(uri.value())) return open_pmem(options, uri.value());
  if (store::is_plain_file(uri.value())) return FileStorage::open(options, uri->path, std::nullopt);
  if (options.is_writable && options.writers > 1 && outcore::can_be_shared(options.uri))
    return SharedStorage::open(options);
  return RegionStorage::open(options);
}

}  // namespace outcore::arrays
