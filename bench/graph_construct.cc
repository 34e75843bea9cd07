#include "bench/graph_construct.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <boost/interprocess/allocators/allocator.hpp>
#include <boost/interprocess/managed_external_buffer.hpp>
#include <boost/interprocess/managed_mapped_file.hpp>
#include <boost/interprocess/sync/spin/mutex.hpp>
#include <boost/interprocess/sync/spin/recursive_mutex.hpp>
#include <cerrno>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/clock.h"
#include "bench/csr.h"
#include "bench/data.h"
#include "bench/medium.h"
#include "bench/own_heap.h"
#include "bench/random.h"
#include "cli/text.h"
#include "outcore/store_catalog.h"

namespace outcore::bench {
namespace {

namespace bi = boost::interprocess;
namespace bc = boost::container;

using PlainGraph = std::unordered_map<uint64_t, std::vector<uint64_t>>;
using HeapGraph = persistent::hash_map<uint64_t, persistent::vector<uint64_t>>;

// Boost's locks lie in its segment. In a region they must not wait in the kernel, which knows locks
// that processes share by the page they are in: it may have left by then, and who waits is not
// woken. So that only who brings in pages differs they spin in a mapped file, too.
struct SpinningLocks {
  using mutex_type = bi::ipcdetail::spin_mutex;
  using recursive_mutex_type = bi::ipcdetail::spin_recursive_mutex;
};
using FileSegment =
    bi::basic_managed_mapped_file<char, bi::rbtree_best_fit<SpinningLocks>, bi::iset_index>;
using RegionSegment =
    bi::basic_managed_external_buffer<char, bi::rbtree_best_fit<SpinningLocks>, bi::iset_index>;

// The same containers in either.
template <typename Owner, typename T>
using SegmentAllocator = bc::scoped_allocator_adaptor<bi::allocator<T, Owner>>;
template <typename Owner>
using SegmentList = bc::vector<uint64_t, SegmentAllocator<Owner, uint64_t>>;
template <typename Owner>
using SegmentGraph =
    boost::unordered_map<uint64_t, SegmentList<Owner>, boost::hash<uint64_t>,
                         std::equal_to<uint64_t>,
                         SegmentAllocator<Owner, std::pair<const uint64_t, SegmentList<Owner>>>>;

struct Edge {
  uint32_t from, to;
};

struct Sum {
  uint64_t vertices = 0, neighbours = 0, hash = 0;
  bool operator==(const Sum&) const = default;
};

// Of a store that is a folder; 0: it is none.
uint64_t files_of(const std::string& uri) {
  uint64_t files = 0;
  std::error_code code;
  std::filesystem::directory_iterator at(path_of(uri), code);
  for (; !code && at != std::filesystem::directory_iterator(); at.increment(code))
    files += at->is_regular_file(code);
  return files;
}

uint64_t hash_of(uint64_t from, uint64_t to) { return mix(mix(from) + to); }

class GraphConstruct : public Workload {
 public:
  explicit GraphConstruct(const Options& options)
      : options_(options),
        uri_(options.store.empty()
                 ? cli::format("%s/outcore-bench-graph-%d.heap", data_dir(options).c_str(),
                               static_cast<int>(::getpid()))
                 : options.store) {}

  ~GraphConstruct() override {  // after a run that failed, or was interrupted
    if (is_begun_ && !options_.is_kept) (void)clear();
  }

  uint64_t data_bytes() const override {  // vectors have room for half as much again
    return (uint64_t{2} * options_.edge_factor * 12 + 100) << options_.scale;
  }
  const std::string& uri() const override { return uri_; }
  bool takes(const std::string& memory) const override { return has_object_heap(memory); }
  void forget() override {}
  Status prepare() override;
  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  Status claim();
  Status clear() const;
  template <typename Graph>
  Status build(Stage& stage, const std::vector<Graph*>& graphs);
  template <typename Graph>
  void insert(Graph& graph, unsigned part, Stage& stage) const;
  Status run_plain(Stage& stage);
  template <typename Segment>
  Status build_in(Segment& segment, Stage& stage);
  uint64_t segment_bytes() const { return std::max<uint64_t>(4 * data_bytes(), 64 << 20); }
  Status run_mapped(Stage& stage);
  Status run_boost_in_outcore(Stage& stage);
  Status run_own(Stage& stage);
  Status open_again(Stage& stage, const OwnHeap& own);

  Options options_;
  std::string uri_;
  bool is_begun_ = false;    // a run may have made it
  bool is_claimed_ = false;  // whatever is there is of this benchmark
  bool had_folder_ = false;  // it was there, and empty
  std::vector<Edge> edges_;
  Sum expected_;
};

// A heap is made where nothing is. What is removed later is what was made here.
Status GraphConstruct::claim() {
  if (is_claimed_ || options_.store.empty() || is_volatile(uri_)) return {};
  if (is_remote(uri_)) {
    const Result<bool> there = is_there(uri_);
    if (!there) return there.error();
    is_claimed_ = !there.value() || options_.may_overwrite;
  } else {
    std::error_code ignored;
    const std::string path = path_of(uri_);
    const auto kind = std::filesystem::status(path, ignored);
    const bool is_folder = std::filesystem::is_directory(kind);
    had_folder_ = is_folder && std::filesystem::is_empty(path, ignored);
    is_claimed_ = had_folder_ || !std::filesystem::exists(kind) ||
                  (options_.may_overwrite && std::filesystem::is_regular_file(kind));
    if (!is_claimed_ && is_folder)
      return Error{EEXIST, path +
                               " is a folder with something in it: name one that is empty, or "
                               "not there, with --store"};
  }
  if (is_claimed_) return {};
  return Error{EEXIST, without_password(uri_) +
                           " is there, and would be overwritten: name another with --store, or say "
                           "--overwrite to lose what it holds"};
}

Status GraphConstruct::clear() const {
  if (is_volatile(uri_) || (!is_claimed_ && !options_.store.empty())) return {};
  if (is_remote(uri_)) return remove_remote(uri_);
  std::error_code code;
  const std::string path = path_of(uri_);
  if (had_folder_) {
    for (const auto& entry : std::filesystem::directory_iterator(path, code))
      std::filesystem::remove_all(entry.path(), code);
  } else {
    std::filesystem::remove_all(path, code);
  }
  return code ? Status(cli::failure(code.value(), "remove " + path)) : Status();
}

Status GraphConstruct::prepare() {
  if (Status s = claim(); !s) return s;
  is_begun_ = true;
  if (!edges_.empty()) return {};
  if (options_.scale < 3 || options_.scale > 31)
    return Error{EINVAL, "--scale must be 3 … 31 for graph-construct"};
  const uint64_t vertices = uint64_t{1} << options_.scale;
  Random numbers(options_.seed);
  const Permutation name_of(vertices, options_.seed);
  edges_.reserve(vertices * options_.edge_factor);
  std::vector<bool> seen(vertices);
  for (uint64_t i = 0; i < vertices * options_.edge_factor; ++i) {
    const auto [from, to] = rmat_edge(options_.scale, numbers);
    const auto a = static_cast<uint32_t>(name_of(from)), b = static_cast<uint32_t>(name_of(to));
    edges_.push_back({a, b});
    seen[a] = seen[b] = true;
    expected_.hash += hash_of(a, b) + hash_of(b, a);
  }
  expected_.neighbours = 2 * edges_.size();
  for (const bool is_seen : seen) expected_.vertices += is_seen;
  return {};
}

template <typename Graph>
void GraphConstruct::insert(Graph& graph, unsigned part, Stage& stage) const {
  const unsigned parts = options_.threads;
  for (size_t i = 0; i < edges_.size(); ++i) {
    const auto [from, to] = edges_[i];
    if (from % parts == part) graph[from].push_back(to);
    if (to % parts == part) graph[to].push_back(from);
    if (i % 65536 == 65535 && part == 0) stage.progress(65536);
  }
}

template <typename Graph>
Status GraphConstruct::build(Stage& stage, const std::vector<Graph*>& graphs) {
  if (Status s = stage.start(edges_.size()); !s) return s;
  on_threads(options_.threads, [&](unsigned t) { insert(*graphs[t], t, stage); });
  stage.stop();
  Sum sum;
  for (const Graph* graph : graphs) {
    sum.vertices += graph->size();
    for (const auto& [from, list] : *graph)
      for (const uint64_t to : list) {
        ++sum.neighbours;
        sum.hash += hash_of(from, to);
      }
  }
  auto& extra = stage.result().extra;
  extra["vertices"] = sum.vertices;
  extra["edges"] = edges_.size();
  extra["is_right"] = sum == expected_;
  return {};
}

Status GraphConstruct::run_plain(Stage& stage) {
  std::vector<PlainGraph> graphs(options_.threads);
  std::vector<PlainGraph*> all;
  for (PlainGraph& graph : graphs) all.push_back(&graph);
  return build(stage, all);
}

template <typename Segment>
Status GraphConstruct::build_in(Segment& segment, Stage& stage) {
  using Graph = SegmentGraph<typename Segment::segment_manager>;
  std::vector<Graph*> all;
  for (unsigned t = 0; t < options_.threads; ++t)
    all.push_back(segment.template construct<Graph>(std::to_string(t).c_str())(
        typename Graph::allocator_type(segment.get_segment_manager())));
  return build(stage, all);
}

Status GraphConstruct::run_mapped(Stage& stage) try {
  const std::string path = path_of(uri_);
  FileSegment file(bi::create_only, path.c_str(), segment_bytes());
  if (!options_.is_kept) ::unlink(path.c_str());  // it lives as long as it is mapped
  if (stage.memory_name() == "mmap-random" &&
      ::madvise(file.get_address(), file.get_size(), MADV_RANDOM) != 0)
    return cli::failure(errno, "advise the kernel on " + path);
  if (Status s = build_in(file, stage); !s) return s;
  const uint64_t start_ns = now_ns();
  if (!file.flush()) return cli::failure(EIO, "flush " + path);
  stage.result().extra["close_seconds"] = seconds_since(start_ns);
  return {};
} catch (const bi::interprocess_exception& error) {
  return Error{EIO, uri_ + ": " + error.what()};
}

// The allocator and the containers of `mmap`, in a region: what differs is who brings pages in.
Status GraphConstruct::run_boost_in_outcore(Stage& stage) try {
  const std::string path = path_of(uri_);
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return cli::failure(errno, "make " + path);
  const int code = ::ftruncate(file, static_cast<off_t>(segment_bytes())) == 0 ? 0 : errno;
  ::close(file);
  if (code != 0) return cli::failure(code, "extend " + path);
  auto mapped = stage.map({uri_, 0, segment_bytes(), true});
  if (!mapped) return mapped.error();
  RegionSegment segment(bi::create_only, mapped->data(), mapped->size());
  return build_in(segment, stage);
} catch (const bi::interprocess_exception& error) {
  return Error{EIO, uri_ + ": " + error.what()};
}

Status GraphConstruct::run_own(Stage& stage) {
  const OwnHeap own(stage.runtime(), stage.memory_name(), options_);
  auto heap = own.create(uri_);
  if (!heap) return heap.status();
  std::vector<HeapGraph*> all;
  for (unsigned t = 0; t < options_.threads; ++t) {
    auto graph = heap->construct<HeapGraph>(std::to_string(t));
    if (!graph) return graph.status();
    all.push_back(*graph);
  }
  if (Status s = build(stage, all); !s) return s;
  auto& extra = stage.result().extra;
  extra["heap_bytes"] = heap->info().in_use_bytes;
  const uint64_t start_ns = now_ns();
  if (Status s = heap->close(); !s) return s;
  extra["close_seconds"] = seconds_since(start_ns);
  if (is_volatile(uri_)) return {};  // it went with its heap
  if (Status s = open_again(stage, own); !s) return s;
  if (const uint64_t files = files_of(uri_); files != 0) extra["files"] = files;
  return {};
}

// What a program that comes later waits for, before its first object.
Status GraphConstruct::open_again(Stage& stage, const OwnHeap& own) {
  const uint64_t start_ns = now_ns();
  auto heap = own.open(uri_);
  if (!heap) return heap.status();
  const auto found = heap->find<HeapGraph>("0");
  stage.result().extra["open_seconds"] = seconds_since(start_ns);
  if (!found) return found.status();
  return heap->close();
}

Status GraphConstruct::run(Stage& stage) {
  if (options_.processes != 1)
    return Error{EINVAL, "graph-construct runs in one process: leave out --processes"};
  if (Status s = clear(); !s) return s;  // of the run before
  if (Status s = stage.settle(); !s) return s;
  const std::string& memory = stage.memory_name();
  Status s = memory == "malloc"               ? run_plain(stage)
             : has_own_heap(options_, memory) ? run_own(stage)
             : is_outcore(memory)             ? run_boost_in_outcore(stage)
                                              : run_mapped(stage);
  if (!s.ok()) return s;
  return stage.finish(static_cast<double>(edges_.size()), "edges/s");
}

Status GraphConstruct::check(const RunResult& result) {
  if (!options_.is_kept)
    if (Status s = clear(); !s) return s;
  if (result.is_stopped || result.extra.value("is_right", false)) return {};
  return Error{EILSEQ, "the adjacency lists are not those of the edges"};
}

}  // namespace

std::unique_ptr<Workload> make_graph_construct(const Options& options) {
  return std::make_unique<GraphConstruct>(options);
}

}  // namespace outcore::bench
