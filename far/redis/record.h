// Record: what the catalog says about one store. Others may have written it, so each field is
// checked when it is read.
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
  // The token, and 20 random bits below it, so that two writers differ even if a server that took
  // over had lost the last change of the catalog. Members that share a lease have the same.
  uint64_t fence_token = 0;
  std::string owner;           // who writes it, for people; empty: nobody
  int64_t lease_ms = 0;        // until the lease of the owner ends; negative: it has ended
  uint64_t lifetime_ms = 0;    // 0: for ever
  int64_t left_ms = 0;         // until it may be removed, if it has a lifetime
  bool is_new = false;         // some of its fences do not exist yet
  std::string packing;         // of its chunks, as Packing::text(); empty: not packed
  std::string checksum;        // from note_checksum(); empty: a writer has opened it since
  bool is_incomplete = false;  // a copy into it is under way, or did not end
  std::string damage;          // why it cannot be used; then only the name is valid
  // Whoever made it did not end that, and does it no more. Nothing was stored in it.
  bool is_abandoned() const { return damage.empty() && is_new && (owner.empty() || lease_ms <= 0); }
  bool is_expired() const {
    return damage.empty() && lifetime_ms != 0 && left_ms <= 0 && lease_ms <= 0;
  }
};

inline constexpr uint32_t kPartsMax = 1024;                                 // a power of two
inline constexpr uint64_t kChunkBytesMin = 4096, kChunkBytesMax = 1 << 20;  // powers of two
inline constexpr uint64_t kCountMax = 9'999'999'999'999'999;  // scripts count in doubles: 16 digits
inline constexpr uint64_t kChanceMax = 0xFFFFF;

// Parses a decimal number that is not larger than `most`. Empty: the text is not one.
std::optional<uint64_t> read_count(std::string_view text, uint64_t most = kCountMax);

// Record::fence_token for a new token and its 20 random bits.
uint64_t fence_token_of(uint64_t token, uint64_t chance);

// Reads the reply of HGETALL for the store of this name, with the server's time in `now`. `damage`
// names the first field that our stores cannot have.
Record read_record(const Value& value, const std::string& name);
// "its record is damaged: …", and what to do.
std::string explain_damage(const std::string& name, const std::string& damage);

}  // namespace outcore::redis
