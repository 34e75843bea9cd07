// Format: how a persistent heap is laid out in its store
// (docs/reference/persistent-heap-format.md): two copies of a header, tiles of 64 KiB with the
// objects, and tiles with the metadata. Bytes are little-endian. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "outcore/result.h"
#include "outcore/store.h"

namespace outcore::heap::persistent {

inline constexpr uint32_t kFormat = 1;
inline constexpr uint64_t kHeaderStride = 4096;  // between the two copies
inline constexpr uint64_t kHeadersBytes = 2 * kHeaderStride;
inline constexpr char kHeaderMagic[8] = {'O', 'U', 'T', 'C', 'H', 'E', 'A', 'P'};
inline constexpr char kMetadataMagic[8] = {'O', 'U', 'T', 'C', 'M', 'E', 'T', 'A'};

enum class State : uint32_t { kConsistent = 1, kOpen = 2 };

struct Header {
  char magic[8];
  uint32_t format;
  uint32_t state;
  uint64_t sequence;  // grows with each write of the headers
  uint64_t tile_bytes;
  uint64_t size_bytes;  // of the heap; the store has at least as many
  uint64_t metadata_offset;
  uint64_t metadata_bytes;  // 0: nothing was ever allocated
  uint64_t metadata_checksum;
  uint64_t version;  // of the program
  uint64_t unused[6];
  uint64_t checksum;  // of all before it
};
static_assert(sizeof(Header) == 128);

struct MetadataHead {
  char magic[8];
  uint64_t total_bytes;
  uint64_t run_count;
  uint64_t word_count;  // of bitmaps
  uint64_t name_count;
  uint64_t name_bytes;
  uint64_t unused[2];
};
static_assert(sizeof(MetadataHead) == 64);

enum class RunKind : uint32_t { kFull = 1, kPartial = 2, kLarge = 3, kMetadata = 4 };

// Consecutive tiles that are in use. Tiles in no run are free.
struct Run {
  uint64_t first_tile;
  uint64_t tile_count;
  uint32_t kind;
  uint32_t cell_bytes;  // of slabs; otherwise 0
  uint64_t value;       // partial: the first word of its bitmap; large, metadata: bytes
};
static_assert(sizeof(Run) == 32);

struct NameHead {
  uint32_t record_bytes;  // a multiple of 8, the texts that follow included
  uint32_t name_bytes;
  uint32_t type_bytes;
  uint32_t alignment;
  uint64_t offset;
  uint64_t count;
  uint64_t element_bytes;
  uint32_t version;
  uint32_t unused;
};
static_assert(sizeof(NameHead) == 48);

uint64_t checksum_of(std::span<const std::byte> bytes);  // XXH3, 64 bits

// Both copies, with the checksum set.
std::vector<std::byte> encode(Header header);

// What the two copies say together.
struct Headers {
  std::vector<Header> intact;  // the newest first
  // Those that are intact say that the heap was closed, and are equal.
  bool is_consistent = false;
  std::vector<std::string> findings;
};
// Errors: EINVAL (not a persistent heap, or damaged), ENOTSUP (a newer format). The messages begin
// with `what`.
Result<Headers> decode_headers(std::span<const std::byte> bytes, const std::string& what);

}  // namespace outcore::heap::persistent
