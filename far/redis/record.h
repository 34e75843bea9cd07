// Record: what the catalog says of one store. Others wrote it: each field is checked as it is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "far/redis/call.h"

namespace outcore::redis {

struct Record {
  std::string name, id;
  uint64_t size_bytes = 0, chunk_bytes = 0, booked_bytes = 0;
  uint32_t part_count = 0, replicas = 0;
  uint64_t token = 0;
  // The token, and 20 bits of chance below it: two writers differ also if a server that took over
  // had lost the last change of the catalog. Those that share a lease have the same. Of a writer's
  // open() alone.
  uint64_t fence_token = 0;
  std::string owner;         // who writes it, for people; empty: nobody
  int64_t lease_ms = 0;      // until the owner's lease ends; negative: it ended
  uint64_t lifetime_ms = 0;  // 0: for ever
  int64_t left_ms = 0;       // until it may be reclaimed, if it has a lifetime
  bool is_new = false;       // its fences are not all there yet
  std::string packing;       // of its chunks, as Packing::text(); empty: none
  std::string checksum;      // as note_checksum() was told; empty: a writer has had it since
  std::string damage;        // why it cannot be used; then only the name counts
  bool is_expired() const {
    return damage.empty() && lifetime_ms != 0 && left_ms <= 0 && lease_ms <= 0;
  }
};

inline constexpr uint32_t kPartsMax = 1024;                                 // a power of two
inline constexpr uint64_t kChunkBytesMin = 4096, kChunkBytesMax = 1 << 20;  // likewise
inline constexpr uint64_t kCountMax = 9'999'999'999'999'999;  // scripts count in doubles: 16 digits
inline constexpr uint64_t kChanceMax = 0xFFFFF;

// A whole decimal number that is not larger than `most`; nothing else is one.
std::optional<uint64_t> read_count(std::string_view text, uint64_t most = kCountMax);

// Record::fence_token of a token that is new and of its 20 bits of chance.
uint64_t fence_token_of(uint64_t token, uint64_t chance);

// Of HGETALL's answer for the store of this name, with the server's time in `now`. `damage` names
// the first field that no store of ours can have.
Record read_record(const Value& value, const std::string& name);
// "its record is damaged: …", with the remedy.
std::string explain_damage(const std::string& name, const std::string& damage);

}  // namespace outcore::redis
