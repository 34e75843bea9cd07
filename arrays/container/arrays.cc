#include "outcore/arrays.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>

#include "arrays/container/arrays_impl.h"
#include "arrays/container/catalog_text.h"
#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/cancel_block.h"
#include "core/store/uri.h"

namespace outcore {

using arrays::Catalog;
using arrays::Change;
using arrays::Entry;
using arrays::Lease;
using arrays::Runs;

namespace arrays {

uint64_t new_stamp() {
  std::random_device random;
  return (uint64_t{random()} << 32 | random()) | 1;
}

ArrayInfo info_of(const Entry& entry) {
  ArrayInfo info;
  info.name = entry.name;
  info.type = entry.type;
  info.dims = entry.dims;
  info.order = entry.order;
  info.tiles = entry.tiles;
  info.compress = entry.compress;
  info.size_bytes = entry.is_inline() ? entry.value.size() : entry.size_bytes;
  return info;
}

Dims in_rows(const Entry& entry, const Dims& dims) {
  if (entry.order == Order::kRow) return dims;
  return {dims.rbegin(), dims.rend()};
}

}  // namespace arrays

namespace {

// ": it has 'a', 'b', …"
std::string few_of(std::vector<std::string_view> names) {
  constexpr size_t kToldMax = 8;
  if (names.empty()) return ": it has none";
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string text = ": it has ";
  for (size_t i = 0; i < std::min(names.size(), kToldMax); ++i)
    text += (i == 0 ? "'" : ", '") + std::string(names[i]) + "'";
  return names.size() > kToldMax ? text + ", …" : text;
}

}  // namespace

Error Arrays::Impl::no_such(const std::string& attempted, const std::string& name) const {
  std::vector<std::string_view> names;
  for (const auto& [id, entry] : catalog->entries())
    if (entry.session == 0 || entry.session == session) names.push_back(entry.name);
  std::string which = store::did_you_mean(name, names);
  if (which.empty()) which = few_of(names);
  return {ENOENT, attempted + ": there is no array '" + name + "' in " + storage->uri() + which};
}

Result<Entry> Arrays::Impl::find(const std::string& attempted, const std::string& name) const {
  if (Status s = check_open(attempted); !s) return s.error();
  {
    const std::lock_guard<std::mutex> guard(mutex);
    if (const Entry* entry = catalog->find(name, session)) return *entry;
    if (session == 0 || together.size == 1) return no_such(attempted, name);
  }
  const CatalogLock lock(const_cast<Impl&>(*this));  // another process may have made the array
  if (!lock.status().ok()) return lock.status().error();
  if (const Entry* entry = catalog->find(name, session)) return *entry;
  return no_such(attempted, name);
}

Status Arrays::Impl::check_open(const std::string& attempted) const {
  if (process != ::getpid())
    return Error{EPERM,
                 attempted + ": " + storage->uri() + " is open in the parent of this process"};
  if (!is_open) return Error{EBADF, attempted + ": " + storage->uri() + " is closed"};
  return {};
}

Status Arrays::Impl::check_writable(const std::string& attempted) const {
  if (Status s = check_open(attempted); !s || session != 0) return s;
  return Error{EACCES, attempted + ": " + storage->uri() +
                           " is open for reading: open it with ArraysMode::kUpdate"};
}

Status Arrays::Impl::noted(Status s) {
  const int code = s.code();
  if (code != 0 && code != EINVAL && code != EEXIST && code != EBUSY && code != ENOENT)
    has_failed = true;
  return s;
}

// Other processes of the session may still write to arrays that they believe to exist.
bool Arrays::Impl::may_free() const {
  if (together.size != 1 || !storage->knows_readers()) return false;
  const auto is_read = storage->is_locked_by_others(Lease::kReader);
  return is_read.ok() && !is_read.value();
}

Status Arrays::Impl::make(const std::string& attempted, Entry* entry, uint64_t bytes,
                          const std::vector<uint64_t>& remove) {
  OC_CHECK(session != 0);
  entry->id = catalog->next_id();
  entry->session = session;
  if (entry->stamp == 0) entry->stamp = arrays::new_stamp();
  entry->block_bytes = 0;
  entry->are_sums_open = false;
  if (bytes != 0) {
    entry->size_bytes = base::round_up(bytes, base::kSystemPage);
    if (has_checksums && entry->compress.empty()) {
      entry->block_bytes = arrays::block_bytes_for(bytes);
      entry->size_bytes = base::round_up(arrays::sums_offset(*entry) - entry->offset +
                                             arrays::sums_bytes(arrays::block_count(*entry)),
                                         base::kSystemPage);
    }
    entry->offset = catalog->find_room(entry->size_bytes, may_free());
    OC_CHECK(entry->offset % base::kSystemPage == 0);
    const Status s = entry->compress.empty()
                         ? storage->provide(entry->offset, entry->size_bytes)
                         : storage->provide_sparse(entry->offset, entry->size_bytes);
    if (!s.ok()) return noted(Error{s.code(), attempted + ": " + s.message()});
  }
  if (!arrays::is_sound(*entry))  // nobody could read it back
    return Error{EINVAL, attempted + ": an array of " + arrays::text_of(entry->dims) +
                             " cannot be kept so: give it other tiles"};
  Change change;
  change.put.push_back(*entry);
  change.remove = remove;
  return noted(catalog->append(change, false));
}

Status Arrays::Impl::write_value(const std::string& attempted, const Entry& entry,
                                 const std::byte* from, const Runs& runs) {
  const CatalogLock lock(*this);
  if (!lock.status().ok()) return lock.status();
  const auto there = catalog->entries().find(entry.id);
  if (there == catalog->entries().end() || there->second.value.size() != entry.value.size())
    return no_such(attempted, entry.name);  // it was replaced or removed just now
  Change change;
  change.put.push_back(there->second);
  uint8_t* const into = change.put.back().value.data();
  OC_CHECK(runs.there + runs.span_bytes() <= change.put.back().value.size());
  arrays::for_each_run(runs, [&](uint64_t there_at, uint64_t here) {
    std::memcpy(into + there_at, from + here, runs.run_bytes);
    return false;
  });
  return catalog->append(change, false);
}

Status Arrays::Impl::write_box(const std::string& attempted, const Entry& entry, const void* data,
                               const Dims& offsets, const Dims& dims) {
  if (Status s = arrays::check_box(attempted, entry.dims, offsets, dims); !s) return s;
  const auto count = arrays::count_of(dims, entry.type.size_bytes);
  if (!count) return count.status();
  if (count.value() == 0) return {};
  if (entry.session == 0 && !entry.compress.empty())
    return Error{ENOTSUP, attempted +
                              ": it is compressed and finished: store it as a whole, or keep "
                              "arrays that change without compression"};
  if (entry.session == 0)
    if (Status s = change_in_place(entry.id); !s) return s;
  const auto* const from = static_cast<const std::byte*>(data);
  const Dims shape = arrays::in_rows(entry, entry.dims), at = arrays::in_rows(entry, offsets),
             box = arrays::in_rows(entry, dims), zero(dims.size(), 0);
  const auto write = [&] {
    if (!entry.tiles.empty() && !entry.is_inline()) return write_tiles(entry, from, at, box);
    const Runs runs = arrays::runs_of(entry.type.size_bytes, shape, at, box, zero, box);
    return entry.is_inline() ? write_value(attempted, entry, from, runs)
                             : storage->write_runs(entry.offset, runs, from);
  };
  const Status s = entry.block_bytes == 0 ? write() : write_and_sum(entry, from, at, box, write);
  if (s.ok()) return {};
  if (s.code() != ENOENT) has_failed = true;
  return Error{s.code(), attempted + ": " + s.message()};
}

Status Arrays::Impl::read_box(const Entry& entry, void* data, const Dims& offsets,
                              const Dims& dims) const {
  auto* const into = static_cast<std::byte*>(data);
  OC_ASSERT(dims.size() == entry.dims.size() && offsets.size() == entry.dims.size());
  const Dims shape = arrays::in_rows(entry, entry.dims), at = arrays::in_rows(entry, offsets),
             box = arrays::in_rows(entry, dims), zero(dims.size(), 0);
  if (entry.is_inline()) {
    const Runs runs = arrays::runs_of(entry.type.size_bytes, shape, at, box, zero, box);
    OC_CHECK(runs.there + runs.span_bytes() <= entry.value.size());
    arrays::for_each_run(runs, [&](uint64_t there, uint64_t here) {
      std::memcpy(into + here, entry.value.data() + there, runs.run_bytes);
      return false;
    });
    return {};
  }
  if (entry.tiles.empty())
    return storage->read_runs(
        entry.offset, arrays::runs_of(entry.type.size_bytes, shape, at, box, zero, box), into);
  return read_tiles(entry, into, at, box);
}

Result<Arrays> Arrays::open(const std::string& uri, ArraysMode mode, const Communicator& together,
                            const ArraysOptions& options) {
  const os::CancelBlock uncancelled;
  if (together.size == 0 || together.rank >= together.size)
    return Error{EINVAL, "open " + uri + ": rank " + std::to_string(together.rank) + " of " +
                             std::to_string(together.size) + " processes: ranks begin at 0"};
  auto impl = std::make_unique<Impl>();
  impl->mode = mode;
  impl->together = together;
  impl->runtime = options.runtime;
  impl->has_checksums = options.has_checksums;
  arrays::StorageOptions of_storage;
  of_storage.uri = uri;
  of_storage.is_writable = mode != ArraysMode::kRead;
  of_storage.may_create = mode != ArraysMode::kRead;
  of_storage.writers = together.size;
  of_storage.runtime = std::make_shared<arrays::LentRuntime>(options.runtime);
  auto storage = arrays::open_storage(of_storage);
  Status s = storage.status();
  if (s.ok()) {
    impl->storage = std::move(storage).value();
    impl->catalog = std::make_unique<Catalog>(*impl->storage);
    s = impl->begin();
  }
  // A process that has failed has to say so, too: the others wait here.
  if (together.any && together.any(!s.ok()) && s.ok())
    s = Error{EIO, "open " + uri + ": another process could not open it"};
  if (!s.ok()) return s.error();
  return Arrays(std::move(impl));
}

Arrays::Arrays(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Arrays::Arrays(Arrays&&) noexcept = default;

Arrays& Arrays::operator=(Arrays&& other) noexcept {
  if (this != &other) {
    Arrays old(std::move(*this));
    impl_ = std::move(other.impl_);
  }
  return *this;
}

Arrays::~Arrays() {
  const os::CancelBlock uncancelled;
  if (impl_ == nullptr) return;
  if (std::uncaught_exceptions() > impl_->exceptions)
    impl_->abort();
  else if (Status s = impl_->close(); !s)
    std::fprintf(stderr, "outcore: %s\n", s.message().c_str());
  impl_.reset();  // this closes files
}

Status Arrays::flush() {
  const os::CancelBlock uncancelled;
  if (impl_->session == 0 || !impl_->is_open) return {};
  if (Status s = impl_->check_open("flush " + uri()); !s) return s;
  if (impl_->together.size > 1) return impl_->storage->sync();
  const std::unique_lock<std::shared_mutex> alone(impl_->traffic);
  const Impl::CatalogLock lock(*impl_);
  if (!lock.status().ok()) return lock.status();
  if (impl_->has_failed)
    return Error{EIO, "flush " + uri() + ": something was not stored, as was said"};
  return impl_->finish({});
}

Status Arrays::close() {
  const os::CancelBlock uncancelled;
  return impl_->close();
}
void Arrays::abort() {
  const os::CancelBlock uncancelled;
  impl_->abort();
}
std::string Arrays::uri() const { return impl_->storage->uri(); }
std::string Arrays::describe() const { return impl_->storage->describe(); }

}  // namespace outcore
