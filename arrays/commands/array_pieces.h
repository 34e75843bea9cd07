// ArrayPieces: an array box by box, so that it need not fit into memory. Any thread.
#pragma once

#include <cstdint>
#include <functional>

#include "arrays/commands/array_file.h"
#include "outcore/arrays.h"

namespace outcore::cli {

inline constexpr uint64_t kPieceBytes = 64 << 20;

// Divides an array into pieces of at most bytes_max (or one element), in the order in which its
// elements lie. If it has tiles, and they fit, pieces are multiples of them. Without tiles each
// piece is one run of elements.
class ArrayPieces {
 public:
  explicit ArrayPieces(const ArrayInfo& info, uint64_t bytes_max = kPieceBytes);
  bool next(Dims* offsets, Dims* dims);  // false: there are no more
  bool is_run() const;                   // each is one run of elements

 private:
  Dims shape_, piece_, at_;  // in row order
  bool is_column_, is_over_;
};

// The pieces by which an array of a file is copied to a container, where it is `made`. They consist
// of whole tiles, because a compressed tile is packed anew whenever a part of it is stored (then a
// piece may be one tile of more than kPieceBytes); and of whole chunks of the file, if those of
// both fit. If the file is read forward, they are runs, whatever the tiles are.
ArrayPieces pieces_between(const FileArray& from, const ArrayInfo& made);

// Calls visit(number of the first element, count) for the runs of a box in a file that contains all
// elements of the shape one after the other. The box is dense and in the same order, so it is
// filled from its beginning. Ends at the first error. REQUIRES: the box is inside of the shape.
Status for_each_run(const Dims& shape, Order order, const Dims& offsets, const Dims& dims,
                    const std::function<Status(uint64_t at, uint64_t count)>& see);

}  // namespace outcore::cli
