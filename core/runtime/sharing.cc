#include "core/runtime/sharing.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/buffer_frames.h"
#include "core/paging/shared_writer.h"
#include "core/runtime/map_checks.h"
#include "core/runtime/mapper.h"
#include "core/runtime/runtime_impl.h"
#include "core/store/file_store.h"
#include "core/store/uri.h"

namespace outcore::runtime {

using budget::BouncePool;

namespace {

constexpr uint64_t kWaitNs = 2'000'000'000;  // for room that others make
constexpr const char* kSizeStays = "it is written in this buffer, and its size stays meanwhile";

// nullptr: its bytes are in no file.
const store::FileStore* file_of(const Store& store) {
  return dynamic_cast<const store::FileStore*>(&store);
}
const store::FileStore* file_of(const paging::PageCache& cache) {
  return file_of(*cache.store.load());
}

// Whether others can tell that they have the same bytes.
bool has_known_contents(const Store& store, Access access) {
  return file_of(store) != nullptr || (access == Access::kReadOnly && !store.contents_id().empty());
}

Result<store::FileVersion> version_of(const Store& store) {
  if (const store::FileStore* const file = file_of(store)) return file->version();
  return store::FileVersion::of_contents(store.contents_id(), store.size_bytes());
}

// The pages up to the end of the region: it may be longer than its store, as with mmap. Room to
// grow does not count, as what is shared does not grow.
uint64_t pages_until_end(const MapOptions& o) {
  return base::round_up(o.offset + o.size_bytes, buffer::kPage) / buffer::kPage;
}

// Others may have it by its name, and it stays as large as it is.
bool can_be_written_together(const store::FileStore& file, const MapOptions& o,
                             uint64_t store_bytes) {
  struct stat about {};
  return ::fstat(file.descriptor(), &about) == 0 && about.st_nlink != 0 &&
         o.offset + std::max(o.reserve_bytes, o.size_bytes) <= store_bytes;
}

buffer::SharedFile::Use use_to_write(const Runtime::Impl::Lent* lent) {
  using Together = Runtime::Impl::Lent::Together;
  using Use = buffer::SharedFile::Use;
  if (lent == nullptr || lent->together == Together::kNot) return Use::kWrite;
  return lent->together == Together::kFirst ? Use::kTogether : Use::kJoined;
}

}  // namespace

Status Sharing::join(bool has_own_budget_beside) {
  has_own_budget_beside_ = has_own_budget_beside;
  if (runtime_.options.buffer == "none") return {};
  Result<std::shared_ptr<buffer::Buffer>> joined =
      buffer::Buffer::join(runtime_.options.buffer, runtime_.options.budget_bytes);
  if (!joined) return joined.error();
  buffer_ = std::move(joined).value();
  const uint64_t bytes = bounce_shape().total_bytes();
  if (buffer_->acquire_private(bytes, kWaitNs)) {
    private_bytes_ = bytes;
    return {};
  }
  return Error{ENOMEM, "join the buffer " + runtime_.options.buffer + ": its limit of " +
                           base::format_bytes(buffer_->room().limit_bytes()) +
                           " has no room for what one more process needs beside the pages: make it "
                           "larger (outcore buffers resize NAME SIZE)"};
}

void Sharing::release_private_memory() {
  if (private_bytes_ != 0) buffer_->release_private(std::exchange(private_bytes_, 0));
}

void Sharing::leave_to_parent() {
  static_cast<void>(new std::shared_ptr<buffer::Buffer>(std::move(buffer_)));
}

// Until a region needs them the pager has no pages of its own; then half of the limit, or less.
uint64_t Sharing::pages_bytes() const {
  return buffer_ == nullptr || has_own_budget_beside_ ? runtime_.options.budget_bytes
                                                      : buffer_->room().limit_bytes() / 2;
}

// Some buffers for transfers of up to 512 KiB: less than a hundredth of the limit, and a huge page
// from half a GiB on.
BouncePool::Shape Sharing::bounce_shape() const {
  if (buffer_ == nullptr) return {};
  const uint64_t limit = buffer_->room().limit_bytes();
  BouncePool::Shape shape;
  shape.small_count = 8;
  shape.chunk_bytes = std::clamp<uint64_t>(std::bit_floor(limit / 512), 32 << 10, 512 << 10);
  shape.chunk_count =
      static_cast<uint32_t>(std::clamp<uint64_t>(limit / 256 / shape.chunk_bytes, 2, 8));
  return shape;
}

bool Sharing::can_share(const paging::PageCache& cache, const MapOptions& o,
                        const Runtime::Impl::Lent* lent) const {
  const Delivery delivery = o.delivery.value_or(runtime_.options.delivery);
  const FrameKind frames = o.frames.value_or(runtime_.options.frames);
  return buffer_ != nullptr && o.access != Access::kPrivate &&
         cache.page_bytes == base::kSystemPage && (lent == nullptr || lent->may_share) &&
         runtime_.kernel.has_sigbus && runtime_.kernel.has_write_tracking &&
         delivery != Delivery::kMprotect && frames != FrameKind::kPrivate &&
         o.on_error.value_or(runtime_.options.on_error) != OnError::kZeroFill &&
         cache.store_bytes != 0 && cache.traits.is_fault_safe &&
         has_known_contents(*cache.store.load(), o.access) &&
         (o.access != Access::kReadWrite ||
          (runtime_.options.checkpoint_every_ms == 0 && (lent == nullptr || lent->must_share) &&
           can_be_written_together(*file_of(cache), o, cache.store_bytes.load())));
}

// REQUIRES: can_share().
Status Sharing::share(paging::PageCache& cache, const Mechanism& chosen, uint64_t pages_least,
                      const Runtime::Impl::Lent* lent) const {
  const bool is_written = cache.is_writable.load();
  const store::FileStore* const file = file_of(cache);
  OC_CHECK(buffer_ != nullptr && cache.shared == nullptr);
  OC_CHECK(file != nullptr || !is_written);
  const Result<store::FileVersion> version = version_of(*cache.store.load());
  if (!version) return version.error();
  if (version.value().size_bytes != cache.store_bytes.load())
    return Error{EBUSY, "its size changes just now"};
  Result<const os::FaultSource*> source =
      is_written ? runtime_.sources->source_for_writes(chosen.delivery)
                 : runtime_.sources->source_for({chosen.delivery, FrameKind::kShared});
  if (!source) return source.error();
  if (Status s = runtime_.sources->guard(chosen.delivery == Delivery::kMessages, is_written); !s)
    return s;
  using Use = buffer::SharedFile::Use;
  Result<std::unique_ptr<buffer::SharedFile>> shared = buffer::SharedFile::open(
      buffer_, version.value(), is_written ? use_to_write(lent) : Use::kRead,
      file == nullptr ? -1 : file->descriptor(), pages_least);
  if (!shared) return shared.error();
  if (is_written) cache.writes = std::make_unique<paging::SharedWrites>();
  cache.shared = std::move(shared).value();
  Mapper::set_delivery(cache, chosen.delivery);
  cache.frames =
      os::BufferFrames::make(*source.value(), buffer_->member().frames_fd(),
                             cache.shared->first_frame_page() * buffer::kPage, is_written);
  return {};
}

Result<bool> Sharing::try_to_share(paging::PageCache& cache, const MapOptions& o,
                                   const Runtime::Impl::Lent* lent, const Mechanism& chosen) const {
  if (can_share(cache, o, lent)) {
    const Status shared = share(cache, chosen, pages_until_end(o), lent);
    if (shared.ok()) return true;
    if (cache.is_writable) return shared.error();
  }
  // Memory of its own beside theirs: neither would see what the other writes.
  if (buffer_ == nullptr || file_of(cache) == nullptr || o.access == Access::kPrivate) return false;
  const Result<store::FileVersion> version = file_of(cache)->version();
  if (version && buffer::SharedFile::has_writers(*buffer_, version.value()))
    return Error{
        EBUSY,
        "it is written in this buffer: map it as those do who write it (pages of 4 KiB, not "
        "longer than it is, no reserve, no checkpoints), or by a runtime without a buffer, which "
        "sees what is stored"};
  return false;
}

Status Sharing::may_join(const paging::PageCache& cache, const Store& store, const MapOptions& o) {
  if (cache.shared == nullptr) return {};
  const auto busy = [&](const std::string& why) {
    return refuse(EBUSY, cache.uri, "it is mapped already, " + why);
  };
  if (o.access == Access::kReadWrite && cache.writes == nullptr)
    return busy(
        "read-only and in a buffer that others share: map it for writing at first, or unmap "
        "it first");
  if (const std::string id = store.contents_id(); id != cache.store.load()->contents_id())
    return busy(id.empty() ? "others share its pages, and somebody writes it, or may do so: unmap "
                             "it first"
                           : "as it was before somebody wrote it, and others share its pages: "
                             "unmap it first");
  if (o.offset + o.size_bytes > cache.shared->pages() * buffer::kPage)
    return busy("and others share its pages: map it as long at first, or unmap it first");
  return {};
}

Status Sharing::may_enlarge(const Store& store, uint64_t bytes) const {
  if (buffer_ == nullptr || file_of(store) == nullptr || bytes <= store.size_bytes()) return {};
  const Result<store::FileVersion> version = file_of(store)->version();
  if (version && buffer::SharedFile::has_writers(*buffer_, version.value()))
    return Error{EBUSY, kSizeStays};
  return {};
}

// By its name: to open and close it would end locks that the program has of it.
Status Sharing::may_enlarge(const std::string& uri, uint64_t bytes) const {
  const Result<store::Uri> parsed = store::parse_uri(uri);
  struct stat about {};
  if (buffer_ == nullptr || !parsed || ::stat(parsed.value().path.c_str(), &about) != 0 ||
      !S_ISREG(about.st_mode) || bytes <= static_cast<uint64_t>(about.st_size))
    return {};
  store::FileVersion version;
  version.device = about.st_dev;
  version.inode = about.st_ino;
  if (buffer::SharedFile::has_writers(*buffer_, version)) return Error{EBUSY, kSizeStays};
  return {};
}

Status Sharing::may_shorten(const Store& store) const {
  if (buffer_ == nullptr || file_of(store) == nullptr) return {};
  const Result<store::FileVersion> version = file_of(store)->version();
  if (!version) return version.error();
  if (buffer::SharedFile::is_anybodys(*buffer_, version.value()))
    return Error{EBUSY, "others have it in the buffer " + runtime_.options.buffer +
                            ", and would lose what is cut off: let them unmap it first"};
  return {};
}

void Sharing::leave(paging::PageCache& cache) const {
  if (cache.writes == nullptr) return;
  cache.shared->end_writing(file_of(cache)->descriptor(), [&] {
    const os::SignalBlock block;
    const int error = runtime_.engine->store_adopted(cache);
    if (error != 0)
      std::fprintf(stderr, "outcore: %s\n",
                   base::system_error(
                       error, "write to " + cache.uri + " what a process wrote that has ended")
                       .message.c_str());
    return error == 0;
  });
}

Status Sharing::acquire_private_memory() {
  if (buffer_ == nullptr || has_private_memory_ || has_own_budget_beside_) return {};
  const uint64_t least = base::round_up(
      runtime_.engine->pager().least_budget(runtime_.options.page_bytes), base::kSystemPage);
  uint64_t wait_ns = kWaitNs;  // in all
  for (uint64_t bytes = pages_bytes(); bytes >= least; bytes /= 2) {
    bytes = base::round_down(bytes, base::kSystemPage);
    if (!buffer_->acquire_private(bytes, wait_ns)) {
      wait_ns /= 2;
      continue;
    }
    if (Status s = runtime_.engine->resize_budget(bytes); !s) {
      buffer_->release_private(bytes);
      return s;
    }
    private_bytes_ += bytes;
    has_private_memory_ = true;
    return {};
  }
  return Error{ENOMEM, "the buffer " + runtime_.options.buffer + " of " +
                           base::format_bytes(buffer_->room().limit_bytes()) +
                           " has no memory left for pages that are not shared: make it larger "
                           "(outcore buffers resize NAME SIZE)"};
}

}  // namespace outcore::runtime
