// Key slots: where a Redis Cluster keeps a key. Any thread, the fault path too.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace outcore::redis {

inline constexpr uint32_t kSlotCount = 16384;

// The slot of a key: the CRC16 (XMODEM) of what is between its first '{' and the next '}', or of
// the whole key. See the Redis Cluster specification, "Key distribution model".
uint32_t slot_of(std::string_view key);

// A number whose decimal text, as the {tag} of a key, lies in the `index`th of `count` equal ranges
// of slots. So the tags of one count are spread evenly over any cluster whose servers have equally
// many slots. Always returns the same number. REQUIRES: index < count; count is a power of two <=
// 1024.
uint32_t even_tag(uint32_t index, uint32_t count);

// Writes the key of a chunk of the store with this id, or of the fence of a part, without a zero at
// the end, and returns its length. REQUIRES: it fits into `into`; 45 bytes and those of the id
// suffice.
size_t write_key(std::span<char> into, uint32_t tag, std::string_view id,
                 std::optional<uint64_t> chunk);

}  // namespace outcore::redis
