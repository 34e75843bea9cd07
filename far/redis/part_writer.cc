#include "far/redis/part_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/clock.h"
#include "core/base/units.h"
#include "core/os/wait.h"

namespace outcore::redis {

bool PartWriter::Slot::is_zeroed() const {
  return std::all_of(parts.begin(), parts.end(),
                     [](const ChunkRequest* r) { return r->act == Act::kZero; });
}

uint64_t PartWriter::Slot::covered_bytes() const {
  uint64_t sum = 0;
  for (const ChunkRequest* const r : parts) sum += r->size_bytes;
  return sum;
}

PartWriter::PartWriter(Chunks& chunks, std::shared_ptr<const packing::Packer> packer,
                       uint64_t timeout_ns, IsUntouched is_untouched)
    : chunks_(chunks),
      packer_(std::move(packer)),
      timeout_ns_(timeout_ns),
      is_untouched_(std::move(is_untouched)),
      work_bytes_(base::round_up(packer_->pack_space_bytes(), SpacePool::kAlignment)),
      slot_bytes_(packer_->chunk_bytes() + packer_->value_bytes_max()),
      slot_count_(std::clamp<size_t>(kRoundBytes / packer_->chunk_bytes(), 2, kSlotsMax)),
      spaces_(kSpaces, work_bytes_ + slot_count_ * slot_bytes_) {}

// Works in rounds: as many chunks as there are slots, of those whose locks are free.
void PartWriter::run(std::span<ChunkRequest> batch) {
  OC_CHECK(batch.size() <= Chunks::kBatchMax);
  if (batch.empty()) return;
  const uint64_t deadline_ns = base::now_ns() + timeout_ns_;
  Space space(&spaces_);
  std::byte* const work = space.get(deadline_ns);
  ChunkRequest* sorted[Chunks::kBatchMax];
  for (size_t i = 0; i < batch.size(); ++i) {
    OC_ASSERT(batch[i].act == Act::kWrite || batch[i].act == Act::kZero);
    OC_ASSERT(uint64_t{batch[i].offset} + batch[i].size_bytes <= packer_->chunk_bytes());
    sorted[i] = &batch[i];
    batch[i].is_done = work == nullptr;
    batch[i].result = work == nullptr ? -ETIMEDOUT : 0;
  }
  if (work == nullptr) return;
  std::sort(sorted, sorted + batch.size(),
            [](const ChunkRequest* a, const ChunkRequest* b) { return a->at < b->at; });
  Slot slots[kSlotsMax];
  for (size_t i = 0; i < slot_count_; ++i) {
    slots[i].chunk = work + work_bytes_ + i * slot_bytes_;
    slots[i].value = slots[i].chunk + packer_->chunk_bytes();
  }
  const std::span<Slot> usable(slots, slot_count_);
  while (const size_t count = begin_round({sorted, batch.size()}, usable, deadline_ns)) {
    const std::span<Slot> round = usable.first(count);
    carry_out(round, false);
    for (Slot& slot : round) change(slot, work);
    carry_out(round, true);
    for (Slot& slot : round) end(slot);
  }
}

// Returns how many slots have work. 0: everything is done.
size_t PartWriter::begin_round(Parts sorted, std::span<Slot> slots, uint64_t deadline_ns) {
  size_t count = 0;
  for (size_t i = 0; i < sorted.size() && count < slots.size();) {
    size_t next = i + 1;
    while (next < sorted.size() && sorted[next]->at == sorted[i]->at) ++next;
    Slot& slot = slots[count];
    slot.parts = sorted.subspan(i, next - i);
    i = next;
    if (slot.parts.front()->is_done || !lock(slot, slots.first(count), deadline_ns)) continue;
    begin(slot);
    ++count;
  }
  return count;
}

// A thread that has a lock does not wait for another one.
bool PartWriter::lock(Slot& slot, std::span<const Slot> before, uint64_t deadline_ns) {
  Holder& wanted = lock_of(slot.number());
  slot.has_lock = false;
  for (const Slot& other : before)
    if (&lock_of(other.number()) == &wanted) return true;
  for (;;) {
    const uint32_t given = given_.load(std::memory_order_acquire);
    slot.has_lock = wanted.try_lock();
    if (slot.has_lock || !before.empty()) return slot.has_lock;
    if (base::now_ns() >= deadline_ns) break;
    os::wait(&given_, given, 20'000'000);
  }
  for (ChunkRequest* const r : slot.parts) {
    r->result = -ETIMEDOUT;
    r->is_done = true;
  }
  return false;
}

void PartWriter::begin(Slot& slot) {
  OC_ASSERT(!slot.parts.empty() && slot.covered_bytes() <= packer_->chunk_bytes());
  const bool is_whole = slot.covered_bytes() == packer_->chunk_bytes();
  const bool is_zeroed = slot.is_zeroed();
  const bool is_untouched = is_untouched_(slot.number(), !is_zeroed);
  slot.read = slot.write = {};
  slot.read.act = Act::kRead;
  slot.read.at = slot.write.at = slot.number();
  slot.read.bytes = slot.chunk;
  slot.read.size_bytes = slot.write.size_bytes = static_cast<uint32_t>(packer_->chunk_bytes());
  slot.is_read = !is_whole && !is_untouched;
  slot.is_written = !is_zeroed || (is_whole && !is_untouched);
  slot.write.act = is_zeroed ? Act::kZero : Act::kWrite;
  if (!is_whole && is_untouched) std::memset(slot.chunk, 0, packer_->chunk_bytes());
}

// Carries out all reads, or all writes, of a round.
void PartWriter::carry_out(std::span<Slot> slots, bool is_write) {
  OC_CHECK(slots.size() <= kSlotsMax);
  ChunkRequest batch[kSlotsMax];
  Slot* owner[kSlotsMax];
  size_t count = 0;
  for (Slot& slot : slots) {
    if (!(is_write ? slot.is_written : slot.is_read)) continue;
    owner[count] = &slot;
    batch[count++] = is_write ? slot.write : slot.read;
  }
  if (count == 0) return;
  chunks_.run({batch, count});
  for (size_t i = 0; i < count; ++i) (is_write ? owner[i]->write : owner[i]->read) = batch[i];
}

void PartWriter::change(Slot& slot, std::byte* work) {
  if (slot.is_read && slot.read.result != 0) {
    slot.is_written = false;
    return;
  }
  // Zeros are written only if there is a value.
  if (slot.is_read && slot.write.act == Act::kZero) {
    slot.is_written = !slot.read.is_absent;
    slot.write.act = Act::kWrite;
  }
  if (!slot.is_written || slot.write.act == Act::kZero) return;
  const bool is_one = slot.parts.size() == 1 && slot.covered_bytes() == packer_->chunk_bytes();
  const std::byte* const chunk = is_one ? slot.parts.front()->bytes : slot.chunk;
  for (const ChunkRequest* const r : slot.parts) {
    if (is_one) break;
    if (r->act == Act::kZero) std::memset(slot.chunk + r->offset, 0, r->size_bytes);
    if (r->act == Act::kWrite) std::memcpy(slot.chunk + r->offset, r->bytes, r->size_bytes);
  }
  slot.write.bytes = slot.value;
  slot.write.size_bytes =
      static_cast<uint32_t>(packer_->pack(slot.number(), chunk, work, slot.value));
  OC_CHECK(slot.write.size_bytes <= packer_->value_bytes_max());
}

void PartWriter::end(Slot& slot) {
  OC_ASSERT(slot.read.act == Act::kRead && slot.write.act != Act::kRead);
  const int result = slot.read.result != 0 ? slot.read.result : slot.write.result;
  for (ChunkRequest* const r : slot.parts) {
    r->result = result;
    r->is_done = true;
  }
  if (!slot.has_lock) return;
  lock_of(slot.number()).unlock();
  given_.fetch_add(1, std::memory_order_release);
  os::wake_all(&given_);
}

}  // namespace outcore::redis
