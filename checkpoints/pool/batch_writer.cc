#include "checkpoints/pool/batch_writer.h"

#include <algorithm>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::versioned {
namespace {

constexpr size_t kWholesMax = 1024;       // chunks that are written at a time
constexpr size_t kBufferBytes = 4 << 20;  // a multiple of the largest chunk
constexpr size_t kTransferBytesMax = 1 << 20;
static_assert(kBufferBytes % kChunkBytesMax == 0 && kBufferBytes >= 2 * kChunkBytesMax);

struct Memory {
  MappedArray<std::byte> bytes;
  bool has = bytes.reserve(kBufferBytes);
};

// A buffer that the thread keeps. The memory comes from the kernel, and only parts that were used
// take any. What is asked for when the thread's objects have been destroyed, by other destructors,
// stays. nullptr: no memory.
std::byte* buffer_of_this_thread() {
  static thread_local constinit bool has_ended = false;
  static thread_local constinit Memory* late = nullptr;
  struct UntilTheEnd : Memory {
    ~UntilTheEnd() { has_ended = true; }
  };
  if (has_ended) {
    if (late == nullptr) late = new (std::nothrow) Memory;
    return late != nullptr && late->has ? late->bytes.begin() : nullptr;
  }
  static thread_local UntilTheEnd memory;
  return memory.has ? memory.bytes.begin() : nullptr;
}

}  // namespace

void BatchWriter::set_result(size_t first_part, size_t end_part, int error) {
  OC_CHECK(first_part <= end_part && end_part <= parts_.size());
  for (size_t i = first_part; i < end_part; ++i)
    if (int& result = batch_[parts_[i].request].result; result == 0) result = error;
}

void BatchWriter::cut(std::span<StoreRequest> batch) {
  const uint64_t chunk_bytes = pool_.chunk_bytes;
  for (uint32_t r = 0; r < batch.size(); ++r) {
    StoreRequest& request = batch[r];
    if (!request.is_write) continue;
    request.result = 0;
    for (size_t done = 0; done < request.size_bytes;) {
      const uint64_t offset = request.offset + done;
      const uint64_t skipped = offset % chunk_bytes;
      const size_t size = std::min<size_t>(request.size_bytes - done, chunk_bytes - skipped);
      parts_.push_back({offset / chunk_bytes, skipped, request.bytes + done, size, r});
      done += size;
    }
  }
  const auto comes_before = [](const Part& a, const Part& b) {
    return a.chunk != b.chunk ? a.chunk < b.chunk : a.skipped < b.skipped;
  };
  if (!std::is_sorted(parts_.begin(), parts_.end(), comes_before))
    std::sort(parts_.begin(), parts_.end(), comes_before);
}

// Handles the parts of one chunk: if together they cover it, it is written with others; otherwise
// alone.
void BatchWriter::add_chunk(size_t first_part, size_t end_part) {
  OC_CHECK(first_part < end_part && end_part <= parts_.size());
  const uint64_t chunk_bytes = pool_.chunk_bytes;
  const Part& first = parts_[first_part];
  if (first.size_bytes == chunk_bytes) {
    wholes_.push_back({first.chunk, first.bytes, first_part, end_part});
    return;
  }
  // How far the parts cover the chunk without a gap; they ascend, and may overlap. The last chunk
  // of the object counts as not covered: the object may grow meanwhile, and others write there.
  uint64_t covered = 0;
  for (size_t i = first_part; i < end_part && parts_[i].skipped <= covered; ++i)
    covered = std::max(covered, parts_[i].skipped + parts_[i].size_bytes);
  if (covered == chunk_bytes) {
    if (gathered_bytes_ + chunk_bytes > kBufferBytes / 2) flush();
    std::byte* const buffer = buffer_of_this_thread();
    if (buffer == nullptr) return set_result(first_part, end_part, -ENOMEM);
    std::byte* const into = buffer + gathered_bytes_;
    gathered_bytes_ += chunk_bytes;
    OC_CHECK(gathered_bytes_ <= kBufferBytes);
    std::memset(into, 0, chunk_bytes);
    for (size_t i = first_part; i < end_part; ++i)
      std::memcpy(into + parts_[i].skipped, parts_[i].bytes, parts_[i].size_bytes);
    wholes_.push_back({first.chunk, into, first_part, end_part});
    return;
  }
  std::vector<ChunkWriter::Patch> patches;
  for (size_t i = first_part; i < end_part; ++i)
    patches.push_back({parts_[i].skipped, parts_[i].bytes, parts_[i].size_bytes});
  set_result(first_part, end_part, writer_.patch_chunk(object_, first.chunk, patches));
}

void BatchWriter::write(std::span<StoreRequest> batch) {
  batch_ = batch;
  cut(batch);
  for (size_t first = 0; first < parts_.size();) {
    size_t end = first + 1;
    while (end < parts_.size() && parts_[end].chunk == parts_[first].chunk) ++end;
    add_chunk(first, end);
    if (wholes_.size() == kWholesMax) flush();
    first = end;
  }
  flush();
}

// Allocates a block for each chunk, or for as many as possible. 0, or the error for the others.
int BatchWriter::allocate() {
  int error = 0;
  for (const Whole& whole : wholes_)
    if (error == 0) error = object_.map().prepare(whole.chunk);
  for (size_t i = 0; i < wholes_.size() && error == 0;) {
    const Run run = pool_.heap->allocate(static_cast<uint32_t>(wholes_.size() - i), error);
    OC_CHECK(run.count <= wholes_.size() - i);
    for (uint32_t n = 0; n < run.count; ++n) wholes_[i++].block = run.first + n;
  }
  return error;
}

// Makes transfers of the chunks that have got blocks.
void BatchWriter::join() {
  const size_t chunk_bytes = pool_.chunk_bytes;
  std::byte* const buffer = buffer_of_this_thread();
  transfers_.clear();
  for (size_t i = 0; i < wholes_.size() && wholes_[i].block != 0;) {
    size_t end = i + 1;
    bool is_one_piece = true;
    const auto fits = [&](size_t next) {
      return next < wholes_.size() && wholes_[next].block == wholes_[next - 1].block + 1 &&
             (next - i) * chunk_bytes < kTransferBytesMax;
    };
    for (; fits(end); ++end) {
      const bool is_next = wholes_[end].bytes == wholes_[end - 1].bytes + chunk_bytes;
      const size_t bytes = (end - i + 1) * chunk_bytes;
      if (!is_next && (buffer == nullptr || gathered_bytes_ + bytes > kBufferBytes)) break;
      is_one_piece = is_one_piece && is_next;
      if (!is_one_piece && gathered_bytes_ + bytes > kBufferBytes) break;
    }
    const std::byte* from = wholes_[i].bytes;
    if (!is_one_piece) {
      OC_CHECK(buffer != nullptr);
      std::byte* const into = buffer + gathered_bytes_;
      for (size_t n = i; n < end; ++n)
        std::memcpy(into + (n - i) * chunk_bytes, wholes_[n].bytes, chunk_bytes);
      gathered_bytes_ += (end - i) * chunk_bytes;
      OC_CHECK(gathered_bytes_ <= kBufferBytes);
      from = into;
    }
    for (size_t n = i; n < end; ++n) wholes_[n].transfer = static_cast<uint32_t>(transfers_.size());
    transfers_.push_back({uint64_t{wholes_[i].block} * chunk_bytes, const_cast<std::byte*>(from),
                          (end - i) * chunk_bytes, true, 0});
    i = end;
  }
}

void BatchWriter::publish() {
  constexpr size_t kAtATime = 32;
  for (size_t i = 0; i < wholes_.size();) {
    const size_t end = std::min(i + kAtATime, wholes_.size());
    const os::SignalBlock block;
    const os::Passing passing(pool_.gate);
    for (; i < end; ++i) {
      Whole& whole = wholes_[i];
      if (whole.block == 0) continue;
      OC_CHECK(whole.transfer < transfers_.size());
      int error = transfers_[whole.transfer].result;
      if (error == 0) error = writer_.publish(object_, whole.chunk, whole.block, whole.sum);
      if (error == 0) continue;
      pool_.heap->free(whole.block);
      set_result(whole.first_part, whole.end_part, error);
    }
  }
}

void BatchWriter::flush() {
  if (!wholes_.empty()) {
    const int error = allocate();
    for (Whole& whole : wholes_)
      if (whole.block == 0)
        set_result(whole.first_part, whole.end_part, error);
      else
        whole.sum = checksum_of({whole.bytes, pool_.chunk_bytes});
    join();
    if (!transfers_.empty()) pool_.data->transfer(transfers_);
    for (StoreRequest& r : transfers_)
      if (is_disk_full(r.result)) r.result = writer_.write_data(r.offset, {r.bytes, r.size_bytes});
    publish();
  }
  wholes_.clear();
  gathered_bytes_ = 0;
}

}  // namespace outcore::versioned
