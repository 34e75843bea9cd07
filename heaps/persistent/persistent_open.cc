// Opens a persistent heap: its store and lock, its headers and metadata, its mapping.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/store/registry.h"
#include "heaps/persistent/persistent_core_impl.h"
#include "heaps/persistent/persistent_kernel_mapping.h"
#include "heaps/persistent/persistent_region_mapping.h"
#include "heaps/persistent/persistent_sizes.h"
#include "outcore/store_catalog.h"

namespace outcore {

using base::round_up;
using base::system_error;
using heap::persistent::FileLock;
using heap::persistent::Findings;
using heap::persistent::Header;
using heap::persistent::Headers;
using heap::persistent::Image;
using heap::persistent::KernelMapping;
using heap::persistent::kFormat;
using heap::persistent::kHeadersBytes;
using heap::persistent::kTileBytes;
using heap::persistent::Name;
using heap::persistent::Place;
using heap::persistent::RegionMapping;
using heap::persistent::State;

namespace heap::persistent {

Result<std::string> lock_path(const std::string& uri) {
  Result<store::Uri> parsed = store::parse_uri(uri);
  if (!parsed) return parsed.error();
  // A URI that cannot be is told before a path that is not there.
  if (const auto kind = find_store_kind(parsed.value()); !kind) return kind.error();
  return store::lockable_path(parsed.value());
}

namespace {

bool is_there(const std::string& path) {
  struct stat about;
  return ::stat(path.c_str(), &about) == 0;
}

Status check_same(const Place& place) {
  const std::string known = place.lock.identity(), opened = place.store->identity();
  struct stat about;
  const bool is_file =
      place.lock.fd() >= 0 && ::fstat(place.lock.fd(), &about) == 0 && S_ISREG(about.st_mode);
  if (!is_file || opened.empty() || known == opened) return {};
  return Error{EBUSY, "open the heap " + place.uri + ": it was replaced meanwhile: try again"};
}

bool is_empty(const Place& place) {
  struct stat about;
  if (place.lock.fd() >= 0 && ::fstat(place.lock.fd(), &about) == 0 && S_ISREG(about.st_mode))
    return about.st_size == 0;  // another process may have made it since the store was opened
  return place.store->size_bytes() == 0;
}

Result<Place> create_place(const std::string& uri, const std::string& path) {
  const bool is_new = path.empty() || !is_there(path);
  Place place;
  place.uri = uri;
  Result<std::shared_ptr<Store>> opened =
      open_store(uri, {.is_writable = true, .may_create = true});
  if (!opened) return opened.error();
  place.store = std::move(opened).value();
  if (!path.empty()) {
    Result<FileLock> lock = FileLock::lock(path, true);
    if (!lock) return lock.error();
    place.lock = std::move(lock).value();
  }
  if (Status s = check_same(place); !s) return s.error();
  // Another process may have made it after we looked and before we locked.
  if (!path.empty() && !is_empty(place))
    return Error{EEXIST, "create the heap " + uri +
                             ": something is there already: open it, or remove it first"};
  if (is_new) place.made_path = path;
  return place;
}

}  // namespace

Result<Place> open_place(PersistentCore::Mode mode, const std::string& uri) {
  Result<std::string> path = lock_path(uri);
  if (!path) return path.error();
  if (mode == PersistentCore::Mode::kCreate) return create_place(uri, path.value());
  const bool is_writable = mode == PersistentCore::Mode::kOpen;
  Place place;
  place.uri = uri;
  if (!path.value().empty()) {
    Result<FileLock> lock = FileLock::lock(path.value(), is_writable);
    if (!lock) return lock.error();
    place.lock = std::move(lock).value();
  }
  Result<std::shared_ptr<Store>> opened = open_store(uri, {.is_writable = is_writable});
  if (!opened) return opened.error();
  place.store = std::move(opened).value();
  if (Status s = check_same(place); !s) return s.error();
  return place;
}

Status check_for_kernel(const std::string& uri, const Runtime* runtime,
                        const PersistentHeapOptions& options) {
  const auto refuse = [&uri](int code, const std::string& why) {
    return Error{code, "open the heap " + without_password(uri) + " with paging = kKernel: " + why};
  };
  if (runtime != nullptr)
    return refuse(EINVAL, "a runtime does not page it: leave the runtime out, or the paging");
  if (options.runtime.budget_bytes || options.runtime.adapts_budget)
    return refuse(EINVAL, "the kernel knows no budget: leave the budget out, or the paging");
  if (options.page_bytes != 0 && options.page_bytes != base::kSystemPage)
    return refuse(EINVAL, "the kernel's pages have 4 KiB: leave page_bytes out, or the paging");
  Result<store::Uri> parsed = store::parse_uri(uri);
  if (!parsed) return parsed.status();
  Result<const StoreKind*> kind = find_store_kind(parsed.value());
  if (!kind) return kind.status();
  if (kind.value()->place != StoreKind::Place::kFile)
    return refuse(ENOTSUP, "the kernel maps files only: name a file, or leave the paging out");
  return {};
}

Result<Headers> read_headers(Store& store, const std::string& what) {
  std::vector<std::byte> bytes(std::min(store.size_bytes(), kHeadersBytes));
  if (!bytes.empty())
    if (const int error = store.read(0, bytes); error != 0)
      return system_error(error, what + ": read its header");
  return decode_headers(bytes, what);
}

int write_header(Store& store, const Header& header) { return store.write(0, encode(header)); }

}  // namespace heap::persistent

Status PersistentCore::Impl::create(const PersistentHeapOptions& options) {
  const std::string what = "create the heap " + place.uri;
  Store& store = *place.store;
  if (store.size_bytes() != 0)
    return Error{EEXIST, what + ": its store is not empty: open it, or name another"};
  std::memcpy(header.magic, heap::persistent::kHeaderMagic, sizeof header.magic);
  header.format = kFormat;
  header.state = static_cast<uint32_t>(State::kOpen);
  header.sequence = 1;
  header.tile_bytes = header.size_bytes = kTileBytes;
  header.version = options.version;
  int error = store.resize(kTileBytes);
  if (error == 0) error = write_header(store, header);
  if (error == 0) error = store.sync();
  if (error != 0) {
    static_cast<void>(store.resize(0));
    return system_error(error, what,
                        error == -ENOTSUP  ? "a heap needs a store that can change its size"
                        : error == -ENOSPC ? "free some space there, or name another place"
                                           : "");
  }
  Status s = map(options);
  if (s.ok()) {
    allocator = std::make_unique<heap::persistent::Allocator>();
    s = allocator->start(mapping.get(), place.store, reserve_bytes, spare_bytes);
  }
  if (!s.ok()) {  // the store is as empty as before
    allocator.reset();
    if (mapping != nullptr) static_cast<void>(mapping->unmap(true));
    static_cast<void>(store.resize(0));
    return s;
  }
  allocator->announce();
  is_ready = true;
  return {};
}

// The image of the newest header whose metadata is sound.
static Result<std::pair<Header, Image>> sound_image(Store& store, const Headers& headers,
                                                    const std::string& what) {
  std::string why;
  for (const Header& h : headers.intact) {
    Findings findings;
    Result<Image> image = read_image(store, h, &findings);
    if (!image) return image.error();
    if (findings.is_empty()) return std::pair(h, std::move(image).value());
    if (why.empty()) why = findings.lines().front();
  }
  return Error{EINVAL, what + ": " + why + ": restore it from a copy"};
}

Status PersistentCore::Impl::open(const PersistentHeapOptions& options) {
  const std::string what = "open the heap " + place.uri;
  Result<Headers> headers = heap::persistent::read_headers(*place.store, what);
  if (!headers) return headers.status();
  is_consistent = headers->is_consistent;
  if (!is_consistent && !options.even_if_inconsistent)
    return Error{EUCLEAN, what +
                              ": it was not closed, and may hold anything: restore a copy; or look "
                              "at it with `outcore heap check`, and open it even_if_inconsistent"};
  auto found = sound_image(*place.store, headers.value(), what);
  if (!found) return found.status();
  header = found->first;
  Image& image = found->second;
  if (options.version != 0 && header.version != options.version)
    return Error{EINVAL, what + ": it holds version " + std::to_string(header.version) +
                             " of the program's data, not " + std::to_string(options.version) +
                             ": use the program that made it"};
  for (Name& name : image.names) {
    std::string key = name.name;
    names.emplace(std::move(key), std::move(name));
  }
  bytes_in_use = describe(headers.value(), header, image).in_use_bytes;
  if (Status s = map(options); !s) return s;
  is_ready = !is_writable;
  if (is_ready) return {};
  allocator = std::make_unique<heap::persistent::Allocator>();
  if (Status s = allocator->start(mapping.get(), place.store, reserve_bytes, spare_bytes); !s)
    return s;
  if (Status s = allocator->restore(image, header.metadata_offset, !is_consistent); !s) return s;
  // The last step: if an earlier one fails, nothing has changed.
  Header opened = header;
  opened.state = static_cast<uint32_t>(State::kOpen);
  ++opened.sequence;
  int error = write_header(*place.store, opened);
  if (error == 0) error = place.store->sync();
  if (error != 0) {
    if (is_consistent) static_cast<void>(write_header(*place.store, header));
    return system_error(error, what + ": mark it as open");
  }
  header = opened;
  allocator->announce();
  is_ready = true;
  return {};
}

Status PersistentCore::Impl::map(const PersistentHeapOptions& options) {
  constexpr uint64_t kReserveMin = uint64_t{1} << 30, kReserve = uint64_t{4} << 40,
                     kReserveMax = uint64_t{64} << 40;
  if (options.reserve_bytes > kReserveMax)
    return Error{EINVAL, "map the heap " + place.uri + ": reserve_bytes are more than " +
                             base::format_bytes(kReserveMax) + ": ask for less"};
  if (is_writable) {
    const uint64_t least = std::max(header.size_bytes, kTileBytes);
    uint64_t wanted = options.reserve_bytes != 0
                          ? round_up(std::max(options.reserve_bytes, least), kTileBytes)
                          : std::min(std::max(kReserve, 4 * least), kReserveMax);
    while (true) {
      // The metadata of small objects is up to a hundredth of their size, and flush() writes the
      // new metadata beside the old.
      spare_bytes = round_up(wanted / 32, kTileBytes) + (uint64_t{1} << 20);
      reserve_bytes = wanted + spare_bytes;
      const Status s = map_once(options, reserve_bytes);
      if (s.ok()) return s;
      const uint64_t half = round_up(wanted / 2, kTileBytes);
      if (s.code() != ENOMEM || options.reserve_bytes != 0 ||
          half < std::max(kReserveMin, 2 * least))
        return s;
      wanted = half;  // there are few addresses (ulimit -v)
    }
  }
  return map_once(options, 0);
}

// `reserve`: addresses; 0: as many as the heap has bytes.
Status PersistentCore::Impl::map_once(const PersistentHeapOptions& options, uint64_t reserve) {
  MapOptions o;
  o.access = is_writable ? Access::kReadWrite : Access::kReadOnly;
  o.size_bytes = header.size_bytes;
  o.page_bytes = options.page_bytes;
  o.advice = options.advice;
  o.reserve_bytes = reserve;
  auto mapped = runtime != nullptr ? RegionMapping::map(*runtime, place.store, o)
                                   : KernelMapping::map(place.store, o);
  if (!mapped) return mapped.status();
  mapping = std::move(mapped).value();
  return {};
}

}  // namespace outcore
