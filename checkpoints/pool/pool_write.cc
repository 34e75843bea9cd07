// How bytes get into a pool: into new blocks, which then replace the old ones in the map.
//
// A block is written before any map refers to it, and the map changes while the gate is passed,
// within a few instructions. So a commit waits for no transfer, and the blocks of a transfer that
// failed are free again.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "checkpoints/pool/pool.h"
#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::versioned {
namespace {

constexpr uint32_t kWriteStretchMax = 32;  // chunks that the fault path writes at a time

}  // namespace

// A rollback may make objects smaller while they are used.
bool Pool::is_inside(const Object& object, uint64_t offset, uint64_t size_bytes) {
  const uint64_t object_bytes = object.size_bytes();
  return offset <= object_bytes && size_bytes <= object_bytes - offset;
}

bool Pool::is_full(int error) { return error == -ENOSPC || error == -EDQUOT; }

// A free block may have no space, while others have some that are not the next to be taken.
int Pool::write_data(uint64_t offset, std::span<const std::byte> from) {
  const int error = data_->write(offset, from);
  if (!is_full(error)) return error;
  heap_->give_back_groups();
  return data_->write(offset, from);
}

void Pool::note(int error, const char* what, const Object& object) {
  char text[512];
  std::snprintf(text, sizeof text, "%s object %s in %s: %s%s", what, object.name().c_str(),
                folder_.c_str(), ::strerrordesc_np(-error),
                error == -ENOSPC ? ": remove checkpoints, or make space on the filesystem" : "");
  last_failure_.note(text);
}

int Pool::check_writable(const Object& object) {
  if (object.is_removed()) return -ENOENT;
  if (disk_->is_of_this_process()) return 0;
  last_failure_.note(
      "a forked child writes to a pool that is its parent's: open it in one of them");
  return -EPERM;
}

// REQUIRES: the caller is inside the gate, and map.prepare(chunk) succeeded. Block 0: a hole.
int Pool::publish(Object& object, uint64_t chunk, uint32_t block, uint64_t sum) {
  OC_ASSERT(block != UINT32_MAX);
  if (object.is_removed()) return -ENOENT;
  const uint32_t now = interval_.load(std::memory_order_relaxed);
  const uint32_t free_from = free_from_.load(std::memory_order_relaxed);
  const Entry old = object.map_->get(chunk);
  OC_ASSERT(old.block == 0 || old.birth <= now);
  if (old.block == 0 && block == 0) return 0;
  OC_CHECK(old.block != block);
  if (block != 0 && chunk * chunk_bytes_ >= object.size_bytes()) return -ENXIO;
  if (old.block != 0 && old.birth < free_from)
    if (const int error = heap_->bury({old.block, old.birth, now}); error != 0) return error;
  object.map_->set(chunk, block == 0 ? Entry{} : Entry{block, now, sum});
  object.map_->mark_changed(chunk);
  // No commit contains it, so it can be freed at once.
  if (old.block != 0 && old.birth >= free_from) heap_->free(old.block);
  return 0;
}

// Writes neighbouring whole chunks from contiguous memory. REQUIRES: 0 < count <= kWriteStretchMax.
int Pool::write_stretch(Object& object, uint64_t chunk, uint32_t count, const std::byte* from) {
  OC_CHECK(count != 0 && count <= kWriteStretchMax);
  uint32_t blocks[kWriteStretchMax];
  uint64_t sums[kWriteStretchMax];
  int error = 0;
  uint32_t got = 0;
  while (got < count && error == 0) {
    const Run run = heap_->allocate(count - got, error);
    for (uint32_t i = 0; i < run.count; ++i) blocks[got + i] = run.first + i;
    if (run.count > 0)
      error = write_data(uint64_t{run.first} * chunk_bytes_,
                         {from + size_t{got} * chunk_bytes_, size_t{run.count} * chunk_bytes_});
    got += run.count;
  }
  OC_CHECK(got <= count);
  for (uint32_t i = 0; i < count && error == 0; ++i) {
    sums[i] = checksum_of({from + size_t{i} * chunk_bytes_, chunk_bytes_});
    error = object.map_->prepare(chunk + i);
  }
  uint32_t done = 0;
  if (error == 0) {
    const os::SignalBlock block;
    const os::Passing passing(gate_);
    while (done < count && error == 0) {
      error = publish(object, chunk + done, blocks[done], sums[done]);
      if (error == 0) ++done;
    }
  }
  for (uint32_t i = done; i < got; ++i) heap_->free(blocks[i]);
  return error;
}

// Reads the chunk, applies the patches and writes it to a new block.
int Pool::patch_chunk(Object& object, uint64_t chunk, std::span<const Patch> patches) {
  OC_ASSERT(std::all_of(patches.begin(), patches.end(),
                        [&](const Patch& p) { return p.skipped + p.size_bytes <= chunk_bytes_; }));
  const os::SignalBlock block;
  const os::Locked locked(stripes_[(chunk ^ object.id() * uint64_t{37}) % stripes_.size()]);
  const bool is_zero = std::all_of(patches.begin(), patches.end(),
                                   [](const Patch& p) { return p.bytes == nullptr; });
  if (is_zero && object.map_->get(chunk).block == 0) return 0;
  // The range is all that the object has of the chunk. The object may have grown meanwhile.
  const uint64_t begin = chunk * chunk_bytes_;
  if (is_zero && patches.size() == 1 && patches[0].skipped == 0 &&
      begin + patches[0].size_bytes >= object.size_bytes()) {
    const os::Passing passing(gate_);
    return publish(object, chunk, 0, 0);
  }
  const ChunkBuffer buffer(reader_->buffers());
  const std::span<std::byte> bytes = buffer.bytes();
  OC_ASSERT(bytes.size() == chunk_bytes_);
  int error = reader_->read_chunk(*object.map_, object.name().c_str(), chunk, bytes);
  if (error != 0) return error;
  for (const Patch& patch : patches)
    if (patch.bytes == nullptr)
      std::memset(bytes.data() + patch.skipped, 0, patch.size_bytes);
    else
      std::memcpy(bytes.data() + patch.skipped, patch.bytes, patch.size_bytes);
  return write_stretch(object, chunk, 1, bytes.data());
}

int Pool::read(Object& object, uint64_t offset, std::span<std::byte> into) {
  if (object.is_removed()) return -ENOENT;
  if (!is_inside(object, offset, into.size())) return -ENXIO;
  const int error = reader_->read(*object.map_, object.name().c_str(), offset, into);
  return object.is_removed() ? -ENOENT : error;
}

int Pool::write(Object& object, uint64_t offset, std::span<const std::byte> from) {
  if (const int error = check_writable(object); error != 0) return error;
  if (!is_inside(object, offset, from.size())) return -ENXIO;
  while (!from.empty()) {
    const uint64_t chunk = offset / chunk_bytes_;
    const uint64_t skipped = offset % chunk_bytes_;
    size_t size = from.size();
    int error = 0;
    if (skipped == 0 && size >= chunk_bytes_) {
      const auto count =
          static_cast<uint32_t>(std::min<uint64_t>(size / chunk_bytes_, kWriteStretchMax));
      size = size_t{count} * chunk_bytes_;
      error = write_stretch(object, chunk, count, from.data());
    } else {
      size = std::min<size_t>(size, chunk_bytes_ - skipped);
      const Patch patch{skipped, from.data(), size};
      error = patch_chunk(object, chunk, {&patch, 1});
    }
    if (error != 0) {
      if (error != -EIO) note(error, "write", object);
      return error;
    }
    offset += size;
    from = from.subspan(size);
  }
  return 0;
}

int Pool::discard(Object& object, uint64_t offset, uint64_t size_bytes) {
  if (const int error = check_writable(object); error != 0) return error;
  if (!is_inside(object, offset, size_bytes)) return -ENXIO;
  const int error = discard_locked(object, offset, size_bytes);
  if (error != 0 && error != -EIO) note(error, "discard a part of", object);
  return error;
}

int Pool::discard_locked(Object& object, uint64_t offset, uint64_t size_bytes) {
  const uint64_t end = offset + size_bytes;
  const uint64_t first = base::round_up(offset, chunk_bytes_) / chunk_bytes_;
  const uint64_t last = end / chunk_bytes_;
  int error = 0;
  if (first > last || (first == last && first * chunk_bytes_ >= end)) {  // within one chunk
    const Patch patch{offset % chunk_bytes_, nullptr, size_bytes};
    return size_bytes == 0 ? 0 : patch_chunk(object, offset / chunk_bytes_, {&patch, 1});
  }
  if (first * chunk_bytes_ > offset) {
    const Patch patch{offset % chunk_bytes_, nullptr, first * chunk_bytes_ - offset};
    error = patch_chunk(object, first - 1, {&patch, 1});
  }
  if (error == 0 && last * chunk_bytes_ < end) {
    const Patch patch{0, nullptr, end - last * chunk_bytes_};
    error = patch_chunk(object, last, {&patch, 1});
  }
  object.map_->for_each(first, last, [&](uint64_t chunk, Entry) {
    if (error != 0) return;
    const os::SignalBlock block;
    const os::Passing passing(gate_);
    error = publish(object, chunk, 0, 0);
  });
  return error;
}

bool Pool::is_hole(const Object& object, uint64_t offset, uint64_t size_bytes) const {
  const uint64_t end = base::round_up(offset + size_bytes, chunk_bytes_) / chunk_bytes_;
  bool is_empty = true;
  for (uint64_t chunk = offset / chunk_bytes_; chunk < end && is_empty; ++chunk)
    is_empty = object.map_->get(chunk).block == 0;
  return is_empty;
}

int Pool::resize(Object& object, uint64_t size_bytes) {
  const std::lock_guard guard(mutex_);
  if (const int error = check_writable(object); error != 0) return error;
  if (size_bytes > ChunkMap::kChunksMax * chunk_bytes_) return -EFBIG;
  const uint64_t before = object.size_bytes();
  if (size_bytes < before) {
    const int error = discard_locked(object, size_bytes, before - size_bytes);
    if (error != 0) {
      note(error, "resize", object);
      return error;
    }
  }
  changed_objects_.insert(object.id());
  object.size_bytes_.store(size_bytes, std::memory_order_release);
  return 0;
}

// All chunks of the object die. REQUIRES: the gate is closed.
int Pool::kill_all(Object& object) {
  OC_ASSERT(gate_.is_closed());
  const uint32_t now = interval_.load(), free_from = free_from_.load();
  int error = 0;
  // This comes first: readers look at it again when they have read.
  object.is_removed_.store(true, std::memory_order_release);
  object.map_->for_each(0, UINT64_MAX, [&](uint64_t chunk, Entry entry) {
    if (error != 0) return;
    OC_ASSERT(entry.birth <= now);
    if (entry.birth >= free_from)
      heap_->free(entry.block);
    else
      error = heap_->bury({entry.block, entry.birth, now});
    if (error == 0) object.map_->set(chunk, Entry{});
  });
  return error;
}

}  // namespace outcore::versioned
