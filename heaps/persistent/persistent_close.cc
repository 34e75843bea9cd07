// Stores a persistent heap: flush and close. The order makes the mark "consistent" true: everything
// is durable before the header refers to it.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "heaps/persistent/persistent_core_impl.h"
#include "heaps/persistent/persistent_sizes.h"

namespace outcore {

using base::system_error;
using heap::persistent::Header;
using heap::persistent::Image;
using heap::persistent::kTileBytes;
using heap::persistent::Owner;
using heap::persistent::Run;
using heap::persistent::RunKind;
using heap::persistent::State;

// Makes the metadata as it is now, and allocates tiles for it. The tiles of the old metadata count
// as free in it, but nobody gets them before settle(). REQUIRES: nobody allocates meanwhile.
Result<PersistentCore::Impl::Draft> PersistentCore::Impl::draft() {
  Draft d;
  heap::persistent::Tiles& tiles = allocator->tiles();
  if (header.metadata_bytes != 0) {
    d.old_tile = header.metadata_offset / kTileBytes;
    d.old_bytes = header.metadata_bytes;
    d.old_count = (d.old_bytes + kTileBytes - 1) / kTileBytes;
    tiles.set_owner(d.old_tile, d.old_count, Owner());
  }
  Image image;
  allocator->slabs().describe(&image);
  for (const auto& [text, name] : names) image.names.push_back(name);
  const uint64_t bytes = image.encoded_bytes() + sizeof(Run);
  d.tile_count = (bytes + kTileBytes - 1) / kTileBytes;
  Result<uint64_t> first = tiles.allocate(d.tile_count, true);
  if (!first) {
    if (d.old_count != 0)
      tiles.set_owner(d.old_tile, d.old_count, Owner(Owner::Kind::kMetadata, d.old_bytes));
    return Error{first.code(), "store the metadata of " + place.uri + ": " + first.message()};
  }
  d.first_tile = first.value();
  tiles.set_owner(d.first_tile, d.tile_count, Owner(Owner::Kind::kMetadata, bytes));
  const Run own{d.first_tile, d.tile_count, static_cast<uint32_t>(RunKind::kMetadata), 0, bytes};
  image.runs.insert(
      std::upper_bound(image.runs.begin(), image.runs.end(), own,
                       [](const Run& a, const Run& b) { return a.first_tile < b.first_tile; }),
      own);
  d.bytes = image.encode();
  OC_CHECK(d.bytes.size() == bytes);
  return d;
}

// The draft was not stored: frees its tiles.
void PersistentCore::Impl::free_draft(const Draft& d, bool may_be_named) {
  heap::persistent::Tiles& tiles = allocator->tiles();
  tiles.set_owner(d.first_tile, d.tile_count, Owner());
  if (may_be_named)
    tiles.lose(d.tile_count);
  else
    tiles.free(d.first_tile, d.tile_count);
  if (d.old_count != 0)
    tiles.set_owner(d.old_tile, d.old_count, Owner(Owner::Kind::kMetadata, d.old_bytes));
}

// The header names the draft now: frees the tiles of the old metadata.
void PersistentCore::Impl::settle(const Draft& d) {
  if (d.old_count != 0) allocator->tiles().free(d.old_tile, d.old_count);
}

// The header as it will be when the draft is stored.
PersistentCore::Impl::Header PersistentCore::Impl::header_with(const Draft& d) const {
  Header next = header;
  ++next.sequence;
  next.size_bytes = allocator->tiles().tile_count() * kTileBytes;
  next.metadata_offset = d.first_tile * kTileBytes;
  next.metadata_bytes = d.bytes.size();
  next.metadata_checksum = heap::persistent::checksum_of(d.bytes);
  return next;
}

Status PersistentCore::Impl::sync_store(const char* what) {
  if (!lost_sync.ok()) return lost_sync;
  const int error = place.store->sync();
  if (error == 0) return {};
  lost_sync =
      system_error(error, std::string(what) + " the heap " + place.uri,
                   "bytes may be lost, so it is not marked consistent: restore it from a copy");
  return lost_sync;
}

Status PersistentCore::Impl::check_open(const char* what) const {
  if (stage != Stage::kMapped)
    return Error{EBADF, std::string(what) + " the heap " + place.uri + ": it is closed"};
  if (process != ::getpid())
    return Error{EPERM, std::string(what) + " the heap " + place.uri +
                            ": it is the parent's: open it in the child"};
  return {};
}

Status PersistentCore::Impl::check_writable(const char* what) const {
  if (Status s = check_open(what); !s) return s;
  if (is_writable) return {};
  return Error{EACCES,
               std::string(what) + " the heap " + place.uri + ": it is open read-only: open() it"};
}

Status PersistentCore::Impl::flush() {
  if (Status s = check_writable("flush"); !s) return s;
  if (!lost_sync.ok()) return lost_sync;
  const std::lock_guard<std::recursive_mutex> guard(names_lock);
  if (Status s = check_no_cut("flush"); !s) return s;
  allocator->hand_back();
  Result<Draft> d = draft();
  if (!d) return d.status();
  const Header next = header_with(d.value());
  // Through the mapping, because its pages may show these bytes.
  Status s = mapping->write(next.metadata_offset, d->bytes);
  if (s.ok()) s = mapping->flush();
  if (s.ok()) s = sync_store("flush");
  if (!s.ok()) {
    free_draft(d.value());
    return s;
  }
  s = mapping->write(0, heap::persistent::encode(next));
  if (s.ok()) s = mapping->flush();
  if (!s.ok()) {  // one copy of the header may be the new one, and the other the old
    static_cast<void>(mapping->write(0, heap::persistent::encode(header)));
    free_draft(d.value(), true);
    return s;
  }
  header = next;
  settle(d.value());
  return sync_store("flush");
}

Status PersistentCore::Impl::close() {
  if (stage == Stage::kClosed) return {};
  if (process == ::getpid() && stage == Stage::kUnmapped) return finish_close();
  if (Status s = check_open("close"); !s) return s;
  if (!is_writable) {
    if (Status s = mapping->unmap(false); !s) return s;
    stage = Stage::kClosed;
    place = {place.uri, nullptr, {}, {}};
    return {};
  }
  const std::lock_guard<std::recursive_mutex> guard(names_lock);
  if (Status s = check_no_cut("close"); !s) return s;
  allocator->withdraw();
  allocator->hand_back();
  Result<Draft> d = draft();
  // Only now, because on a full disk the metadata may need the space that this frees.
  const Status trimmed = allocator->tiles().trim();
  Status s = d.status();
  if (s.ok()) s = mapping->flush();
  if (s.ok()) s = sync_store("close");  // while the objects can still be looked at
  if (s.ok()) s = mapping->unmap(false);
  if (!s.ok()) {  // the heap stays open, and the program may try again
    if (d) free_draft(d.value());
    allocator->announce();
    return s;
  }
  stage = Stage::kUnmapped;
  settle(d.value());
  old_metadata_offset = d->old_tile * kTileBytes;
  old_metadata_bytes = d->old_count * kTileBytes;
  last_metadata = std::move(d->bytes);
  header.size_bytes = allocator->tiles().end() * kTileBytes;
  header.metadata_offset = d->first_tile * kTileBytes;
  header.metadata_bytes = last_metadata.size();
  header.metadata_checksum = heap::persistent::checksum_of(last_metadata);
  allocator.reset();
  s = finish_close();
  return s.ok() ? trimmed : s;
}

// The objects are in the store. Stores the metadata, and then the mark. After a failure it may be
// called again.
Status PersistentCore::Impl::finish_close() {
  if (!lost_sync.ok()) return lost_sync;
  Store& store = *place.store;
  const auto failed = [this](int error, const char* what) {
    return system_error(error, "close the heap " + place.uri + ": " + what,
                        "it is not marked consistent: close() it again");
  };
  if (const int error = store.write(header.metadata_offset, last_metadata); error != 0)
    return failed(error, "write its metadata");
  if (Status s = sync_store("close"); !s) return s;
  Header last = header;
  last.state = static_cast<uint32_t>(State::kConsistent);
  ++last.sequence;
  if (const int error = heap::persistent::write_header(store, last); error != 0) {
    static_cast<void>(heap::persistent::write_header(store, header));
    return failed(error, "write its header");
  }
  if (Status s = sync_store("close"); !s) {
    static_cast<void>(heap::persistent::write_header(store, header));
    return s;
  }
  stage = Stage::kClosed;
  last_metadata = {};
  const Status s = give_back_space(store);
  place = {place.uri, nullptr, {}, {}};
  return s;
}

// Frees what a closed heap does not need. An error does no harm to the heap.
Status PersistentCore::Impl::give_back_space(Store& store) const {
  int error = 0;
  if (old_metadata_offset < header.size_bytes && old_metadata_bytes != 0)
    error = store.discard(old_metadata_offset,
                          std::min(old_metadata_bytes, header.size_bytes - old_metadata_offset));
  if (store.size_bytes() > header.size_bytes)
    if (const int why = store.resize(header.size_bytes); why != 0 && why != -ENOTSUP) error = why;
  if (error == 0) return {};
  return system_error(error, "close the heap " + place.uri + ": give space back",
                      "it is closed, and consistent, but larger than need be");
}

PersistentCore::Impl::~Impl() {
  if (process != ::getpid()) {  // in a forked child, the heap is its parent's
    if (allocator != nullptr) allocator->withdraw();
    return;
  }
  if (!is_ready || stage == Stage::kClosed) return;
  const Status s = close();
  if (!s.ok()) std::fprintf(stderr, "outcore: a heap was not closed: %s\n", s.message().c_str());
  if (stage == Stage::kMapped && allocator != nullptr) allocator->withdraw();
}

}  // namespace outcore
