#include "checkpoints/pool/chunk_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "checkpoints/pool/format.h"
#include "core/base/assert.h"

namespace outcore::versioned {
namespace {

// Each attempt fails only because a concurrent write was completed meanwhile.
constexpr int kReadAttemptsMax = 10'000;
constexpr uint64_t kReadStretchMax = 32;  // the fault path keeps the entries of so many chunks
constexpr size_t kPieceBytesMax = 256 << 10;

// A chunk that a batch reads as a whole.
struct Fetch {
  Entry entry;
  uint64_t chunk;
  std::byte* into;
  uint32_t request;  // its index in the batch
  uint32_t piece;    // its index among the transfers of the heap
};

}  // namespace

int ChunkReader::read_chunk(const ChunkMap& map, const char* object, uint64_t chunk,
                            std::span<std::byte> into) {
  OC_CHECK(into.size() == chunk_bytes_);
  for (int attempt = 0; attempt < kReadAttemptsMax; ++attempt) {
    const Entry entry = map.get(chunk);
    if (entry.block == 0) {
      std::memset(into.data(), 0, into.size());
      return 0;
    }
    const uint64_t place = uint64_t{entry.block} * chunk_bytes_;
    const int error = data_.read(place, into);
    if (error == 0 && checksum_of(into) == entry.sum) return 0;
    if (map.get(chunk) != entry) continue;
    char text[512];
    std::snprintf(text, sizeof text,
                  "read chunk %llu of object %s in %s/data at offset %llu: %s: go back to a "
                  "checkpoint that verify finds whole",
                  static_cast<unsigned long long>(chunk), object, folder_,
                  static_cast<unsigned long long>(place),
                  error == 0 ? "it is not what was written" : ::strerrordesc_np(-error));
    last_failure_.note(text);
    return error == 0 ? -EIO : error;
  }
  last_failure_.note("a chunk was written anew each time it was read");
  return -EIO;
}

// Reads whole chunks into contiguous memory. Chunks in neighbouring blocks are read together.
int ChunkReader::read_stretch(const ChunkMap& map, const char* object, uint64_t chunk,
                              uint64_t count, std::byte* into) {
  OC_CHECK(count <= kReadStretchMax);
  Entry entries[kReadStretchMax];
  for (uint64_t i = 0; i < count; ++i) entries[i] = map.get(chunk + i);
  for (uint64_t i = 0; i < count;) {
    uint64_t end = i + 1;
    if (entries[i].block == 0) {
      std::memset(into + i * chunk_bytes_, 0, chunk_bytes_);
      i = end;
      continue;
    }
    while (end < count && entries[end].block == entries[i].block + (end - i)) ++end;
    const std::span<std::byte> bytes(into + i * chunk_bytes_, (end - i) * chunk_bytes_);
    const int failed = data_.read(uint64_t{entries[i].block} * chunk_bytes_, bytes);
    for (; i < end; ++i) {
      const std::span<std::byte> one(into + i * chunk_bytes_, chunk_bytes_);
      if (failed == 0 && checksum_of(one) == entries[i].sum) continue;
      if (const int error = read_chunk(map, object, chunk + i, one); error != 0) return error;
    }
  }
  return 0;
}

int ChunkReader::read(const ChunkMap& map, const char* object, uint64_t offset,
                      std::span<std::byte> into) {
  while (!into.empty()) {
    const uint64_t chunk = offset / chunk_bytes_;
    const uint64_t skipped = offset % chunk_bytes_;
    size_t size = into.size();
    int error = 0;
    if (skipped == 0 && size >= chunk_bytes_) {
      const uint64_t count = std::min<uint64_t>(size / chunk_bytes_, kReadStretchMax);
      size = count * chunk_bytes_;
      error = read_stretch(map, object, chunk, count, into.data());
    } else {
      size = std::min<size_t>(size, chunk_bytes_ - skipped);
      if (map.get(chunk).block == 0) {
        std::memset(into.data(), 0, size);
      } else {
        const ChunkBuffer buffer(buffers_);
        error = read_chunk(map, object, chunk, buffer.bytes());
        if (error == 0) std::memcpy(into.data(), buffer.bytes().data() + skipped, size);
      }
    }
    OC_ASSERT(size != 0 && size <= into.size());
    if (error != 0) return error;
    offset += size;
    into = into.subspan(size);
  }
  return 0;
}

void ChunkReader::transfer(const ChunkMap& map, const char* object, std::span<StoreRequest> batch) {
  std::vector<Fetch> fetches;
  std::vector<StoreRequest> pieces;
  for (uint32_t r = 0; r < batch.size(); ++r) {
    StoreRequest& request = batch[r];
    if (request.is_write) continue;
    request.result = 0;
    for (size_t done = 0; done < request.size_bytes && request.result == 0;) {
      const uint64_t offset = request.offset + done;
      std::byte* const into = request.bytes + done;
      const uint64_t skipped = offset % chunk_bytes_;
      const size_t size = std::min<size_t>(request.size_bytes - done, chunk_bytes_ - skipped);
      done += size;
      const Entry entry = map.get(offset / chunk_bytes_);
      if (entry.block == 0) {
        std::memset(into, 0, size);
        continue;
      }
      if (size < chunk_bytes_) {
        request.result = read(map, object, offset, {into, size});
        continue;
      }
      const uint64_t place = uint64_t{entry.block} * chunk_bytes_;
      StoreRequest* const last = pieces.empty() ? nullptr : &pieces.back();
      if (last != nullptr && last->offset + last->size_bytes == place &&
          last->bytes + last->size_bytes == into && last->size_bytes < kPieceBytesMax)
        last->size_bytes += size;
      else
        pieces.push_back({place, into, size, false, 0});
      fetches.push_back(
          {entry, offset / chunk_bytes_, into, r, static_cast<uint32_t>(pieces.size() - 1)});
    }
  }
  if (!pieces.empty()) data_.transfer(pieces);
  for (const Fetch& fetch : fetches) {
    OC_ASSERT(fetch.piece < pieces.size() && fetch.request < batch.size());
    const std::span<std::byte> bytes(fetch.into, chunk_bytes_);
    if (pieces[fetch.piece].result == 0 && checksum_of(bytes) == fetch.entry.sum) continue;
    const int error = read_chunk(map, object, fetch.chunk, bytes);
    if (error != 0) batch[fetch.request].result = error;
  }
}

}  // namespace outcore::versioned
