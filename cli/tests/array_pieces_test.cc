// The pieces by which `outcore arrays` copies: every element once, every tile in one of them.
#include "arrays/commands/array_pieces.h"

#include <map>

#include "arrays/commands/array_box.h"
#include "gtest/gtest.h"

namespace outcore::cli {
namespace {

struct Box {
  Dims offsets, dims;
};

FileArray of_file(const Dims& dims, const Dims& chunks, Order order = Order::kRow) {
  FileArray array;
  array.info.type = {"<f8", 8};
  array.info.dims = dims;
  array.info.tiles = chunks;
  array.info.order = order;
  array.info.size_bytes = count_of(dims) * 8;
  return array;
}

ArrayInfo made_of(const FileArray& array, const Dims& tiles, const std::string& compress) {
  ArrayInfo made = array.info;
  made.tiles = tiles;
  made.compress = compress;
  return made;
}

std::vector<Box> boxes_of(ArrayPieces pieces) {
  std::vector<Box> all;
  for (Box box; pieces.next(&box.offsets, &box.dims);) all.push_back(box);
  return all;
}

uint64_t elements_of(const std::vector<Box>& boxes) {
  uint64_t count = 0;
  for (const Box& box : boxes) count += count_of(box.dims);
  return count;
}

// How many boxes touch the tile that most of them touch.
int touches_max(const std::vector<Box>& boxes, const Dims& tiles) {
  std::map<Dims, int> touches;
  int most = 0;
  for (const Box& box : boxes) {
    Dims first(tiles.size()), last(tiles.size());
    for (size_t d = 0; d < tiles.size(); ++d) {
      first[d] = box.offsets[d] / tiles[d];
      last[d] = (box.offsets[d] + box.dims[d] - 1) / tiles[d];
    }
    for (Dims at = first;;) {
      most = std::max(most, ++touches[at]);
      size_t d = tiles.size();
      while (d-- > 0) {
        if (++at[d] <= last[d]) break;
        at[d] = first[d];
      }
      if (d >= tiles.size()) break;
    }
  }
  return most;
}

TEST(ArrayPieces, ATileIsStoredOnce) {
  const struct {
    Dims dims, chunks, tiles;
  } cases[] = {{{300, 35'000}, {}, {77, 4096}},
               {{300, 350'000}, {}, {300, 1000}},
               {{4000, 4000}, {1, 4000}, {512, 512}},
               {{4000, 4000}, {1000, 37}, {64, 4000}},
               {{200, 300, 400}, {7, 11, 13}, {64, 64, 64}},
               {{20'000'003}, {1000}, {131'072}},
               {{3'000, 8'000}, {3'000, 1}, {3'000, 4'000}}};  // a tile of 92 MiB
  for (const auto& one : cases)
    for (const Order order : {Order::kRow, Order::kColumn}) {
      const FileArray array = of_file(one.dims, one.chunks, order);
      const auto boxes = boxes_of(pieces_between(array, made_of(array, one.tiles, "lz4")));
      EXPECT_EQ(touches_max(boxes, one.tiles), 1) << text_of(one.dims);
      EXPECT_EQ(elements_of(boxes), count_of(one.dims)) << text_of(one.dims);
      for (const Box& box : boxes)
        EXPECT_LE(count_of(box.dims) * 8, std::max(kPieceBytes, count_of(one.tiles) * 8));
    }
}

TEST(ArrayPieces, AChunkIsReadOnceWhereBothFit) {
  const FileArray array = of_file({3000, 9000}, {30, 1000});
  const auto boxes = boxes_of(pieces_between(array, made_of(array, {45, 1500}, "zstd:3")));
  EXPECT_EQ(touches_max(boxes, {45, 1500}), 1);
  EXPECT_EQ(touches_max(boxes, {30, 1000}), 1);
  EXPECT_GT(boxes.size(), 1u);
  const auto in_one = boxes_of(pieces_between(array, made_of(array, {}, "")));
  EXPECT_EQ(touches_max(in_one, {30, 1000}), 1);
}

TEST(ArrayPieces, AFileThatIsReadForwardIsReadOnce) {
  for (const Order order : {Order::kRow, Order::kColumn}) {
    FileArray array = of_file({3000, 350'000}, {}, order);
    array.is_read_forward = true;
    for (const Dims& tiles : {Dims{3000, 1000}, Dims{10, 10'000}, Dims{10, 350'000}}) {
      ArrayPieces pieces = pieces_between(array, made_of(array, tiles, "lz4"));
      EXPECT_TRUE(pieces.is_run());
      uint64_t at = 0;
      for (Box box; pieces.next(&box.offsets, &box.dims);) {
        const auto see = [&](uint64_t first, uint64_t count) -> Status {
          EXPECT_EQ(first, at);
          at += count;
          return {};
        };
        ASSERT_TRUE(for_each_run(array.info.dims, order, box.offsets, box.dims, see).ok());
      }
      EXPECT_EQ(at, count_of(array.info.dims));
    }
    array.is_read_forward = false;
    const Dims tiles = order == Order::kRow ? Dims{3000, 1000} : Dims{10, 350'000};
    EXPECT_FALSE(pieces_between(array, made_of(array, tiles, "lz4")).is_run());
  }
}

TEST(ArrayPieces, RunsAreThoseOfTheBox) {
  const auto runs = [](const Dims& shape, Order order, const Box& box) {
    std::vector<std::pair<uint64_t, uint64_t>> all;
    const Status s =
        for_each_run(shape, order, box.offsets, box.dims, [&](uint64_t at, uint64_t count) {
          all.emplace_back(at, count);
          return Status();
        });
    EXPECT_TRUE(s.ok());
    return all;
  };
  using Runs = std::vector<std::pair<uint64_t, uint64_t>>;
  EXPECT_EQ(runs({4, 5, 6}, Order::kRow, {{1, 2, 3}, {2, 2, 3}}),
            (Runs{{45, 3}, {51, 3}, {75, 3}, {81, 3}}));
  EXPECT_EQ(runs({4, 5, 6}, Order::kRow, {{1, 2, 0}, {2, 2, 6}}), (Runs{{42, 12}, {72, 12}}));
  EXPECT_EQ(runs({4, 5, 6}, Order::kColumn, {{0, 2, 3}, {4, 2, 2}}), (Runs{{68, 8}, {88, 8}}));
  EXPECT_EQ(runs({4, 5, 6}, Order::kRow, {{1, 0, 0}, {3, 5, 6}}), (Runs{{30, 90}}));
  EXPECT_EQ(runs({}, Order::kRow, {{}, {}}), (Runs{{0, 1}}));
  EXPECT_TRUE(runs({4}, Order::kRow, {{1}, {0}}).empty());
  int seen = 0;
  const Status s = for_each_run({4, 5}, Order::kRow, {0, 0}, {4, 2}, [&](uint64_t, uint64_t) {
    return ++seen == 2 ? Status(Error{EIO, "enough"}) : Status();
  });
  EXPECT_EQ(s.code(), EIO);
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace outcore::cli
