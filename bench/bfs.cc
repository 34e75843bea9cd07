// bfs: a level-synchronous breadth-first search of a graph file (csr.h).
//
// Semi-external: the graph is in the memory under test, levels and frontiers (bitmaps, walked in
// ascending order) are the program's own. Fully external: the levels are in a second mapping.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "bench/check.h"
#include "bench/csr.h"
#include "bench/data.h"
#include "bench/workload.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kChunkWords = 16;  // a thread takes 1024 vertices of a frontier at a time

std::string graph_name(const Options& options) {
  return cli::format("outcore-bench-rmat-%u-%u-%llu.csr", options.scale, options.edge_factor,
                     static_cast<unsigned long long>(options.seed));
}

Options for_graph(Options options) {
  if (!options.graph.empty()) options.store = options.graph;
  return options;
}

Options for_levels(Options options, const std::string& graph_path) {
  options.store.clear();
  options.dir = std::filesystem::path(graph_path).parent_path();
  if (options.dir.empty()) options.dir = ".";
  return options;
}

// A search: the graph, the levels and two frontiers. run() is called once.
class Search {
 public:
  Search(const CsrView& graph, uint32_t* levels, std::vector<uint64_t>& current,
         std::vector<uint64_t>& next)
      : graph_(graph), levels_(levels), current_(&current), next_(&next) {}

  void run(uint64_t source, unsigned threads, Stage& stage) {
    BENCH_CHECK(source / 64 < current_->size() && next_->size() == current_->size());
    levels_[source] = 1;
    (*current_)[source / 64] |= uint64_t{1} << (source % 64);
    for (uint32_t level = 2; has_found_; ++level) {
      has_found_ = false;
      next_chunk_ = 0;
      on_threads(threads, [&](unsigned) { expand(level, stage); });
      std::swap(current_, next_);
      std::fill(next_->begin(), next_->end(), 0);
      ++levels_count_;
    }
    BENCH_CHECK(vertices_seen_.load() != 0);
  }
  uint64_t edges_seen() const { return edges_seen_; }
  uint64_t vertices_seen() const { return vertices_seen_; }
  unsigned levels_count() const { return levels_count_; }

 private:
  void expand(uint32_t level, Stage& stage) {
    uint64_t edges = 0, vertices = 0;
    bool has_found = false;
    while (true) {
      const uint64_t first = next_chunk_.fetch_add(kChunkWords);
      if (first >= current_->size()) break;
      const uint64_t last = std::min<uint64_t>(first + kChunkWords, current_->size());
      const uint64_t before = vertices;
      for (uint64_t w = first; w < last; ++w) {
        for (uint64_t bits = (*current_)[w]; bits != 0; bits &= bits - 1) {
          const uint64_t v = w * 64 + static_cast<uint64_t>(std::countr_zero(bits));
          edges += visit(v, level, has_found);
          ++vertices;
        }
      }
      if (vertices != before) stage.progress(vertices - before);
    }
    edges_seen_ += edges;
    vertices_seen_ += vertices;
    if (has_found) has_found_ = true;
  }

  uint64_t visit(uint64_t v, uint32_t level, bool& has_found) {
    const uint64_t first = graph_.offsets[v], last = graph_.offsets[v + 1];
    for (uint64_t e = first; e < last; ++e) {
      const uint64_t to = graph_.targets[e];
      const std::atomic_ref<uint32_t> mine(levels_[to]);
      if (mine.load(std::memory_order_relaxed) != 0) continue;
      uint32_t unseen = 0;
      if (!mine.compare_exchange_strong(unseen, level, std::memory_order_relaxed)) continue;
      std::atomic_ref((*next_)[to / 64])
          .fetch_or(uint64_t{1} << (to % 64), std::memory_order_relaxed);
      has_found = true;
    }
    return last - first;
  }

  const CsrView& graph_;
  uint32_t* levels_;
  std::vector<uint64_t>*current_, *next_;
  std::atomic<uint64_t> next_chunk_{0}, edges_seen_{0}, vertices_seen_{0};
  std::atomic<bool> has_found_{true};
  unsigned levels_count_ = 0;
};

class Bfs : public Workload {
 public:
  explicit Bfs(const Options& options)
      : options_(options),
        data_(for_graph(options), graph_name(options)),
        levels_(for_levels(options, data_.path()),
                std::filesystem::path(data_.path()).filename().string() + ".levels"),
        tag_(cli::format("rmat scale %u edge factor %u seed %llu", options.scale,
                         options.edge_factor, static_cast<unsigned long long>(options.seed))) {}

  uint64_t data_bytes() const override {
    return header_.size_bytes() + (options_.is_fully_external ? levels_bytes() : 0);
  }
  const std::string& uri() const override { return data_.uri(); }
  void forget() override {
    data_.forget();
    if (options_.is_fully_external) levels_.forget();
  }
  Status prepare() override;
  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  uint64_t levels_bytes() const {
    return (header_.vertices * sizeof(uint32_t) + 4095) / 4096 * 4096;
  }
  Result<uint64_t> reference_hash(Medium& medium) const;
  Status clear_levels();

  Options options_;
  Data data_, levels_;
  std::string tag_;
  CsrHeader header_;
  uint64_t expected_ = 0;
  bool is_ready_ = false;
};

// In a child, whose memory the kernel then has back at once: not part of any run's own memory.
Result<uint64_t> Bfs::reference_hash(Medium& medium) const {
  int ends[2];
  if (pipe(ends) != 0) return cli::failure(errno, "make a pipe");
  const pid_t child = fork();
  if (child < 0) return cli::failure(errno, "fork");
  if (child == 0) {
    std::vector<std::byte> bytes(header_.size_bytes());
    if (!medium.read(0, bytes)) _exit(1);
    const uint64_t hash = hash_levels(reference_levels(CsrView(bytes), header_.source));
    _exit(write(ends[1], &hash, sizeof hash) == sizeof hash ? 0 : 1);
  }
  close(ends[1]);
  uint64_t hash = 0;
  const ssize_t n = read(ends[0], &hash, sizeof hash);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (n != sizeof hash)
    return Error{ENOMEM,
                 "the search in memory, which the others are compared with, failed: it needs " +
                     cli::format_bytes(header_.size_bytes())};
  return hash;
}

Status Bfs::clear_levels() {
  if (Status s = levels_.claim(); !s) return s;
  levels_.mark_changed();
  auto medium = open_medium(levels_.uri(), levels_bytes(), true);
  if (!medium) return medium.error();
  const std::vector<std::byte> zeros(levels_bytes());
  if (Status s = (*medium)->write(0, zeros); !s) return s;
  return (*medium)->sync();
}

Status Bfs::prepare() {
  if (!is_ready_ && options_.graph.empty()) {
    if (Status s = data_.claim(); !s) return s;
    if (!data_.is_clean(tag_)) {
      data_.mark_changed();
      auto made = make_rmat(data_.uri(), options_.scale, options_.edge_factor, options_.seed);
      if (!made) return made.status();
      data_.mark_clean(tag_);
    }
  }
  if (!is_ready_) {
    auto medium = open_medium(data_.uri(), 0, false);
    if (!medium) return medium.error();
    auto header = read_header(**medium);
    if (!header) return Error{header.code(), data_.uri() + ": " + header.message()};
    header_ = header.value();
    auto hash = reference_hash(**medium);
    if (!hash) return hash.status();
    expected_ = hash.value();
    is_ready_ = true;
  }
  return options_.is_fully_external ? clear_levels() : Status();
}

Status Bfs::run(Stage& stage) {
  if (options_.processes != 1)
    return Error{EINVAL, "bfs runs in one process: leave out --processes"};
  const bool is_external = options_.is_fully_external;
  BENCH_CHECK(is_ready_);
  std::vector<uint64_t> current((header_.vertices + 63) / 64), next(current.size());
  std::vector<uint32_t> own_levels(is_external ? 0 : header_.vertices);
  if (Status s = stage.settle(); !s) return s;
  auto mapped = stage.map({data_.uri(), 0, header_.size_bytes(), false});
  if (!mapped) return mapped.error();
  uint32_t* levels = own_levels.data();
  if (is_external) {
    auto second = stage.map({levels_.uri(), 0, levels_bytes(), true});
    if (!second) return second.error();
    levels = reinterpret_cast<uint32_t*>(second->data());
  }
  const CsrView graph(mapped.value());
  Search search(graph, levels, current, next);
  if (Status s = stage.start(header_.vertices); !s) return s;
  search.run(header_.source, options_.threads, stage);
  stage.stop();
  BENCH_CHECK(search.vertices_seen() <= header_.vertices);
  auto& extra = stage.result().extra;
  extra["vertices"] = header_.vertices;
  extra["edges"] = header_.edges;
  extra["levels"] = search.levels_count();
  extra["reached"] = search.vertices_seen();
  if (!is_external) extra["levels_hash"] = hash_levels(own_levels);
  return stage.finish(static_cast<double>(search.edges_seen()), "edges/s");
}

Status Bfs::check(const RunResult& result) {
  if (result.is_stopped) return {};
  uint64_t hash = result.extra.value("levels_hash", uint64_t{0});
  if (options_.is_fully_external) {
    std::vector<uint32_t> levels(levels_bytes() / sizeof(uint32_t));
    auto medium = open_medium(levels_.uri(), levels_bytes(), false);
    if (!medium) return medium.error();
    if (Status s = (*medium)->read(0, std::as_writable_bytes(std::span(levels))); !s) return s;
    hash = hash_levels(std::span(levels).first(header_.vertices));
  }
  if (hash == expected_) return {};
  return Error{EILSEQ, "the levels are not those of the search in memory"};
}

}  // namespace

std::unique_ptr<Workload> make_bfs(const Options& options) {
  return std::make_unique<Bfs>(options);
}

}  // namespace outcore::bench
