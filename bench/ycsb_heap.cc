#include "bench/ycsb_heap.h"

#include <unistd.h>

#include <boost/container/set.hpp>
#include <boost/unordered_map.hpp>
#include <cerrno>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/checkpoints.h"
#include "bench/clock.h"
#include "bench/heap_table.h"
#include "bench/mapped_heap.h"
#include "bench/medium.h"
#include "bench/own_heap.h"
#include "bench/ycsb_run.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

// In Outcore's heap. Entries of a hash_map move when it grows, and half of its room is empty then:
// they point to the records.
struct OutcoreRecords {
  struct alignas(sizeof(Record)) Row {  // on one page
    Record record;
  };
  using Map = persistent::hash_map<uint64_t, PersistentPointer<Row>>;
  using Order = persistent::set<uint64_t>;
  static Record& record_of(const PersistentPointer<Row>& row) { return row->record; }
  static bool insert(Map& map, uint64_t key) {
    if (map.contains(key)) return false;
    const PersistentPointer<Row> row = PersistentAllocator<Row>(map.get_allocator()).allocate(1);
    row->record.write(key, 0);
    return map.try_emplace(key, row).second;
  }
};

using MappedRecords = InlineRecords<
    boost::unordered_map<uint64_t, Record, boost::hash<uint64_t>, std::equal_to<uint64_t>,
                         InMappedHeap<std::pair<const uint64_t, Record>>>,
    boost::container::set<uint64_t, std::less<uint64_t>, InMappedHeap<uint64_t>>>;

class YcsbHeap : public Workload {
 public:
  explicit YcsbHeap(const Options& options) : options_(options), plan_(options) {}

  uint64_t data_bytes() const override { return options_.size_bytes; }
  uint64_t mapped_bytes() const override { return segment_bytes(); }
  const std::string& uri() const override { return path_; }
  bool takes(const std::string& memory) const override { return has_object_heap(memory); }
  Status prepare() override { return {}; }
  Status prepare_for(const std::string& memory) override;
  void forget() override { bench::forget(path_); }
  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  bool has_scans() const { return plan_.mix.scan_percent != 0; }
  // Room for the records of --size, a sixth more for nodes, tables and sets, and what the library
  // needs itself.
  uint64_t segment_bytes() const { return options_.size_bytes / 4 * 5 + (uint64_t{4} << 20); }
  std::string heap_uri() const { return "file:" + path_; }
  bool is_own(const std::string& memory) const { return has_own_heap(options_, memory); }

  Status make_own(const std::string& memory) const;
  Status make_mapped() const;
  template <typename Records>
  Status load(const HeapParts<Records>& parts) const;
  Status run_plain(Stage& stage, YcsbRun& run);
  Status run_mapped(Stage& stage, YcsbRun& run);
  Status run_own(Stage& stage, YcsbRun& run);
  template <typename Records>
  Status run_on(Stage& stage, YcsbRun& run, const HeapParts<Records>& parts) const;
  template <typename Records>
  Status audit(const RunResult& result, const HeapParts<Records>& parts) const;
  Status finish(Stage& stage) const {
    return stage.finish(static_cast<double>(plan_.operations), "operations/s");
  }

  Options options_;
  YcsbPlan plan_;
  std::optional<OwnFolder> folder_;  // of the parent
  std::string path_;                 // of the table
};

// The parts of a heap that is open.
Result<HeapParts<OutcoreRecords>> parts_in(const PersistentHeap& heap, bool has_scans) {
  const auto maps = heap.find_array<OutcoreRecords::Map>("maps");
  if (!maps) return maps.error();
  HeapParts<OutcoreRecords> parts{maps.value(), {}};
  if (!has_scans) return parts;
  const auto orders = heap.find_array<OutcoreRecords::Order>("orders");
  if (!orders) return orders.error();
  parts.orders = orders.value();
  return parts;
}

HeapParts<MappedRecords> parts_in(MappedHeap& file, bool has_scans) {
  const auto [maps, count] = file.find<MappedRecords::Map>("maps");
  HeapParts<MappedRecords> parts{{maps, count}, {}};
  if (!has_scans) return parts;
  const auto [orders, order_count] = file.find<MappedRecords::Order>("orders");
  parts.orders = {orders, order_count};
  return parts;
}

Status YcsbHeap::prepare_for(const std::string& memory) {
  if (!folder_) {
    auto folder = OwnFolder::make(options_.dir);
    if (!folder) return folder.error();
    folder_.emplace(std::move(folder).value());
    path_ = folder_->path() + "/table";
  }
  ::unlink(path_.c_str());            // of the run before
  if (memory == "malloc") return {};  // what is not in a file is made by the run itself
  // By a process of its own, which an interrupt ends: the parent forks, and has no runtime.
  return in_child(
      [&](const SeeFigure&) { return is_own(memory) ? make_own(memory) : make_mapped(); }, {});
}

template <typename Records>
Status YcsbHeap::load(const HeapParts<Records>& parts) const {
  const Status s = HeapTable<Records>(parts).load(options_.seed, plan_.loaded);
  return s.ok() ? s : Status(Error{s.code(), "make the table " + path_ + ": " + s.message()});
}

Status YcsbHeap::make_own(const std::string& memory) const {
  const auto own = OwnHeap::alone(memory, options_);
  if (!own) return own.status();
  auto heap = own->create(heap_uri());
  if (!heap) return heap.status();
  constexpr uint64_t kParts = HeapParts<OutcoreRecords>::kCount;
  if (const auto maps = heap->construct_array<OutcoreRecords::Map>("maps", kParts); !maps)
    return maps.status();
  if (has_scans())
    if (const auto made = heap->construct_array<OutcoreRecords::Order>("orders", kParts); !made)
      return made.status();
  const auto parts = parts_in(*heap, has_scans());
  if (!parts) return parts.status();
  if (Status s = load(parts.value()); !s) return s;
  return heap->close();
}

Status YcsbHeap::make_mapped() const try {
  auto heap = make_mapped_heap(path_, segment_bytes());
  if (!heap) return heap.status();
  constexpr uint64_t kParts = HeapParts<MappedRecords>::kCount;
  auto* const manager = heap->get_segment_manager();
  heap->construct<MappedRecords::Map>("maps")[kParts](MappedRecords::Map::allocator_type(manager));
  if (has_scans())
    heap->construct<MappedRecords::Order>("orders")[kParts](
        MappedRecords::Order::allocator_type(manager));
  if (Status s = load(parts_in(*heap, has_scans())); !s) return s;
  return flush_mapped_heap(*heap, path_);
} catch (const MappedHeapError& error) {
  return Error{EIO, path_ + ": " + error.what()};
}

template <typename Records>
Status YcsbHeap::run_on(Stage& stage, YcsbRun& run, const HeapParts<Records>& parts) const {
  HeapTable<Records> table(parts);
  if (options_.is_warm) (void)table.audit(options_.seed, plan_.loaded);
  if (Status s = run.run(stage, table); !s) return s;
  return table.failure();
}

template <typename Records>
Status YcsbHeap::audit(const RunResult& result, const HeapParts<Records>& parts) const {
  const HeapTable<Records> table(parts);
  return YcsbRun::check_table(result, table.audit(options_.seed, YcsbRun::records_of(result)));
}

Status YcsbHeap::run_plain(Stage& stage, YcsbRun& run) {
  std::vector<PlainRecords::Map> maps(HeapParts<PlainRecords>::kCount);
  std::vector<PlainRecords::Order> orders(has_scans() ? maps.size() : 0);
  const HeapParts<PlainRecords> parts{maps, orders};
  if (Status s = load(parts); !s) return s;
  if (Status s = run_on(stage, run, parts); !s) return s;
  if (Status s = finish(stage); !s) return s;
  return audit(stage.result(), parts);
}

Status YcsbHeap::run_mapped(Stage& stage, YcsbRun& run) try {
  {
    auto heap = open_mapped_heap(path_, true, stage.memory_name());
    if (!heap) return heap.status();
    if (Status s = run_on(stage, run, parts_in(*heap, has_scans())); !s) return s;
    const uint64_t start_ns = now_ns();
    if (Status s = flush_mapped_heap(*heap, path_); !s) return s;
    stage.result().extra["close_seconds"] = seconds_since(start_ns);
  }
  if (Status s = finish(stage); !s) return s;
  // Records are looked up one by one, in no order: readahead would take ten times as long.
  auto again = open_mapped_heap(path_, true, "mmap-random");
  return again ? audit(stage.result(), parts_in(*again, has_scans())) : again.status();
} catch (const MappedHeapError& error) {
  return Error{EIO, path_ + ": " + error.what()};
}

Status YcsbHeap::run_own(Stage& stage, YcsbRun& run) {
  auto& extra = stage.result().extra;
  uint64_t start_ns = now_ns();
  auto heap = OwnHeap(stage.runtime(), stage.memory_name(), options_).open(heap_uri());
  if (!heap) return heap.status();
  const auto parts = parts_in(*heap, has_scans());
  if (!parts) return parts.status();
  extra["open_seconds"] = seconds_since(start_ns);
  if (Status s = run_on(stage, run, parts.value()); !s) return s;
  extra["heap_bytes"] = heap->info().in_use_bytes;
  start_ns = now_ns();
  if (Status s = heap->close(); !s) return s;
  extra["close_seconds"] = seconds_since(start_ns);
  if (Status s = finish(stage); !s) return s;
  // As below: without the kernel's readahead.
  const std::string memory = is_outcore(stage.memory_name()) ? stage.memory_name() : "mmap-random";
  auto again = OwnHeap(stage.runtime(), memory, options_).open_read_only(heap_uri());
  if (!again) return again.status();
  const auto found = parts_in(*again, has_scans());
  return found ? audit(stage.result(), found.value()) : found.status();
}

Status YcsbHeap::run(Stage& stage) {
  YcsbRun run(options_);
  if (Status s = stage.settle(); !s) return s;
  const std::string& memory = stage.memory_name();
  if (memory == "malloc") return run_plain(stage, run);
  return is_own(memory) ? run_own(stage, run) : run_mapped(stage, run);
}

Status YcsbHeap::check(const RunResult& result) {
  ::unlink(path_.c_str());
  return result.is_stopped ? Status() : YcsbRun::check_answers(result);
}

}  // namespace

std::unique_ptr<Workload> make_ycsb_in_heap(const Options& options) {
  return std::make_unique<YcsbHeap>(options);
}

}  // namespace outcore::bench
