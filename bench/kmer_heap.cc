#include "bench/kmer_heap.h"

#include <algorithm>
#include <atomic>
#include <boost/container/vector.hpp>
#include <cerrno>
#include <exception>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/anonymous_memory.h"
#include "bench/check.h"
#include "bench/checkpoints.h"
#include "bench/clock.h"
#include "bench/kmer_data.h"
#include "bench/kmer_heap_index.h"
#include "bench/mapped_heap.h"
#include "bench/medium.h"
#include "bench/own_heap.h"
#include "bench/read_classifier.h"
#include "bench/sample_check.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr const char* kLists = "lists";  // the array's name in a heap

using PlainList = std::vector<uint64_t>;
using MappedList = boost::container::vector<uint64_t, InMappedHeap<uint64_t>>;
using OutcoreList = persistent::vector<uint64_t>;

class KmerHeap : public Workload {
 public:
  explicit KmerHeap(const Options& options)
      : options_(options),
        reads_(options.touches == 0 ? kSampleReadsDefault : options.touches),
        data_(options) {
    BENCH_CHECK(options.index == "two-level");
  }

  uint64_t data_bytes() const override { return data_.header().size_bytes; }
  uint64_t mapped_bytes() const override { return segment_bytes(); }
  const std::string& uri() const override { return path_; }
  bool takes(const std::string& memory) const override { return has_object_heap(memory); }
  Status prepare() override { return {}; }
  Status prepare_for(const std::string& memory) override;
  void forget() override {
    data_.file().forget();
    bench::forget(path_);
  }
  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  uint64_t lists() const { return KmerHeapIndex<PlainList>::lists_of(data_.header()); }
  // Room for the entries; for each list, its vector, and what the library has before and behind its
  // entries; and what the library needs itself.
  uint64_t segment_bytes() const {
    return data_bytes() + lists() * (sizeof(MappedList) + 64) + (uint64_t{4} << 20);
  }
  std::string heap_uri() const { return "file:" + path_; }
  bool is_own(const std::string& memory) const { return has_own_heap(options_, memory); }

  Status make_own(const std::string& memory) const;
  Status make_mapped() const;
  template <typename List>
  Status load(std::span<List> lists) const;
  Status run_plain(Stage& stage) const;
  Status run_mapped(Stage& stage) const;
  Status run_own(Stage& stage) const;
  template <typename List>
  Status run_on(Stage& stage, std::span<const List> lists) const;

  Options options_;
  uint64_t reads_;
  KmerData data_;                    // of which the heaps are made
  std::optional<OwnFolder> folder_;  // of the parent
  std::string path_;                 // of the heap of this run
  std::set<std::string> made_;       // such paths
};

Status KmerHeap::prepare_for(const std::string& memory) {
  if (Status s = data_.make({reads_, false}); !s) return s;
  path_ = data_.file().path();
  if (memory == "malloc") return {};  // what is not in a file is made by the run itself
  if (!folder_) {
    auto folder = OwnFolder::make(options_.dir);
    if (!folder) return folder.error();
    folder_.emplace(std::move(folder).value());
  }
  path_ = folder_->path() + (is_own(memory) ? "/own" : "/mapped");
  if (made_.contains(path_)) return {};  // nobody has written to it since
  // By a process of its own, which an interrupt ends: the parent forks, and has no runtime.
  const Status s = in_child(
      [&](const SeeFigure&) { return is_own(memory) ? make_own(memory) : make_mapped(); }, {});
  if (s.ok()) made_.insert(path_);
  return s;
}

template <typename List>
Status KmerHeap::load(std::span<List> lists) const {
  const KmerHeader& header = data_.header();
  const AnonymousMemory memory(nullptr, header.size_bytes);
  if (memory.bytes().empty())
    return cli::failure(ENOMEM, "map " + cli::format_bytes(header.size_bytes),
                        "use a smaller --size");
  auto medium = open_medium(data_.file().uri(), 0, false);
  if (!medium) return medium.error();
  if (Status s = read_all(**medium, memory.bytes()); !s) return s;
  try {
    KmerHeapIndex<List>::load(lists, header, memory.bytes());
    return {};
  } catch (const std::exception& error) {  // as containers tell that there is no room
    return Error{ENOSPC, "make the index " + path_ + ": " + error.what()};
  }
}

Status KmerHeap::make_own(const std::string& memory) const {
  const auto own = OwnHeap::alone(memory, options_);
  if (!own) return own.status();
  auto heap = own->create(heap_uri());
  if (!heap) return heap.status();
  const auto made = heap->construct_array<OutcoreList>(kLists, lists());
  if (!made) return made.status();
  if (Status s = load(made.value()); !s) return s;
  return heap->close();
}

Status KmerHeap::make_mapped() const try {
  auto heap = make_mapped_heap(path_, segment_bytes());
  if (!heap) return heap.status();
  auto* const first = heap->construct<MappedList>(kLists)[lists()](
      MappedList::allocator_type(heap->get_segment_manager()));
  if (Status s = load(std::span(first, lists())); !s) return s;
  return flush_mapped_heap(*heap, path_);
} catch (const MappedHeapError& error) {
  return Error{EIO, path_ + ": " + error.what()};
}

template <typename List>
Status KmerHeap::run_on(Stage& stage, std::span<const List> lists) const {
  const KmerHeapIndex<List> index(lists);
  const KmerHeader& header = data_.header();
  if (options_.is_warm)
    if (const auto found = index.look_through();
        found.misplaced != 0 || found.entries != header.kmers)
      return Error{EILSEQ, "the lists are not those of the k-mers"};
  if (Status s = stage.start(reads_); !s) return s;
  std::atomic<uint64_t> checksum{0}, right{0}, above{0};
  on_threads(options_.threads, [&](unsigned thread) {
    SampleAnswers answers(data_.genomes(), index);
    for (uint64_t i = thread; i < reads_; i += options_.threads) {
      answers.classify_read(i);
      stage.progress(1);
    }
    checksum += answers.checksum();
    right += answers.right();
    above += answers.above();
  });
  stage.stop();
  auto& extra = stage.result().extra;
  extra["kmers"] = header.kmers;
  extra["strains"] = uint64_t{data_.genomes().taxonomy().strains()};
  extra["answers"] = checksum.load();
  extra["right"] = right.load();
  extra["above"] = above.load();
  return {};
}

Status KmerHeap::run_plain(Stage& stage) const {
  std::vector<PlainList> all(lists());
  if (Status s = load(std::span(all)); !s) return s;
  return run_on(stage, std::span<const PlainList>(all));
}

Status KmerHeap::run_mapped(Stage& stage) const try {
  auto heap = open_mapped_heap(path_, false, stage.memory_name());
  if (!heap) return heap.status();
  const auto [first, count] = heap->find_no_lock<MappedList>(kLists);
  return run_on(stage, std::span<const MappedList>(first, count));
} catch (const MappedHeapError& error) {
  return Error{EIO, path_ + ": " + error.what()};
}

Status KmerHeap::run_own(Stage& stage) const {
  auto& extra = stage.result().extra;
  const uint64_t start_ns = now_ns();
  auto heap = OwnHeap(stage.runtime(), stage.memory_name(), options_).open_read_only(heap_uri());
  if (!heap) return heap.status();
  const auto found = heap->find_array<OutcoreList>(kLists);
  if (!found) return found.status();
  extra["open_seconds"] = seconds_since(start_ns);
  if (Status s = run_on(stage, std::span<const OutcoreList>(found.value())); !s) return s;
  extra["heap_bytes"] = heap->info().in_use_bytes;
  return heap->close();
}

Status KmerHeap::run(Stage& stage) {
  if (Status s = stage.settle(); !s) return s;
  const std::string& memory = stage.memory_name();
  const Status s = memory == "malloc" ? run_plain(stage)
                   : is_own(memory)   ? run_own(stage)
                                      : run_mapped(stage);
  return s.ok() ? stage.finish(static_cast<double>(reads_), "reads/s") : s;
}

Status KmerHeap::check(const RunResult& result) {
  if (result.is_stopped) return {};
  return check_sample(result, reads_, data_.genomes().tellable_share(), data_.header().answers);
}

}  // namespace

std::unique_ptr<Workload> make_kmers_in_heap(const Options& options) {
  return std::make_unique<KmerHeap>(options);
}

}  // namespace outcore::bench
