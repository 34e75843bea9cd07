// Csr: a graph as a file: for each vertex where its neighbours begin, and then all neighbours.
//
// Layout, little endian, made to be mapped:
//   byte 0      header, 4096 bytes: the fields of CsrHeader, the rest zero
//   4096        offsets: vertices + 1 words of 64 bits; the neighbours of v are targets[offsets[v]
//   …
//               offsets[v + 1] - 1]; then zeros up to a multiple of 4096
//   targets_at  targets: `edges` words of 64 bits, ascending for each vertex, without duplicates
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/medium.h"
#include "bench/random.h"
#include "outcore/result.h"

namespace outcore::bench {

struct CsrHeader {
  static constexpr uint64_t kMagic = 0x3152534345434F;  // "OCECSR1"
  static constexpr uint64_t kBytes = 4096;
  uint64_t magic = kMagic;
  uint64_t vertices = 0;
  uint64_t edges = 0;       // stored targets: an undirected edge counts twice
  uint64_t targets_at = 0;  // byte offset
  uint64_t source = 0;      // the vertex with most neighbours: where a search begins by default
  uint64_t degree_max = 0;
  uint64_t content_hash =
      0;  // see content_hash(); 0: of a graph that was made before there was one

  uint64_t size_bytes() const { return targets_at + edges * sizeof(uint64_t); }
};

// A mapped (or loaded) graph. REQUIRES: the bytes are a whole file that read_header() accepted.
struct CsrView {
  explicit CsrView(std::span<const std::byte> bytes);
  const CsrHeader& header;
  const uint64_t* offsets;
  const uint64_t* targets;
};

// Errors: EINVAL if it is no graph, is cut short, or says impossible sizes.
Result<CsrHeader> read_header(Medium& medium);

// Makes a graph file out of core: edges go to files by ranges of vertices, and each range, of at
// most some 128 MiB, is sorted in memory. One thread.
class CsrBuilder {
 public:
  // Edges join vertices below `vertices`. `edges_expected` only decides how many ranges there are.
  static Result<std::unique_ptr<CsrBuilder>> make(std::string out_uri, uint64_t vertices,
                                                  uint64_t edges_expected);
  ~CsrBuilder();
  CsrBuilder(const CsrBuilder&) = delete;
  CsrBuilder& operator=(const CsrBuilder&) = delete;

  // Adds from → to. Self-loops are left out, duplicates later. REQUIRES: both below `vertices`.
  Status add(uint64_t from, uint64_t to);
  // Writes the file. Nothing may be added afterwards.
  Result<CsrHeader> finish();

 private:
  struct Edge {
    uint64_t from, to;
  };
  struct Range;
  CsrBuilder() = default;
  Status spill(Range& range);
  Status write_range(Range& range, uint64_t first, Medium& out, CsrHeader& header,
                     std::vector<uint64_t>& offsets);
  std::string out_uri_;
  uint64_t vertices_ = 0, range_vertices_ = 0, added_ = 0;
  std::vector<Range> ranges_;
};

// One edge of the recursive matrix (R-MAT, Chakrabarti et al. 2004): at each level one of four
// quarters, with Graph500's probabilities.
std::pair<uint64_t, uint64_t> rmat_edge(unsigned scale, Random& random);

// R-MAT with Graph500's parameters and scrambled names: 2^scale vertices,
// edge_factor edges each, both directions stored.
Result<CsrHeader> make_rmat(const std::string& out_uri, unsigned scale, unsigned edge_factor,
                            uint64_t seed);

struct EdgeCount {
  uint64_t edges = 0;
  uint64_t vertices = 0;  // one more than the highest number
};
// Reads "FROM TO" lines of numbers; what begins with # or % is left out, and so are numbers that
// follow (a weight, a time). Errors: EINVAL with the line that is no edge, or without any.
Result<EdgeCount> count_edges(const std::string& path);
// Makes a graph of them. is_directed: one direction only. REQUIRES: `count` is of this file.
Result<CsrHeader> ingest_edges(const std::string& path, const EdgeCount& count,
                               const std::string& out_uri, bool is_directed);

// One number for an array, the sum of one for each value and its place: parts of an array can be
// added in any order, by any number of threads. `first` is the place of the first value.
template <typename Value>
uint64_t hash_values(std::span<const Value> values, uint64_t first = 0) {
  uint64_t hash = 0;
  for (size_t i = 0; i < values.size(); ++i)
    hash += mix((first + i) * 0x9E3779B97F4A7C15 + values[i]);
  return hash;
}
// Of an array of words, as bytes. REQUIRES: aligned to words, and whole words.
uint64_t hash_words(std::span<const std::byte> bytes);
// Of the offsets and targets: tells whether the file is as it was made.
uint64_t content_hash(const CsrView& graph);

}  // namespace outcore::bench
