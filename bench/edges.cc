// Edges for a graph file: R-MAT from a seed, or a list from a text file.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "bench/csr.h"
#include "bench/random.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

bool is_separator(char c) { return c == ' ' || c == '\t' || c == ',' || c == '\r'; }

// Cuts the next word off; empty at the end of the line, or where a comment begins.
std::string_view next_word(std::string_view& line) {
  while (!line.empty() && is_separator(line.front())) line.remove_prefix(1);
  if (line.starts_with('#') || line.starts_with('%')) line = {};
  size_t size = 0;
  while (size < line.size() && !is_separator(line[size])) ++size;
  const std::string_view word = line.substr(0, size);
  line.remove_prefix(size);
  return word;
}

template <typename Number>
bool parse(std::string_view word, Number& number) {
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == word.data() + word.size();
}

// A line of two vertices. What follows them must be numbers, too: a weight, a time.
bool parse_edge(std::string_view line, uint64_t (&vertex)[2]) {
  for (uint64_t& v : vertex)
    if (!parse(next_word(line), v) || v >= uint64_t{1} << 40) return false;
  for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
    double number = 0;
    if (word.front() == '+') word.remove_prefix(1);
    if (!parse(word, number)) return false;
  }
  return true;
}

// Calls see(from, to) for each edge of a list; stops at its first error.
template <typename See>
Status for_each_edge(const std::string& path, See see) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored))
    return Error{EINVAL, path + " is not a regular file, and is read twice: name a text file"};
  std::ifstream file(path);
  if (!file) return cli::failure(errno, "open " + path, "name a text file of edges");
  std::string line;
  for (uint64_t number = 1; std::getline(file, line); ++number) {
    std::string_view rest = line;
    if (next_word(rest).empty()) continue;
    uint64_t vertex[2] = {};
    if (!parse_edge(line, vertex))
      return Error{
          EINVAL, cli::format("%s, line %llu is not an edge: write two vertex numbers, as in 17 42",
                              path.c_str(), static_cast<unsigned long long>(number))};
    if (Status s = see(vertex[0], vertex[1]); !s) return s;
  }
  if (file.bad()) return cli::failure(EIO, "read " + path, "copy it to another disk");
  return {};
}

}  // namespace

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

Result<EdgeCount> count_edges(const std::string& path) {
  EdgeCount count;
  const auto see = [&](uint64_t from, uint64_t to) {
    ++count.edges;
    count.vertices = std::max({count.vertices, from + 1, to + 1});
    return Status();
  };
  if (Status s = for_each_edge(path, see); !s) return s.error();
  if (count.edges == 0)
    return Error{EINVAL, path + " has no edges: write lines of two vertex numbers"};
  return count;
}

Result<CsrHeader> ingest_edges(const std::string& path, const EdgeCount& count,
                               const std::string& out_uri, bool is_directed) {
  const uint64_t stored = is_directed ? count.edges : 2 * count.edges;
  auto builder = CsrBuilder::make(out_uri, count.vertices, stored);
  if (!builder) return builder.error();
  const auto add = [&](uint64_t from, uint64_t to) {
    // Since they were counted, somebody may have written to the list.
    if (std::max(from, to) >= count.vertices)
      return Status(Error{EAGAIN, path + " changed while it was read: try again"});
    if (Status s = (*builder)->add(from, to); !s) return s;
    return is_directed ? Status() : (*builder)->add(to, from);
  };
  if (Status s = for_each_edge(path, add); !s) return s.error();
  return (*builder)->finish();
}

}  // namespace outcore::bench
