// Edges for a graph file: R-MAT from a seed, or a list from a text file.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>

#include "bench/csr.h"
#include "bench/random.h"
#include "bench/text.h"

namespace outcore::bench {
namespace {

// One edge of the recursive matrix: at each level one of four quarters, with Graph500's
// probabilities.
std::pair<uint64_t, uint64_t> rmat_edge(unsigned scale, Random& random) {
  static constexpr uint64_t kA = 0x91EB'851E, kAb = 0xC28F'5C28, kAbc = 0xF333'3333;  // .57 .19 .19
  uint64_t from = 0, to = 0, bits = 0;
  for (unsigned level = 0; level < scale; ++level) {
    if (level % 2 == 0) bits = random.next();
    const uint64_t r = bits & 0xFFFF'FFFF;
    bits >>= 32;
    from = from * 2 + (r >= kAb);
    to = to * 2 + ((r >= kA && r < kAb) || r >= kAbc);
  }
  return {from, to};
}

// Calls see(from, to) for each edge of a list; stops at its first error.
template <typename See>
Status for_each_edge(const std::string& path, See see) {
  std::ifstream file(path);
  if (!file) return failure(errno, "open " + path);
  std::string line;
  for (uint64_t number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line[0] == '#' || line[0] == '%') continue;
    uint64_t vertex[2] = {};
    const char* at = line.data();
    const char* const end = line.data() + line.size();
    for (uint64_t& v : vertex) {
      while (at < end && (*at == ' ' || *at == '\t' || *at == ',')) ++at;
      const auto parsed = std::from_chars(at, end, v);
      if (parsed.ec != std::errc() || v >= uint64_t{1} << 40)
        return Error{EINVAL,
                     format("%s, line %llu is no edge: write two vertex numbers, as in 17 42",
                            path.c_str(), static_cast<unsigned long long>(number))};
      at = parsed.ptr;
    }
    if (Status s = see(vertex[0], vertex[1]); !s) return s;
  }
  return {};
}

}  // namespace

Result<CsrHeader> make_rmat(const std::string& out_uri, unsigned scale, unsigned edge_factor,
                            uint64_t seed) {
  const uint64_t vertices = uint64_t{1} << scale, edges = vertices * edge_factor;
  auto builder = CsrBuilder::make(out_uri, vertices, 2 * edges);
  if (!builder) return builder.error();
  Random numbers(seed);
  const Permutation name_of(vertices, seed);
  for (uint64_t i = 0; i < edges; ++i) {
    const auto [from, to] = rmat_edge(scale, numbers);
    const uint64_t a = name_of(from), b = name_of(to);
    if (Status s = (*builder)->add(a, b); !s) return s.error();
    if (Status s = (*builder)->add(b, a); !s) return s.error();
  }
  return (*builder)->finish();
}

Result<CsrHeader> ingest_edges(const std::string& path, const std::string& out_uri,
                               bool is_directed) {
  uint64_t edges = 0, vertex_max = 0;
  const auto count = [&](uint64_t from, uint64_t to) {
    ++edges;
    vertex_max = std::max({vertex_max, from, to});
    return Status();
  };
  if (Status s = for_each_edge(path, count); !s) return s.error();
  if (edges == 0) return Error{EINVAL, path + " has no edges: write lines of two vertex numbers"};
  auto builder = CsrBuilder::make(out_uri, vertex_max + 1, is_directed ? edges : 2 * edges);
  if (!builder) return builder.error();
  const auto add = [&](uint64_t from, uint64_t to) {
    if (Status s = (*builder)->add(from, to); !s) return s;
    return is_directed ? Status() : (*builder)->add(to, from);
  };
  if (Status s = for_each_edge(path, add); !s) return s.error();
  return (*builder)->finish();
}

}  // namespace outcore::bench
