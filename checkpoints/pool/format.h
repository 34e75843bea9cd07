// Format: the records of a journal as bytes (docs/reference/versioned-format.md).
//
// Little-endian. A record is a header of 64 bytes, its payload, and zeros up to a multiple of 8.
// Header and payload have a checksum each, so an intact header says how long the payload should be,
// even if the payload is torn. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoints/pool/block_heap.h"
#include "core/base/assert.h"

namespace outcore::versioned {

inline constexpr uint32_t kRecordMagic = 0x4A56434F;  // "OCVJ"
inline constexpr uint16_t kFormat = 1;
inline constexpr uint64_t kRecordAlignment = 8;
inline constexpr uint32_t kChunkBytesMin = 512;
inline constexpr uint32_t kChunkBytesMax = 1 << 20;
inline constexpr size_t kNameBytesMax = 255;
inline constexpr size_t kCommentBytesMax = 4096;
inline constexpr uint32_t kCommitMax = UINT32_MAX - 2;  // the number after it is valid, too

enum class RecordType : uint16_t {
  kBase = 1,       // begins a journal: describes the state that it continues
  kObject = 2,     // of the base
  kMap = 3,        // of the base: entries of an object
  kHeld = 4,       // of the base: the checkpoints
  kGraves = 5,     // of the base: dead blocks that they need
  kBaseEnd = 6,    // the base is complete
  kCommit = 7,     // what has changed since the commit before
  kRemoval = 8,    // checkpoints that were removed
  kRename = 9,     // a checkpoint's new name
  kClosed = 10,    // the writer closed the pool: what comes before is complete
  kContinued = 11  // the next journal exists
};

struct RecordHeader {
  uint32_t magic = kRecordMagic;
  uint16_t format = kFormat;
  uint16_t type = 0;
  uint64_t sequence = 0;  // counts all records of a pool, across its journals
  uint64_t payload_bytes = 0;
  uint64_t payload_sum = 0;
  uint64_t pool_id = 0;
  uint32_t commit = 0;  // the number of the last commit, this one included
  uint32_t zero = 0;
  uint64_t also_zero = 0;
  uint64_t header_sum = 0;  // of all fields before it
};
static_assert(sizeof(RecordHeader) == 64);

// A chunk that has changed, or that a base contains: 20 bytes in a record.
struct Change {
  uint32_t chunk = 0;
  uint32_t block = 0;
  uint32_t birth = 0;
  uint64_t sum = 0;
};
inline constexpr size_t kChangeBytes = 20;

struct Checkpoint {
  uint32_t number = 0;
  uint64_t time_ns = 0;     // since 1970
  uint64_t size_bytes = 0;  // of all its objects
  std::string name;
  std::string comment;
};

uint64_t checksum_of(std::span<const std::byte> bytes);
// Completes a header with its checksum. is_whole() checks it in bytes that were read.
RecordHeader sealed(RecordHeader header);
bool is_whole(const RecordHeader& header);

// Appends values to bytes.
class Encoder {
 public:
  template <typename T>
  void put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  void put(std::string_view text);
  void put(const Change& change);
  void put(const Grave& grave);
  void put(const Checkpoint& checkpoint);
  void put_all(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  size_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }
  void reserve(size_t bytes) { bytes_.reserve(bytes); }

 private:
  std::vector<std::byte> bytes_;
};

// Reads values in the same order. Past the end all values are zero, and is_intact() is false.
class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename T>
  T get() {
    OC_ASSERT(at_ <= bytes_.size());
    T value{};
    if (bytes_.size() - at_ < sizeof value) {
      is_intact_ = false;
      at_ = bytes_.size();
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string get_text(size_t bytes_max);
  Change get_change();
  Grave get_grave();
  Checkpoint get_checkpoint();
  size_t left() const { return bytes_.size() - at_; }
  bool is_intact() const { return is_intact_; }
  // Everything was read, and nothing was missing.
  bool is_done() const { return is_intact_ && left() == 0; }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  bool is_intact_ = true;
};

}  // namespace outcore::versioned
