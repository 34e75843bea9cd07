#include "bench/stage.h"

#include <unistd.h>

#include <algorithm>

#include "bench/check.h"
#include "bench/clock.h"
#include "bench/medium.h"
#include "bench/reuse.h"
#include "cli/text.h"
#include "outcore/store_kind.h"

namespace outcore::bench {
namespace {

// What the clients of stores on servers take: buffers of Redis' connections, librbd and its
// threads.
uint64_t client_bytes(const std::string& store) {
  if (!is_remote(store)) return 0;
  const bool is_image = kind_of_scheme(store)->checkpoints == StoreKind::Checkpoints::kBySnapshots;
  return is_image ? uint64_t{32} << 20 : uint64_t{16} << 20;
}

}  // namespace

Stage::Stage(const Options& options, std::string memory_name, unsigned process, Board& board,
             const MemoryGroup& group, uint64_t memory_bytes)
    : options_(options),
      memory_name_(std::move(memory_name)),
      process_(process),
      board_(board),
      group_(group),
      memory_bytes_(memory_bytes) {}

uint64_t Stage::allowance_bytes(const Options& options, uint64_t memory_bytes) {
  const uint64_t page_tables = memory_bytes / 512;
  const uint64_t metadata = memory_bytes / 4096 * 16 + options.budget_bytes / 4096 * 64;
  // What each further process copies of the program's memory, and needs for threads and heap; and
  // what each member of a buffer has beside its pages (up to 2.8 MiB, if it writes).
  const uint64_t members = options.is_shared ? options.processes : 0;
  const uint64_t programs = (options.processes - 1 + 2 * members) << 20;
  const uint64_t stacks = uint64_t{options.threads} * options.processes * (uint64_t{48} << 10);
  const uint64_t slack =
      std::clamp(options.budget_bytes / 16, uint64_t{2} << 20, uint64_t{16} << 20);
  return page_tables + metadata + programs + stacks + slack + client_bytes(options.store);
}

// The buffers of `direct` are its own, but come only with the timed part.
uint64_t Stage::transfer_bytes() const {
  static constexpr uint64_t kTransferBytes = uint64_t{1} << 20;
  if (memory_name_ != "direct") return 0;
  return options_.threads * options_.depth * std::max(options_.page_bytes, kTransferBytes);
}

// What a record of the run takes beside the budget: its events, miniatures of policies, distances.
uint64_t Stage::record_bytes() const {
  static constexpr uint64_t kRecordBytes = uint64_t{32} << 20;
  return options_.has_reuse && is_outcore(memory_name_) ? kRecordBytes : 0;
}

// Waits until all processes of the run have come. They are few and soon here.
Status Stage::wait_for(const std::atomic<unsigned>& count) const {
  while (count.load() < options_.processes) {
    if (has_failed()) return cancelled();
    usleep(200);
  }
  return {};
}

Status Stage::settle() {
  BENCH_CHECK(process_ < options_.processes && memory_ == nullptr);
  if (board_.settled.fetch_add(1) + 1 == options_.processes) {
    const uint64_t own = group_.usage_bytes();
    const uint64_t limit = own + options_.budget_bytes + transfer_bytes() + record_bytes() +
                           allowance_bytes(options_, memory_bytes_);
    board_.own_bytes = own;
    if (group_.is_real()) {
      if (Status s = group_.limit(limit); !s) return s;
      board_.limit_bytes = limit;
    }
    board_.has_limit = true;
  }
  while (!board_.has_limit.load()) {
    if (has_failed()) return cancelled();
    usleep(200);
  }
  Result<std::unique_ptr<Memory>> memory = make_memory(memory_name_, options_);
  if (!memory) return memory.error();
  memory_ = std::move(memory).value();
  return {};
}

Result<std::span<std::byte>> Stage::map(const MapRequest& request) {
  BENCH_CHECK(memory_ != nullptr);
  MapRequest plain = request;
  // A file's parameters are Outcore's; the rivals open the path.
  if (const std::string path = plain_path(plain.uri); !is_outcore(memory_name_) && !path.empty())
    plain.uri = path;
  Result<std::span<std::byte>> bytes = memory_->map(plain);
  if (bytes) mapped_.push_back(bytes.value());
  return bytes;
}

void Stage::warm_up() const {
  for (const std::span<std::byte> bytes : mapped_)
    for (uint64_t at = 0; at < bytes.size(); at += kUnitBytes)
      (void)std::atomic_ref(bytes[at]).load(std::memory_order_relaxed);
}

Status Stage::start(uint64_t work_total) {
  BENCH_CHECK(memory_ != nullptr);
  if (options_.is_warm) warm_up();
  board_.total.fetch_add(work_total);
  board_.mapped.fetch_add(1);
  if (Status s = wait_for(board_.mapped); !s) return s;
  before_ = memory_->usage();
  if (Runtime* const runtime = memory_->runtime(); runtime != nullptr)
    pauses_.emplace([this, runtime] {
      const Counters c = runtime->metrics().counters;
      return board_.done.load() + c.fills + c.prefetch_fills + c.zero_fills + c.write_backs;
    });
  if (options_.has_reuse && memory_->runtime() != nullptr) {
    if (Status s = memory_->runtime()->start_recording(); !s) return s;
    is_recording_ = true;
  }
  start_ns_ = now_ns();
  uint64_t none = 0;
  board_.started_ns.compare_exchange_strong(none, start_ns_);
  return {};
}

void Stage::stop() {
  BENCH_CHECK(start_ns_ != 0);
  result_.seconds = seconds_since(start_ns_);
  if (pauses_) result_.extra["longest_pause_seconds"] = pauses_->stop();
  if (is_recording_) record_ = memory_->runtime()->stop_recording();
}

Status Stage::finish(double work, const char* unit) {
  BENCH_CHECK(memory_ != nullptr && work >= 0);
  if (record_ && !*record_) return record_->error();
  if (record_) result_.reuse = reuse_in(cli::Json::parse_or_null(record_->value()));
  const uint64_t flush_start_ns = now_ns();
  if (Status s = memory_->flush(); !s) return s;
  const double flush_seconds = seconds_since(flush_start_ns);
  const MemoryUsage after = memory_->usage();
  result_.work = work;
  result_.unit = unit;
  result_.page_bytes = memory_->page_bytes();
  // A workload that counts for itself (direct) has set fills.
  if (result_.fills == 0) result_.fills = after.fills - before_.fills;
  result_.read_bytes = after.read_bytes - before_.read_bytes;
  result_.written_bytes = after.written_bytes - before_.written_bytes;
  result_.extra.update(after.extra);
  result_.extra["major_faults"] = after.major_faults - before_.major_faults;
  result_.extra["minor_faults"] = after.minor_faults - before_.minor_faults;
  result_.extra["flush_seconds"] = flush_seconds;
  return memory_->close();
}

}  // namespace outcore::bench
