#include "run/preload/heap_space.h"

#include <fcntl.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/file_calls.h"
#include "core/store/booking.h"
#include "core/store/registry.h"
#include "core/store/scratch_store.h"
#include "core/store/uri.h"

namespace outcore::preload {
namespace {

Error refuse(const store::Uri& uri) {
  return {EINVAL, "store '" + uri.text +
                      "': memory of --alloc rests in space that dies with the process: "
                      "write scratch:DIR or far://HOST:PORT"};
}

class FileSpace final : public HeapSpace {
 public:
  static Result<std::unique_ptr<HeapSpace>> open(const store::Uri& uri, const std::string& folder,
                                                 const StoreLimits& limits) {
    std::unique_ptr<FileSpace> space(new FileSpace);
    space->folder_ = uri.path.empty() ? folder : uri.path;
    const int fd = store::open_scratch_file(&space->folder_);
    if (fd < 0)
      return base::system_error(fd, "make a scratch file in " + space->folder_,
                                "name a folder you may write to (scratch_dir, or TMPDIR)");
    if (Status s = space->file_.adopt(fd, true, store::DirectMode::kAuto, space->name()); !s)
      return s.error();
    StoreTraits& traits = space->traits_;
    traits.is_fault_safe = true;
    traits.can_read_while_written = true;
    traits.is_volatile = true;
    traits.alignment_bytes = space->file_.is_direct() ? store::kDirectAlignment : 1;
    traits.read_concurrency = limits.read_concurrency;
    traits.write_concurrency = limits.write_concurrency;
    return std::unique_ptr<HeapSpace>(std::move(space));
  }

  Status cover(uint64_t, uint64_t) override { return {}; }
  uint64_t free_bytes() const override {
    struct statvfs space;
    return ::fstatvfs(file_.fd(), &space) == 0 ? uint64_t{space.f_bavail} * space.f_frsize : 0;
  }
  uint64_t granule_bytes() const override { return base::kSystemPage; }
  int reserve(uint64_t offset, uint64_t size_bytes) override;
  void give_up(uint64_t offset, uint64_t size_bytes) override {
    const auto how = store::DiscardMode::kHole;
    static_cast<void>(store::free_blocks(file_.fd(), offset, size_bytes, how));
  }
  int read(uint64_t offset, std::span<std::byte> into) override { return file_.read(offset, into); }
  int write(uint64_t offset, std::span<const std::byte> from) override {
    return file_.write(offset, from);
  }
  void transfer(std::span<StoreRequest> batch) override { file_.transfer(batch, traits_); }
  void register_buffer(std::span<std::byte> buffer) override { leases_.lend(buffer); }
  int file() const override { return file_.fd(); }
  std::string name() const override { return folder_; }
  std::string remark() const override {
    std::string text = file_.why_buffered();
    if (!is_reservable_)
      text += std::string(text.empty() ? "" : "; ") +
              "the filesystem cannot reserve space: it may run out later";
    return text;
  }

 private:
  store::DirectFile file_;
  store::BufferLeases leases_;
  std::atomic<bool> is_reservable_{true};  // false where the filesystem cannot reserve
};

int FileSpace::reserve(uint64_t offset, uint64_t size_bytes) {
  OC_ASSERT(file_.fd() >= 0 && size_bytes != 0);
  if (!is_reservable_.load(std::memory_order_relaxed)) return 0;
  const int error = os::allocate_space(file_.fd(), offset, size_bytes);
  if (error == 0) return 0;
  if (error != -ENOTSUP) {
    give_up(offset, size_bytes);  // a part may have got some
    return error;
  }
  is_reservable_.store(false, std::memory_order_relaxed);
  return 0;
}

// Of a store that books its space, on other machines.
class BookedSpace final : public HeapSpace {
 public:
  static Result<std::unique_ptr<HeapSpace>> open(const StoreKind& kind, store::Uri uri,
                                                 const std::string& folder,
                                                 const StoreLimits& limits) {
    // What is promised gets its place, piece by piece.
    const std::string* const reserve = uri.find("reserve");
    if (reserve == nullptr || *reserve == "yes") {  // what else it is, the kind says
      std::erase_if(uri.parameters, [](const auto& one) { return one.first == "reserve"; });
      uri.parameters.emplace_back("reserve", "no");
    }
    auto store = kind.open(uri, {.is_writable = true, .may_create = true}, limits);
    if (!store) return store.error();
    std::unique_ptr<BookedSpace> space(new BookedSpace);
    space->store_ = std::move(store.value());
    space->booking_ = dynamic_cast<store::Booking*>(space->store_.get());
    if (space->booking_ == nullptr) return refuse(uri);
    space->folder_ = folder;
    space->traits_ = space->store_->traits();
    return std::unique_ptr<HeapSpace>(std::move(space));
  }

  Status cover(uint64_t capacity_bytes, uint64_t page_bytes) override {
    granule_bytes_ = std::max(page_bytes, booking_->granule_bytes());
    const int error = store_->resize(capacity_bytes);
    return error == 0 ? Status{}
                      : base::system_error(error, "cover " + base::format_bytes(capacity_bytes) +
                                                      " of addresses with " + name());
  }
  uint64_t free_bytes() const override {
    const Result<uint64_t> free = booking_->free_bytes();
    return free ? free.value() : 0;
  }
  uint64_t granule_bytes() const override { return granule_bytes_; }
  int reserve(uint64_t offset, uint64_t size_bytes) override {
    OC_CHECK(booking_ != nullptr && granule_bytes_ != 0);
    const uint64_t from = base::round_down(offset, granule_bytes_);
    const uint64_t to = base::round_up(offset + size_bytes, granule_bytes_);
    return store_->reserve(from, std::min(to, store_->size_bytes()) - from);
  }
  void give_up(uint64_t offset, uint64_t size_bytes) override {
    static_cast<void>(store_->release(offset, size_bytes));
  }
  int read(uint64_t offset, std::span<std::byte> into) override {
    return store_->read(offset, into);
  }
  int write(uint64_t offset, std::span<const std::byte> from) override {
    return store_->write(offset, from);
  }
  void transfer(std::span<StoreRequest> batch) override { store_->transfer(batch); }
  std::string name() const override { return store_->uri(); }
  std::string remark() const override { return store_->remark(); }
  bool is_unreplicated() const override { return store_->is_unreplicated(); }
  void retire() override { store_->retire(); }
  void use_room(std::shared_ptr<store::Room> room) override {
    if (auto* lodger = dynamic_cast<store::Lodger*>(store_.get()); lodger != nullptr)
      lodger->use_room(std::move(room));
  }

 private:
  std::shared_ptr<Store> store_;
  store::Booking* booking_ = nullptr;  // the store's
  uint64_t granule_bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<HeapSpace>> HeapSpace::open(const std::string& text,
                                                   const std::string& folder) {
  const Result<store::Uri> parsed = store::parse_uri(text);
  if (!parsed) return parsed.error();
  const store::Uri& uri = parsed.value();
  if (!store::dies_with_process(text)) return refuse(uri);
  const auto kind = find_store_kind(uri);
  if (!kind) return kind.error();
  const Result<unsigned> reads = uri.count_of("read_concurrency", 0);
  if (!reads) return reads.error();
  const Result<unsigned> writes = uri.count_of("write_concurrency", 0);
  if (!writes) return writes.error();
  const StoreLimits limits{reads.value(), writes.value()};
  if (kind.value()->place == StoreKind::Place::kFolder) return FileSpace::open(uri, folder, limits);
  return BookedSpace::open(*kind.value(), uri, folder, limits);
}

}  // namespace outcore::preload
