// Values that are stored compressed: they are always whole chunks. See chunks.h and packer.h.
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/clock.h"
#include "core/base/units.h"
#include "far/redis/chunks.h"

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

std::unique_ptr<SpacePool> Chunks::make_spaces(const packing::Packer* packer) {
  if (packer == nullptr) return nullptr;
  return std::make_unique<SpacePool>(kSpaces, whole_bytes(*packer));
}

void Chunks::send_packed(Connection& stream, const ChunkRequest& r) {
  OC_ASSERT(layout_.is_packed && (r.act == Act::kWrite || r.act == Act::kZero));
  char chunk[kKeyMax], fence[kKeyMax];
  const std::string_view chunk_key(chunk, put_key(chunk, r, false));
  const bool is_put = r.act == Act::kWrite;
  stream.begin(is_put ? 7 : 6);
  stream.word("EVALSHA");
  stream.word(script_name_[static_cast<size_t>(is_put ? Script::kPut : Script::kClear)]);
  stream.word(2);
  stream.word(chunk_key);
  stream.word({fence, put_key(fence, r, true)});
  stream.word(token_.load(std::memory_order_relaxed));
  if (is_put) stream.bytes({r.bytes, r.size_bytes});
}

// Receives the whole value, from which the request gets its bytes. Requests that follow in the
// batch may want other bytes of it, so `last` keeps the chunk.
int Chunks::receive_packed(Connection& stream, const Reply& reply, ChunkRequest& r, Last& last) {
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
    char text[100], key[kKeyMax];
    const auto length = static_cast<int>(put_key(key, r, false));
    std::snprintf(text, sizeof text, "chunk %llu is damaged: %.*s is not what was stored there",
                  static_cast<unsigned long long>(r.at), length, key);
    note(r.server, 0, text);
    r.result = -EIO;
  }
  return stream.end_bytes();
}

// Copies from the value that was received for the request before, which is for the same chunk.
int Chunks::repeat(const Last& last, ChunkRequest& r) const {
  r.result = last.error;
  r.is_short = last.is_short;
  if (last.result != 0 || last.error != 0) return last.result;
  OC_ASSERT(last.is_short || last.chunk != nullptr);
  if (last.is_short) std::memset(r.bytes, 0, r.size_bytes);
  if (!last.is_short) std::memcpy(r.bytes, last.chunk + r.offset, r.size_bytes);
  return 0;
}

}  // namespace outcore::redis
