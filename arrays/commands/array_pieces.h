// ArrayPieces: an array box by box, so that none has to fit into memory. Any thread.
#pragma once

#include <cstdint>
#include <functional>

#include "arrays/commands/array_file.h"
#include "outcore/arrays.h"

namespace outcore::cli {

inline constexpr uint64_t kPieceBytes = 64 << 20;

// The pieces of an array of at most bytes_max (or one element) in the order in which its elements
// lie; multiples of its tiles, where it has some and they fit. Without tiles each is one run of
// elements.
class ArrayPieces {
 public:
  explicit ArrayPieces(const ArrayInfo& info, uint64_t bytes_max = kPieceBytes);
  bool next(Dims* offsets, Dims* dims);  // false: there are no more
  bool is_run() const;                   // each is one run of elements

 private:
  Dims shape_, piece_, at_;  // in row order
  bool is_column_, is_over_;
};

// Those by which an array of a file is stored in a container, where it is `made`. Whole tiles, for
// one that is compressed is packed anew whenever a part of it is stored (then a piece may be one
// such tile of more than kPieceBytes); and whole chunks of the file, if those of both fit. Of a
// file that is read forward they are runs, whatever the tiles are.
ArrayPieces pieces_between(const FileArray& from, const ArrayInfo& made);

// The runs of a box in a file that has all elements of the shape, one after the other, as they lie
// there: the number of the first element, and how many. The box is dense and in the same order, so
// it is filled from its beginning on. Ends at the first error. REQUIRES: the box is within.
Status for_each_run(const Dims& shape, Order order, const Dims& offsets, const Dims& dims,
                    const std::function<Status(uint64_t at, uint64_t count)>& see);

}  // namespace outcore::cli
