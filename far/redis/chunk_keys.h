// ChunkKeys: in which part each chunk of a store is, and the keys of chunks and fences. Constant.
//
// Any thread; the fault path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "far/redis/chunk_request.h"

namespace outcore::redis {

// How the chunks of a store are arranged on the servers. Constant.
struct Layout {
  std::string id;           // 16 hex digits
  uint32_t part_count = 0;  // a power of two <= kPartsMax
  uint64_t chunk_bytes = 0;
  bool is_packed = false;  // values are made by a Packer
};

class ChunkKeys {
 public:
  static constexpr size_t kKeyMax = 80;

  explicit ChunkKeys(Layout layout);

  const Layout& layout() const { return layout_; }
  // Neighbouring chunks lie on different servers, spread as evenly as the golden ratio does.
  uint32_t part_of(uint64_t chunk) const {
    return static_cast<uint32_t>(chunk * 159 % layout_.part_count);
  }
  uint32_t part_of(const ChunkRequest& r) const {
    return is_of_part(r.act) ? static_cast<uint32_t>(r.at) : part_of(r.at);
  }
  uint32_t slot_of(uint32_t part) const { return slots_[part]; }
  // Writes the key of the request's chunk, or of the fence of its part, and returns its length.
  // REQUIRES: room for kKeyMax bytes.
  size_t put(char* into, const ChunkRequest& r, bool is_fence) const;

 private:
  const Layout layout_;
  std::vector<uint32_t> tags_, slots_;  // by part
};

}  // namespace outcore::redis
