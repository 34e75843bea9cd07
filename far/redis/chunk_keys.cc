#include "far/redis/chunk_keys.h"

#include <optional>

#include "core/base/assert.h"
#include "far/redis/key_slot.h"
#include "far/redis/record.h"

namespace outcore::redis {

ChunkKeys::ChunkKeys(Layout layout) : layout_(std::move(layout)) {
  OC_CHECK(layout_.part_count != 0 && layout_.part_count <= kPartsMax && layout_.id.size() == 16);
  for (uint32_t part = 0; part < layout_.part_count; ++part) {
    tags_.push_back(even_tag(part, layout_.part_count));
    slots_.push_back(redis::slot_of(std::to_string(tags_.back())));
  }
}

size_t ChunkKeys::put(char* into, const ChunkRequest& r, bool is_fence) const {
  return write_key({into, kKeyMax}, tags_[part_of(r)], layout_.id,
                   is_fence ? std::nullopt : std::optional<uint64_t>(r.at));
}

}  // namespace outcore::redis
