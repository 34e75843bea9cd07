#include "checkpoints/pool/chunk_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::versioned {
namespace {

constexpr uint32_t kWriteStretchMax = 32;  // chunks that the fault path writes at a time

}  // namespace

// A free block may have no space, while others have some that are not the next to be taken.
int ChunkWriter::write_data(uint64_t offset, std::span<const std::byte> from) {
  const int error = pool_.data->write(offset, from);
  if (!is_disk_full(error)) return error;
  pool_.heap->give_back_groups();
  return pool_.data->write(offset, from);
}

int ChunkWriter::publish(Object& object, uint64_t chunk, uint32_t block, uint64_t sum) {
  OC_ASSERT(block != UINT32_MAX);
  if (object.is_removed()) return -ENOENT;
  const uint32_t now = pool_.interval.load(std::memory_order_relaxed);
  const uint32_t free_from = pool_.free_from.load(std::memory_order_relaxed);
  const Entry old = object.map().get(chunk);
  OC_ASSERT(old.block == 0 || old.birth <= now);
  if (old.block == 0 && block == 0) return 0;
  OC_CHECK(old.block != block);
  if (block != 0 && chunk * pool_.chunk_bytes >= object.size_bytes()) return -ENXIO;
  if (old.block != 0 && old.birth < free_from)
    if (const int error = pool_.heap->bury({old.block, old.birth, now}); error != 0) return error;
  object.map().set(chunk, block == 0 ? Entry{} : Entry{block, now, sum});
  object.map().mark_changed(chunk);
  // No commit contains it, so it can be freed at once.
  if (old.block != 0 && old.birth >= free_from) pool_.heap->free(old.block);
  return 0;
}

// Writes neighbouring whole chunks from contiguous memory. REQUIRES: 0 < count <= kWriteStretchMax.
int ChunkWriter::write_stretch(Object& object, uint64_t chunk, uint32_t count,
                               const std::byte* from) {
  OC_CHECK(count != 0 && count <= kWriteStretchMax);
  uint32_t blocks[kWriteStretchMax];
  uint64_t sums[kWriteStretchMax];
  int error = 0;
  uint32_t got = 0;
  while (got < count && error == 0) {
    const Run run = pool_.heap->allocate(count - got, error);
    for (uint32_t i = 0; i < run.count; ++i) blocks[got + i] = run.first + i;
    if (run.count > 0)
      error = write_data(
          uint64_t{run.first} * pool_.chunk_bytes,
          {from + size_t{got} * pool_.chunk_bytes, size_t{run.count} * pool_.chunk_bytes});
    got += run.count;
  }
  OC_CHECK(got <= count);
  for (uint32_t i = 0; i < count && error == 0; ++i) {
    sums[i] = checksum_of({from + size_t{i} * pool_.chunk_bytes, pool_.chunk_bytes});
    error = object.map().prepare(chunk + i);
  }
  uint32_t done = 0;
  if (error == 0) {
    const os::SignalBlock block;
    const os::Passing passing(pool_.gate);
    while (done < count && error == 0) {
      error = publish(object, chunk + done, blocks[done], sums[done]);
      if (error == 0) ++done;
    }
  }
  for (uint32_t i = done; i < got; ++i) pool_.heap->free(blocks[i]);
  return error;
}

int ChunkWriter::patch_chunk(Object& object, uint64_t chunk, std::span<const Patch> patches) {
  OC_ASSERT(std::all_of(patches.begin(), patches.end(), [&](const Patch& p) {
    return p.skipped + p.size_bytes <= pool_.chunk_bytes;
  }));
  const os::SignalBlock block;
  const os::Locked locked(stripes_[(chunk ^ object.id() * uint64_t{37}) % stripes_.size()]);
  const bool is_zero = std::all_of(patches.begin(), patches.end(),
                                   [](const Patch& p) { return p.bytes == nullptr; });
  if (is_zero && object.map().get(chunk).block == 0) return 0;
  // The range is all that the object has of the chunk. The object may have grown meanwhile.
  const uint64_t begin = chunk * pool_.chunk_bytes;
  if (is_zero && patches.size() == 1 && patches[0].skipped == 0 &&
      begin + patches[0].size_bytes >= object.size_bytes()) {
    const os::Passing passing(pool_.gate);
    return publish(object, chunk, 0, 0);
  }
  const ChunkBuffer buffer(pool_.reader->buffers());
  const std::span<std::byte> bytes = buffer.bytes();
  OC_ASSERT(bytes.size() == pool_.chunk_bytes);
  int error = pool_.reader->read_chunk(object.map(), object.name().c_str(), chunk, bytes);
  if (error != 0) return error;
  for (const Patch& patch : patches)
    if (patch.bytes == nullptr)
      std::memset(bytes.data() + patch.skipped, 0, patch.size_bytes);
    else
      std::memcpy(bytes.data() + patch.skipped, patch.bytes, patch.size_bytes);
  return write_stretch(object, chunk, 1, bytes.data());
}

int ChunkWriter::write(Object& object, uint64_t offset, std::span<const std::byte> from) {
  while (!from.empty()) {
    const uint64_t chunk = offset / pool_.chunk_bytes;
    const uint64_t skipped = offset % pool_.chunk_bytes;
    size_t size = from.size();
    int error = 0;
    if (skipped == 0 && size >= pool_.chunk_bytes) {
      const auto count =
          static_cast<uint32_t>(std::min<uint64_t>(size / pool_.chunk_bytes, kWriteStretchMax));
      size = size_t{count} * pool_.chunk_bytes;
      error = write_stretch(object, chunk, count, from.data());
    } else {
      size = std::min<size_t>(size, pool_.chunk_bytes - skipped);
      const Patch patch{skipped, from.data(), size};
      error = patch_chunk(object, chunk, {&patch, 1});
    }
    if (error != 0) return error;
    offset += size;
    from = from.subspan(size);
  }
  return 0;
}

int ChunkWriter::discard(Object& object, uint64_t offset, uint64_t size_bytes) {
  const uint64_t end = offset + size_bytes;
  const uint64_t first = base::round_up(offset, pool_.chunk_bytes) / pool_.chunk_bytes;
  const uint64_t last = end / pool_.chunk_bytes;
  int error = 0;
  if (first > last || (first == last && first * pool_.chunk_bytes >= end)) {  // within one chunk
    const Patch patch{offset % pool_.chunk_bytes, nullptr, size_bytes};
    return size_bytes == 0 ? 0 : patch_chunk(object, offset / pool_.chunk_bytes, {&patch, 1});
  }
  if (first * pool_.chunk_bytes > offset) {
    const Patch patch{offset % pool_.chunk_bytes, nullptr, first * pool_.chunk_bytes - offset};
    error = patch_chunk(object, first - 1, {&patch, 1});
  }
  if (error == 0 && last * pool_.chunk_bytes < end) {
    const Patch patch{0, nullptr, end - last * pool_.chunk_bytes};
    error = patch_chunk(object, last, {&patch, 1});
  }
  object.map().for_each(first, last, [&](uint64_t chunk, Entry) {
    if (error != 0) return;
    const os::SignalBlock block;
    const os::Passing passing(pool_.gate);
    error = publish(object, chunk, 0, 0);
  });
  return error;
}

int ChunkWriter::kill_all(Object& object) {
  OC_ASSERT(pool_.gate.is_closed());
  const uint32_t now = pool_.interval.load(), free_from = pool_.free_from.load();
  int error = 0;
  // This comes first: readers look at it again when they have read.
  object.mark_removed();
  object.map().for_each(0, UINT64_MAX, [&](uint64_t chunk, Entry entry) {
    if (error != 0) return;
    OC_ASSERT(entry.birth <= now);
    if (entry.birth >= free_from)
      pool_.heap->free(entry.block);
    else
      error = pool_.heap->bury({entry.block, entry.birth, now});
    if (error == 0) object.map().set(chunk, Entry{});
  });
  return error;
}

}  // namespace outcore::versioned
