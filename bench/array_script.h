// ArrayScript: what programs that are to be killed do with a container of arrays. A seed tells all
// of it, and so what must be there after any of the steps that are durable when they return.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "outcore/arrays.h"

namespace outcore::bench {

// An array and, by `tag`, each of its elements.
struct Kept {
  ArrayType type;
  Dims dims;
  ArrayOptions options;
  uint64_t tag = 0;
};
using Contents = std::map<std::string, Kept>;

// A box of it, or all of it, as memory has it.
std::vector<std::byte> box_of(const Kept& kept, const Dims& at, const Dims& dims);
std::vector<std::byte> whole_of(const Kept& kept);

// One session of one or several processes. In this order: it is opened; the first process makes the
// moves, one by one; then each stores its boxes, and its wholes; it is closed.
struct ArrayScript {
  struct Move {
    std::string from, to;  // to nowhere: it is removed
  };
  struct Boxed {
    std::string name;
    Kept kept;
    size_t axis = 0;  // along which the processes share it
  };
  struct Whole {
    unsigned rank = 0;
    std::string name;
    std::string renamed;  // after it was stored, if not empty
    Kept kept;
    bool is_flushed = false;  // of one process alone: and with it all before
  };

  ArraysMode mode = ArraysMode::kUpdate;
  std::vector<Move> moves;
  std::vector<Boxed> boxes;
  std::vector<Whole> wholes;
  // Before; after it was opened, after each move, after each flush; after it was closed.
  std::vector<Contents> contents;

  unsigned steps() const { return static_cast<unsigned>(contents.size()) - 2; }
};

struct ArrayScripts {
  uint64_t seed = 1;
  uint64_t bytes_max = 1 << 20;  // of an array
  ArrayScript make(uint64_t number, unsigned processes, const Contents& before) const;
};

// Where the box of one of the processes begins, and its shape.
void share(const ArrayScript::Boxed& boxed, unsigned rank, unsigned processes, Dims* at,
           Dims* dims);

}  // namespace outcore::bench
