// See array_pieces.h.
#include "arrays/commands/array_pieces.h"

#include <algorithm>
#include <numeric>

#include "arrays/commands/array_box.h"
#include "cli/assert.h"

namespace outcore::cli {

ArrayPieces::ArrayPieces(const ArrayInfo& info, uint64_t bytes_max)
    : shape_(info.dims), is_column_(info.order == Order::kColumn) {
  const size_t rank = shape_.size();
  piece_ = info.tiles.size() == rank ? info.tiles : Dims(rank, 1);
  if (is_column_) {
    shape_ = reversed(shape_);
    piece_ = reversed(piece_);
  }
  at_.assign(rank, 0);
  CLI_CHECK(piece_.size() == rank);
  is_over_ = std::count(shape_.begin(), shape_.end(), uint64_t{0}) != 0;
  if (is_over_) return;
  const uint64_t most = std::max<uint64_t>(bytes_max / std::max(info.type.size_bytes, 1U), 1);
  uint64_t count = 1;
  for (size_t d = 0; d < rank; ++d) {
    piece_[d] = std::clamp<uint64_t>(piece_[d], 1, shape_[d]);
    // Tiles that do not fit are divided along their first dimensions, which keeps runs long.
    count *= piece_[d];
  }
  for (size_t d = 0; d < rank && count > most; ++d) {
    const uint64_t others = count / piece_[d];
    piece_[d] = std::max<uint64_t>(most / others, 1);
    count = others * piece_[d];
  }
  for (size_t d = rank; d-- > 0;) {
    const uint64_t others = count / piece_[d];
    const uint64_t times = std::max<uint64_t>(most / others / piece_[d], 1);
    piece_[d] =
        times >= shape_[d] / piece_[d] + 1 ? shape_[d] : std::min(piece_[d] * times, shape_[d]);
    count = others * piece_[d];
    if (piece_[d] < shape_[d]) break;
  }
  for (size_t d = 0; d < rank; ++d) CLI_CHECK(piece_[d] != 0 && piece_[d] <= shape_[d]);
}

bool ArrayPieces::next(Dims* offsets, Dims* dims) {
  if (is_over_) return false;
  CLI_CHECK(at_.size() == shape_.size());
  *offsets = at_;
  dims->resize(at_.size());
  for (size_t d = 0; d < at_.size(); ++d) (*dims)[d] = std::min(piece_[d], shape_[d] - at_[d]);
  if (is_column_) {
    *offsets = reversed(*offsets);
    *dims = reversed(*dims);
  }
  is_over_ = true;
  for (size_t d = at_.size(); d-- > 0;) {
    at_[d] += piece_[d];
    if (at_[d] < shape_[d]) {
      is_over_ = false;
      break;
    }
    at_[d] = 0;
  }
  return true;
}

bool ArrayPieces::is_run() const {
  size_t d = 0;
  while (d < piece_.size() && piece_[d] == 1) ++d;
  for (++d; d < piece_.size(); ++d)
    if (piece_[d] != shape_[d]) return false;
  return true;
}

namespace {

// Pieces of whole tiles of both sides, if such a piece fits; else of whole tiles of the stored
// array. Either list may be empty: then that side has no tiles.
Dims common_tiles(const ArrayInfo& info, const Dims& stored, uint64_t bytes_max) {
  const size_t rank = info.dims.size();
  if (stored.size() != rank) return info.tiles;
  if (info.tiles.size() != rank) return stored;
  Dims both(rank);
  uint64_t bytes = info.type.size_bytes;
  for (size_t d = 0; d < rank; ++d) {
    const uint64_t a = std::max<uint64_t>(info.tiles[d], 1), b = std::max<uint64_t>(stored[d], 1);
    if (__builtin_mul_overflow(a / std::gcd(a, b), b, &both[d]) || both[d] > info.dims[d])
      both[d] = std::max<uint64_t>(info.dims[d], 1);
    if (__builtin_mul_overflow(bytes, both[d], &bytes) || bytes > bytes_max) return stored;
  }
  return both;
}

}  // namespace

ArrayPieces pieces_between(const FileArray& from, const ArrayInfo& made) {
  uint64_t bytes_max = kPieceBytes;
  if (!made.compress.empty())
    bytes_max = std::max(bytes_max, count_of(made.tiles) * made.type.size_bytes);
  ArrayInfo info = from.info;
  info.tiles = common_tiles(from.info, made.tiles, bytes_max);
  const ArrayPieces by_tiles(info, bytes_max);
  if (!from.is_read_forward || by_tiles.is_run()) return by_tiles;
  info.tiles.clear();
  return ArrayPieces(info);
}

Status for_each_run(const Dims& shape, Order order, const Dims& offsets, const Dims& dims,
                    const std::function<Status(uint64_t at, uint64_t count)>& see) {
  const auto in_order = [order](Dims d) { return order == Order::kColumn ? reversed(d) : d; };
  const Dims all = in_order(shape), first = in_order(offsets), box = in_order(dims);
  CLI_CHECK(first.size() == all.size() && box.size() == all.size());
  for (size_t d = 0; d < all.size(); ++d)
    CLI_CHECK(first[d] <= all[d] && box[d] <= all[d] - first[d]);
  if (count_of(box) == 0) return {};
  size_t outer = box.size();  // the dimensions before the run
  uint64_t run = 1;
  while (outer > 0) {
    run *= box[--outer];
    if (box[outer] != all[outer]) break;
  }
  Dims at(outer, 0);
  for (;;) {
    uint64_t element = 0;
    for (size_t d = 0; d < box.size(); ++d)
      element = element * all[d] + first[d] + (d < outer ? at[d] : 0);
    if (Status s = see(element, run); !s) return s;
    size_t d = outer;
    while (d-- > 0) {
      if (++at[d] < box[d]) break;
      at[d] = 0;
    }
    if (d >= outer) return {};
  }
}

}  // namespace outcore::cli
