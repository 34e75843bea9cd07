#include "bench/csr.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "bench/check.h"
#include "bench/random.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kRangeBytesMax = uint64_t{128} << 20;
constexpr uint64_t kVerticesMax = uint64_t{1} << 40;
constexpr size_t kSpillEdges = 32 * 1024;
constexpr size_t kRangesMax = 4096;
constexpr const char* kGraphRemedy = "name a place with more room, or make a smaller graph";

uint64_t round_up(uint64_t n, uint64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

}  // namespace

CsrView::CsrView(std::span<const std::byte> bytes)
    : header(*reinterpret_cast<const CsrHeader*>(bytes.data())),
      offsets(reinterpret_cast<const uint64_t*>(bytes.data() + CsrHeader::kBytes)),
      targets(reinterpret_cast<const uint64_t*>(bytes.data() + header.targets_at)) {}

Result<CsrHeader> read_header(Medium& medium) {
  CsrHeader header;
  const Error refused{EINVAL, "the file is not a graph of `outcore bench ingest`, or is cut short"};
  if (medium.size_bytes() < CsrHeader::kBytes) return refused;
  if (Status s = medium.read(0, std::as_writable_bytes(std::span(&header, 1))); !s)
    return s.error();
  const bool is_sane =
      header.magic == CsrHeader::kMagic && header.vertices > 0 && header.vertices <= kVerticesMax &&
      header.source < header.vertices && header.edges <= kVerticesMax * 1024 &&
      header.targets_at == round_up(CsrHeader::kBytes + (header.vertices + 1) * 8, 4096) &&
      header.size_bytes() <= medium.size_bytes();
  if (!is_sane) return refused;
  return header;
}

// The edges that leave one range of vertices: the newest in memory, the others in an unnamed file.
struct CsrBuilder::Range {
  int file = -1;
  uint64_t spilled = 0;
  std::vector<Edge> edges;
};

Result<std::unique_ptr<CsrBuilder>> CsrBuilder::make(std::string out_uri, uint64_t vertices,
                                                     uint64_t edges_expected) {
  if (vertices == 0 || vertices > kVerticesMax)
    return Error{EINVAL, "a graph has 1 … 2^40 vertices"};
  std::unique_ptr<CsrBuilder> builder(new CsrBuilder);
  builder->out_uri_ = std::move(out_uri);
  builder->vertices_ = vertices;
  const uint64_t wanted = edges_expected * sizeof(Edge) / kRangeBytesMax + 1;
  const uint64_t ranges = std::min({wanted, vertices, uint64_t{kRangesMax}});
  builder->range_vertices_ = (vertices + ranges - 1) / ranges;
  builder->ranges_.resize((vertices + builder->range_vertices_ - 1) / builder->range_vertices_);
  const std::filesystem::path dir = std::filesystem::path(path_of(builder->out_uri_)).parent_path();
  for (Range& range : builder->ranges_) {
    std::string name = ((dir.empty() ? "." : dir) / "outcore-edges-XXXXXX").string();
    range.file = mkstemp(name.data());
    if (range.file < 0)
      return cli::failure(errno, "make " + name + " for edges to be sorted",
                          "name a graph in a folder that can be written");
    unlink(name.c_str());
    range.edges.reserve(kSpillEdges);
  }
  return builder;
}

CsrBuilder::~CsrBuilder() {
  for (const Range& range : ranges_)
    if (range.file >= 0) close(range.file);
}

Status CsrBuilder::spill(Range& range) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(range.edges));
  for (size_t at = 0; at < bytes.size();) {
    const auto position = static_cast<off_t>(range.spilled * sizeof(Edge) + at);
    const ssize_t n = pwrite(range.file, bytes.data() + at, bytes.size() - at, position);
    if (n < 0 && errno != EINTR)
      return cli::failure(errno, "write edges beside " + path_of(out_uri_), kGraphRemedy);
    if (n > 0) at += static_cast<size_t>(n);
  }
  range.spilled += range.edges.size();
  range.edges.clear();
  return {};
}

Status CsrBuilder::add(uint64_t from, uint64_t to) {
  if (from == to) return {};
  ++added_;
  Range& range = ranges_[from / range_vertices_];
  range.edges.push_back({from, to});
  return range.edges.size() < kSpillEdges ? Status() : spill(range);
}

// Sorts one range by counting, and appends its neighbours to the file.
Status CsrBuilder::write_range(Range& range, uint64_t first, Medium& out, CsrHeader& header,
                               std::vector<uint64_t>& offsets) {
  BENCH_CHECK(range.file >= 0 && first < vertices_);
  if (Status s = spill(range); !s) return s;
  if (range.spilled == 0) {
    for (uint64_t v = first; v < std::min(vertices_, first + range_vertices_); ++v)
      offsets[v + 1] = header.edges;
    return {};
  }
  const size_t bytes = range.spilled * sizeof(Edge);
  void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, range.file, 0);
  if (mapped == MAP_FAILED) return cli::failure(errno, "map edges beside " + path_of(out_uri_));
  const std::span<const Edge> edges(static_cast<const Edge*>(mapped), range.spilled);
  const uint64_t count = std::min(vertices_ - first, range_vertices_);
  BENCH_CHECK(count != 0 && first + count <= vertices_);
  std::vector<uint64_t> start(count + 1), targets(edges.size());
  for (const Edge& edge : edges) ++start[edge.from - first + 1];
  for (uint64_t v = 0; v < count; ++v) start[v + 1] += start[v];
  std::vector<uint64_t> next(start.begin(), start.end() - 1);
  for (const Edge& edge : edges) targets[next[edge.from - first]++] = edge.to;
  munmap(mapped, bytes);
  close(range.file);
  range.file = -1;
  auto end = targets.begin();  // of what is kept
  const uint64_t position = header.targets_at + header.edges * sizeof(uint64_t);
  const uint64_t first_place = vertices_ + 1 + header.edges;  // in content_hash()
  for (uint64_t v = 0; v < count; ++v) {
    const auto from = targets.begin() + static_cast<int64_t>(start[v]);
    const auto to = targets.begin() + static_cast<int64_t>(start[v + 1]);
    std::sort(from, to);
    const auto kept_end = std::move(from, std::unique(from, to), end);
    const auto degree = static_cast<uint64_t>(kept_end - end);
    if (degree > header.degree_max) header.degree_max = degree, header.source = first + v;
    header.edges += degree;
    offsets[first + v + 1] = header.edges;
    end = kept_end;
  }
  const std::span<const uint64_t> kept(targets.begin(), end);
  header.content_hash += hash_values(kept, first_place);
  return out.write(position, std::as_bytes(kept));
}

Result<CsrHeader> CsrBuilder::finish() {
  CsrHeader header;
  header.vertices = vertices_;
  header.targets_at = round_up(CsrHeader::kBytes + (vertices_ + 1) * sizeof(uint64_t), 4096);
  const uint64_t bytes_max = header.targets_at + added_ * sizeof(uint64_t);
  auto out = open_medium(out_uri_, bytes_max, true, kGraphRemedy);
  if (!out) return out.error();
  std::vector<uint64_t> offsets(vertices_ + 1);
  for (size_t i = 0; i < ranges_.size(); ++i)
    if (Status s = write_range(ranges_[i], i * range_vertices_, **out, header, offsets); !s)
      return s.error();
  BENCH_CHECK(header.edges <= added_ && offsets.back() == header.edges);
  BENCH_CHECK(header.source < vertices_ && header.degree_max <= header.edges);
  header.content_hash += hash_values(std::span<const uint64_t>(offsets));
  std::vector<std::byte> front(header.targets_at);
  std::memcpy(front.data(), &header, sizeof header);
  std::memcpy(front.data() + CsrHeader::kBytes, offsets.data(), offsets.size() * sizeof(uint64_t));
  if (Status s = (*out)->write(0, front); !s) return s.error();
  if (Status s = (*out)->sync(); !s) return s.error();
  // Duplicates are gone: the file is shorter than was reserved.
  if (const std::string path = plain_path(out_uri_); !path.empty()) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored))
      std::filesystem::resize_file(path, header.size_bytes(), ignored);
  }
  return header;
}

uint64_t hash_words(std::span<const std::byte> bytes) {
  BENCH_CHECK(bytes.size() % sizeof(uint64_t) == 0);
  return hash_values(
      std::span(reinterpret_cast<const uint64_t*>(bytes.data()), bytes.size() / sizeof(uint64_t)));
}

uint64_t content_hash(const CsrView& graph) {
  const uint64_t offsets = graph.header.vertices + 1;
  return hash_values(std::span(graph.offsets, offsets)) +
         hash_values(std::span(graph.targets, graph.header.edges), offsets);
}

}  // namespace outcore::bench
