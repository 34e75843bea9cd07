#include "far/redis/chunks.h"

#include <algorithm>
#include <cerrno>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "far/redis/record.h"

namespace outcore::redis {

Chunks::Chunks(Servers& servers, Layout layout, uint32_t replicas, uint64_t timeout_ns,
               std::shared_ptr<const packing::Packer> packer, const std::string& member)
    : state_(servers, std::move(layout), replicas, timeout_ns, member),
      replies_(state_),
      packed_(state_, std::move(packer)),
      staged_(state_, replies_),
      commands_(state_, replies_, packed_, staged_),
      fence_check_(state_, replies_, commands_),
      exchange_(state_, packed_, commands_, fence_check_),
      combined_reads_(state_, exchange_),
      runner_(state_, exchange_, combined_reads_) {
  OC_CHECK(member.empty() || (member.size() == 16 && packed_.spaces() == nullptr));
}

Chunks::~Chunks() {
  if (is_standby_checked_) state_.servers.set_check(nullptr);
}

void Chunks::check_standby() {
  state_.servers.set_check(&fence_check_);
  is_standby_checked_ = true;
}

int Chunks::run_on_parts(Act act, std::vector<uint64_t>* numbers) {
  OC_ASSERT(is_of_part(act));
  std::vector<ChunkRequest> batch;
  numbers->clear();
  for (uint32_t part = 0; part < layout().part_count;) {
    batch.clear();
    for (; part < layout().part_count && batch.size() < kBatchMax; ++part) {
      batch.emplace_back();
      batch.back().act = act;
      batch.back().at = part;
    }
    run(batch);
    for (const ChunkRequest& r : batch) {
      if (r.result != 0) return r.result;
      numbers->push_back(r.number);
    }
  }
  OC_CHECK(numbers->size() == layout().part_count);
  return 0;
}

int Chunks::take_fences(uint64_t token, bool is_new, bool* is_untouched) {
  state_.token.store(token);
  state_.is_new.store(is_new);
  std::vector<uint64_t> seqs;
  if (const int result = run_on_parts(Act::kFence, &seqs); result != 0) return result;
  *is_untouched = std::all_of(seqs.begin(), seqs.end(), [](uint64_t seq) { return seq == 1; });
  state_.fences.note_exist();
  return 0;
}

int Chunks::check_fences() {
  std::vector<uint64_t> seqs;
  if (const int result = run_on_parts(Act::kSeq, &seqs); result != 0) return result;
  for (uint32_t part = 0; part < layout().part_count; ++part)
    state_.fences.set_seen(part, seqs[part]);
  state_.fences.note_exist();
  return 0;
}

int Chunks::sum_changes(uint64_t token, uint64_t* sum) {
  *sum = 0;
  std::vector<uint64_t> tokens, seqs;
  if (const int result = run_on_parts(Act::kToken, &tokens); result != 0) return result;
  if (const int result = run_on_parts(Act::kSeq, &seqs); result != 0) return result;
  const bool are_its =
      std::all_of(tokens.begin(), tokens.end(), [token](uint64_t other) { return other == token; });
  if (are_its) *sum = XXH3_64bits(seqs.data(), seqs.size() * sizeof(uint64_t)) | 1;
  return 0;
}

// Counts the chunks, so that removal need not ask for each possible one. UINT64_MAX: a fence is
// gone, so the number is unknown.
uint64_t Chunks::count_all() {
  std::vector<uint64_t> counts;
  if (run_on_parts(Act::kSeq, &counts) != 0 || run_on_parts(Act::kCount, &counts) != 0)
    return UINT64_MAX;
  uint64_t sum = 0;
  for (const uint64_t count : counts)
    if (__builtin_add_overflow(sum, count, &sum)) return UINT64_MAX;
  return sum;
}

int Chunks::remove_all(uint64_t size_bytes) {
  const uint64_t chunk_count = (size_bytes + layout().chunk_bytes - 1) / layout().chunk_bytes;
  // The fences go first: a reader then finds out, and does not take deleted chunks for zeros.
  state_.fences.note_removal();
  uint64_t left = count_all();
  std::vector<uint64_t> numbers;
  if (const int result = run_on_parts(Act::kForget, &numbers); result != 0) return result;
  std::vector<ChunkRequest> batch;
  int first_error = 0;
  for (uint64_t chunk = 0; chunk < chunk_count && left > 0;) {
    batch.clear();
    for (; chunk < chunk_count && batch.size() < kBatchMax; ++chunk) {
      batch.emplace_back();
      batch.back().act = Act::kDrop;
      batch.back().at = chunk;
    }
    run(batch);
    for (const ChunkRequest& r : batch) {
      if (first_error == 0) first_error = r.result;
      left -= std::min(left, r.number);
    }
    if (first_error != 0) return first_error;
  }
  return 0;
}

Result<uint64_t> Chunks::stored_bytes() {
  std::vector<uint64_t> counts;
  const Act act = layout().is_packed ? Act::kBytes : Act::kCount;
  if (const int result = run_on_parts(act, &counts); result != 0)
    return base::system_error(result, "ask how much is stored: " + trouble());
  uint64_t sum = 0;
  for (const uint64_t count : counts)
    if (__builtin_add_overflow(sum, count, &sum)) sum = UINT64_MAX / 2;
  const uint64_t each = layout().is_packed ? 1 : layout().chunk_bytes;
  if (sum > kCountMax / each)
    return Error{EIO, "ask how much is stored: a fence is damaged: its count is too large"};
  return sum * each;
}

}  // namespace outcore::redis
