#include "arrays/container/shared_storage.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::arrays {
namespace {

constexpr size_t kPiecesMax = 512;  // in one batch
constexpr uint64_t kCallBytes = 4 << 20, kBatchBytes = 8 << 20;
// Short runs are read together with the gaps between them, if the gaps are not larger than the
// runs.
constexpr uint64_t kShortBytes = 8 << 10;

// A run, or a part of a long run.
struct Piece {
  uint64_t there = 0, here = 0, size_bytes = 0;
};

template <typename Visit>
void for_each_piece(const Runs& runs, const Visit& visit) {
  for_each_run(runs, [&](uint64_t there, uint64_t here) {
    for (uint64_t at = 0; at < runs.run_bytes; at += kCallBytes)
      if (visit(Piece{there + at, here + at, std::min(kCallBytes, runs.run_bytes - at)}))
        return true;
    return false;
  });
}

// The bytes of one batch, in a buffer of our own: the program's memory may be a region, whose pages
// the kernel cannot fill when a socket reads them.
class Carrier {
 public:
  explicit Carrier(const Runs& runs)
      : room_bytes_(std::min(kBatchBytes, 2 * runs.bytes())), bytes_(new std::byte[room_bytes_]) {}

  bool has_room(const Piece& piece) const {
    if (pieces.empty()) return true;
    return pieces.size() < kPiecesMax && piece.there > pieces.back().there &&
           sum_bytes_ + piece.size_bytes <= room_bytes_;
  }
  void push(const Piece& piece) {
    OC_ASSERT(piece.size_bytes != 0 && has_room(piece));
    pieces.push_back(piece);
    sum_bytes_ += piece.size_bytes;
  }
  uint64_t span_bytes() const {
    OC_CHECK(!pieces.empty());
    return pieces.back().there + pieces.back().size_bytes - pieces.front().there;
  }
  // Then all pieces have the same size.
  bool is_dense() const {
    return pieces.size() > 1 && pieces.front().size_bytes <= kShortBytes &&
           span_bytes() <= std::min(2 * sum_bytes_, room_bytes_);
  }
  // Returns where the bytes of the piece are, or will be.
  std::byte* add(uint64_t offset, uint64_t size_bytes, bool is_write) {
    std::byte* const at = bytes_.get() + used_bytes_;
    used_bytes_ += size_bytes;
    OC_ASSERT(used_bytes_ <= room_bytes_);
    requests.push_back({offset, at, size_bytes, is_write, 0});
    return at;
  }
  void clear() {
    pieces.clear();
    requests.clear();
    used_bytes_ = sum_bytes_ = 0;
  }
  // Adds all pieces of the runs. `carry_out` is called for each full batch, and empties it.
  template <typename CarryOut>
  Status carry(const Runs& runs, const CarryOut& carry_out) {
    Status s;
    for_each_piece(runs, [&](const Piece& piece) {
      if (!has_room(piece)) s = carry_out();
      push(piece);
      return !s.ok();
    });
    return s.ok() ? carry_out() : s;
  }

  std::vector<Piece> pieces;
  std::vector<StoreRequest> requests;

 private:
  const uint64_t room_bytes_;
  uint64_t used_bytes_ = 0, sum_bytes_ = 0;  // of requests, and of pieces
  const std::unique_ptr<std::byte[]> bytes_;
};

std::string range_of(uint64_t offset) { return "bytes at " + std::to_string(offset); }

}  // namespace

Result<std::shared_ptr<ContainerStorage>> SharedStorage::open(const StorageOptions& options) {
  OC_ASSERT(options.is_writable);
  OpenOptions how;
  how.is_writable = true;
  how.may_create = options.may_create;
  how.size_bytes = options.may_create ? kNewContainerBytes : 0;
  auto writers = outcore::open_shared_store(options.uri, how);
  if (!writers) return writers.error();
  auto storage = std::make_shared<SharedStorage>();
  storage->uri_ = writers.value()->store().uri();
  storage->identity_ = writers.value()->store().identity();
  storage->writers_ = std::move(writers).value();
  return std::shared_ptr<ContainerStorage>(std::move(storage));
}

uint64_t SharedStorage::size_bytes() const { return writers_->store().size_bytes(); }

Status SharedStorage::check(int result, const char* verb, uint64_t offset, uint64_t size_bytes) {
  if (result == 0) return {};
  return writers_->explain(result, std::string(verb) + " " + base::format_bytes(size_bytes) +
                                       " at " + std::to_string(offset) + " of " + uri_);
}

Status SharedStorage::clear() { return release(0, size_bytes()); }

// REQUIRES: Lease::kCatalog, so that the size is up to date.
Status SharedStorage::grow(uint64_t size_bytes) {
  const uint64_t now = this->size_bytes();
  if (size_bytes <= now) return {};
  const uint64_t wanted = base::round_up(size_bytes, base::kSystemPage);
  return check(writers_->store().resize(wanted), "make room for", now, wanted - now);
}

Status SharedStorage::provide(uint64_t offset, uint64_t size_bytes) {
  const uint64_t old_end = this->size_bytes();
  if (offset < old_end)
    if (Status s = release(offset, std::min(size_bytes, old_end - offset)); !s) return s;
  return grow(offset + size_bytes);
}

Status SharedStorage::provide_sparse(uint64_t offset, uint64_t size_bytes) {
  return provide(offset, size_bytes);  // this allocates nothing either
}

Status SharedStorage::release(uint64_t offset, uint64_t size_bytes) {
  if (size_bytes == 0) return {};
  return check(writers_->store().discard(offset, size_bytes), "give back", offset, size_bytes);
}

Status SharedStorage::transfer(std::span<StoreRequest> batch) {
  if (batch.empty()) return {};
  writers_->store().transfer(batch);
  for (const StoreRequest& r : batch)
    if (r.result != 0)
      return check(r.result, r.is_write ? "write" : "read", r.offset, r.size_bytes);
  return {};
}

Status SharedStorage::read(uint64_t offset, std::span<std::byte> into) {
  return into.empty() ? Status() : read_runs(offset, {0, 0, into.size(), {}}, into.data());
}

Status SharedStorage::write(uint64_t offset, std::span<const std::byte> from) {
  return from.empty() ? Status() : write_runs(offset, {0, 0, from.size(), {}}, from.data());
}

Status SharedStorage::write_runs(uint64_t first, const Runs& runs, const std::byte* from) {
  Carrier carrier(runs);
  const auto send = [&]() -> Status {
    for (const Piece& piece : carrier.pieces)
      std::memcpy(carrier.add(first + piece.there, piece.size_bytes, true), from + piece.here,
                  piece.size_bytes);
    const Status s = transfer(carrier.requests);
    carrier.clear();
    return s;
  };
  return carrier.carry(runs, send);
}

Status SharedStorage::read_runs(uint64_t first, const Runs& runs, std::byte* into) {
  Carrier carrier(runs);
  const auto fetch = [&]() -> Status {
    const bool is_dense = carrier.is_dense();
    if (is_dense) carrier.add(first + carrier.pieces.front().there, carrier.span_bytes(), false);
    for (const Piece& piece : carrier.pieces)
      if (!is_dense) carrier.add(first + piece.there, piece.size_bytes, false);
    const Status s = transfer(carrier.requests);
    for (size_t i = 0; s.ok() && i < carrier.pieces.size(); ++i) {
      OC_ASSERT(is_dense ? carrier.requests.size() == 1 : i < carrier.requests.size());
      const Piece& piece = carrier.pieces[i];
      const std::byte* const here =
          is_dense ? carrier.requests[0].bytes + (piece.there - carrier.pieces[0].there)
                   : carrier.requests[i].bytes;
      std::memcpy(into + piece.here, here, piece.size_bytes);
    }
    carrier.clear();
    return s;
  };
  return carrier.carry(runs, fetch);
}

Status SharedStorage::sync() { return check(writers_->store().sync(), "sync", 0, size_bytes()); }

Status SharedStorage::forget(uint64_t, uint64_t) { return sync(); }

Result<std::shared_ptr<Mapping>> SharedStorage::map(const std::shared_ptr<ContainerStorage>&,
                                                    uint64_t, uint64_t) {
  return Error{ENOTSUP, uri_ +
                            " is written by several processes, whose bytes a view would not see: "
                            "load it, or view it when they have closed it"};
}

Status SharedStorage::lock(Lease lease, bool, bool may_wait) {
  if (lease == Lease::kCatalog) return writers_->lock(SharedWriters::kCatalogLock, may_wait);
  return lease == Lease::kWriter ? writers_->be_writer(true) : Status();
}

void SharedStorage::unlock(Lease lease) {
  if (lease == Lease::kCatalog) writers_->unlock(SharedWriters::kCatalogLock);
  if (lease == Lease::kWriter) static_cast<void>(writers_->be_writer(false));
}

Status SharedStorage::lock_range(uint64_t offset) { return writers_->lock(range_of(offset), true); }

void SharedStorage::unlock_range(uint64_t offset) { writers_->unlock(range_of(offset)); }

Result<bool> SharedStorage::is_locked_by_others(Lease lease) {
  if (lease != Lease::kWriter) return false;
  return writers_->are_other_writers();
}

}  // namespace outcore::arrays
