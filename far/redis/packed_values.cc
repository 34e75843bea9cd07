#include "far/redis/packed_values.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/clock.h"
#include "core/base/units.h"

namespace outcore::redis {
namespace {

// More than the connections that may wait, because a server that stalls keeps one space for each.
// Untouched spaces cost nothing.
constexpr size_t kSpaces = 64;

size_t whole_bytes(const packing::Packer& packer) {
  return packer.value_bytes_max() + SpacePool::kAlignment + packer.chunk_bytes() +
         packer.unpack_space_bytes();
}

}  // namespace

int LastValue::repeat(ChunkRequest& r) const {
  r.result = error;
  r.is_short = is_short;
  if (result != 0 || error != 0) return result;
  OC_ASSERT(is_short || chunk != nullptr);
  if (is_short) std::memset(r.bytes, 0, r.size_bytes);
  if (!is_short) std::memcpy(r.bytes, chunk + r.offset, r.size_bytes);
  return 0;
}

PackedValues::PackedValues(StoreState& state, std::shared_ptr<const packing::Packer> packer)
    : state_(state),
      packer_(std::move(packer)),
      spaces_(packer_ == nullptr ? nullptr
                                 : std::make_unique<SpacePool>(kSpaces, whole_bytes(*packer_))) {}

void PackedValues::send(Connection& stream, const ChunkRequest& r) {
  OC_ASSERT(state_.layout().is_packed && (r.act == Act::kWrite || r.act == Act::kZero));
  char chunk[ChunkKeys::kKeyMax], fence[ChunkKeys::kKeyMax];
  const std::string_view chunk_key(chunk, state_.keys.put(chunk, r, false));
  const bool is_put = r.act == Act::kWrite;
  stream.begin(is_put ? 7 : 6);
  stream.word("EVALSHA");
  stream.word(state_.scripts[is_put ? Script::kPut : Script::kClear]);
  stream.word(2);
  stream.word(chunk_key);
  stream.word({fence, state_.keys.put(fence, r, true)});
  stream.word(state_.token.load(std::memory_order_relaxed));
  if (is_put) stream.bytes({r.bytes, r.size_bytes});
}

int PackedValues::receive(Connection& stream, const Reply& reply, ChunkRequest& r,
                          LastValue& last) {
  OC_CHECK(packer_ != nullptr && uint64_t{r.offset} + r.size_bytes <= packer_->chunk_bytes());
  r.is_absent = reply.type == '_';
  if (r.is_absent) {
    std::memset(r.bytes, 0, r.size_bytes);
    r.is_short = true;
    return 0;
  }
  if (reply.type != '$') return -EPROTO;
  const auto value_bytes = static_cast<size_t>(reply.number);
  bool is_whole = value_bytes <= packer_->value_bytes_max();
  if (is_whole) {
    std::byte* const value = last.space.get(base::now_ns() + Connection::kSilenceNsMax);
    if (value == nullptr) return -ETIMEDOUT;
    const size_t used = base::round_up(packer_->value_bytes_max(), SpacePool::kAlignment);
    std::byte *const work = value + used, *const chunk = work + packer_->unpack_space_bytes();
    if (const int result = stream.read_bytes({value, value_bytes}); result != 0) return result;
    is_whole = packer_->unpack(r.at, {value, value_bytes}, work, chunk);
    last.chunk = chunk;
  }
  if (is_whole) std::memcpy(r.bytes, last.chunk + r.offset, r.size_bytes);
  if (!is_whole) {
    char text[100], key[ChunkKeys::kKeyMax];
    const auto length = static_cast<int>(state_.keys.put(key, r, false));
    std::snprintf(text, sizeof text, "chunk %llu is damaged: %.*s is not what was stored there",
                  static_cast<unsigned long long>(r.at), length, key);
    state_.failure.note(r.server, 0, text);
    r.result = -EIO;
  }
  return stream.end_bytes();
}

}  // namespace outcore::redis
