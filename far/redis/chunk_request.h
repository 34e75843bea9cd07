// ChunkRequest: one thing that is asked of the servers about a chunk, or a part, of a store. A
// value.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outcore::redis {

enum class Act : uint8_t {
  kRead,    // bytes of a chunk; what was never written reads zero
  kWrite,   // bytes of a chunk, if the token is the writer's; of packed chunks: the new value
  kZero,    // the same with zeros; a whole chunk (if packed: always) is deleted
  kFence,   // the fence of the part gets the token; `number` becomes its seq
  kSeq,     // `number` becomes the part's seq
  kToken,   // `number` becomes the token in its fence
  kCount,   // `number` becomes the count of stored chunks of the part
  kBytes,   // of packed chunks: `number` becomes the bytes of the part's values
  kForget,  // deletes the fence of the part
  kDrop     // deletes the chunk, whoever has the fence
};

struct ChunkRequest {
  static constexpr size_t kBatchMax = 128;  // requests of one batch

  Act act = Act::kRead;
  uint64_t at = 0;      // the chunk; for kFence to kForget the part
  uint32_t offset = 0;  // within the chunk
  uint32_t size_bytes = 0;
  std::byte* bytes = nullptr;  // kWrite only reads from it
  int result = 0;              // 0 or -errno
  uint64_t number = 0;

  // Used by Chunks alone.
  static constexpr uint8_t kUnsent = 255;
  uint16_t server = 0;
  uint8_t group = kUnsent;
  bool is_asking = false, is_done = false, is_short = false;
  bool is_plain = false;   // a write that must go through the script, whatever its size
  bool is_same = false;    // the same chunk as the request before: its value is asked for once
  bool is_absent = false;  // of packed chunks: there was no value
  // Its server's address refused the connection of the last round: nobody listens there.
  bool is_unheard = false;
};

inline bool is_of_part(Act act) { return act >= Act::kFence && act != Act::kDrop; }
inline bool is_change(Act act) {
  return act != Act::kRead && act != Act::kSeq && act != Act::kToken && act != Act::kCount &&
         act != Act::kBytes;
}

}  // namespace outcore::redis
