#include "far/redis/staged_writes.h"

#include <cerrno>
#include <cinttypes>
#include <cstdio>

#include "core/base/assert.h"

namespace outcore::redis {
namespace {

// A staged value that is never placed expires: its writer died, or used another name when it tried
// again.
constexpr uint64_t kStagedMs = 60'000;

}  // namespace

// While a slot moves, a new key is sent to where the slot goes, but the chunk may still be where it
// was. Then only the script sees both.
WriteWay StagedWrites::way_of(const ChunkRequest& r) const {
  if (state_.layout().is_packed || r.is_plain || r.size_bytes < kStagedMin)
    return WriteWay::kScript;
  return r.size_bytes == state_.layout().chunk_bytes ? WriteWay::kWhole : WriteWay::kCopied;
}

// A staged key is never used twice, not even by two members, whose token is the same. So a server
// that reads late what was sent to it long ago cannot change what was sent since.
void StagedWrites::send(Connection& stream, const ChunkRequest& r, WriteWay way) {
  OC_ASSERT(way != WriteWay::kScript && r.act == Act::kWrite);
  char chunk[ChunkKeys::kKeyMax], fence[ChunkKeys::kKeyMax], staged[kStagedKeyMax];
  const std::string_view chunk_key(chunk, state_.keys.put(chunk, r, false));
  const std::string_view fence_key(fence, state_.keys.put(fence, r, true));
  const uint64_t token = state_.token.load(std::memory_order_relaxed);
  const int used = std::snprintf(
      staged, sizeof staged, "%.*s:%" PRIu64 ":%s%" PRIu64, static_cast<int>(fence_key.size()),
      fence, token, state_.member.c_str(), staged_count_.fetch_add(1, std::memory_order_relaxed));
  OC_CHECK(used > 0 && static_cast<size_t>(used) < sizeof staged);  // else two keys may be the same
  const std::string_view staged_key(staged, static_cast<size_t>(used));
  const auto call = [&](Script script, uint64_t first, uint64_t second = 0) {
    const bool has_member = script == Script::kPlace && !state_.member.empty();
    stream.begin(has_member || script == Script::kCopy ? 9 : 8);
    stream.word("EVALSHA");
    stream.word(state_.scripts[script]);
    stream.word(3);
    stream.word(chunk_key);
    stream.word(fence_key);
    stream.word(staged_key);
    stream.word(token);
    stream.word(first);
    if (script == Script::kCopy) stream.word(second);
    if (has_member) stream.word(state_.member);
  };
  if (way == WriteWay::kWhole) {
    stream.begin(5);
    stream.word("SET");
    stream.word(staged_key);
    stream.bytes({r.bytes, r.size_bytes});
    stream.word("PX");
    stream.word(kStagedMs);
    return call(Script::kPlace, 0);
  }
  call(Script::kCopy, state_.layout().chunk_bytes, kStagedMs);
  stream.begin(4);
  stream.word("SETRANGE");
  stream.word(staged_key);
  stream.word(r.offset);
  stream.bytes({r.bytes, r.size_bytes});
  stream.begin(3);
  stream.word("PEXPIRE");  // where there was no copy, it is a value of its own
  stream.word(staged_key);
  stream.word(kStagedMs);
  call(Script::kPlace, 1);
}

// The first error tells what went wrong; later ones follow from it. The last reply is that of the
// place script.
int StagedWrites::receive(Connection& stream, ChunkRequest& r, WriteWay way) {
  OC_ASSERT(way != WriteWay::kScript && r.act == Act::kWrite);
  Reply reply;
  bool is_refused = false;
  int refusal = 0;
  for (int rest = way == WriteWay::kWhole ? 2 : 4; rest > 0; --rest) {
    if (const int result = stream.read(&reply); result != 0) return result;
    if (reply.type != '-' || is_refused) continue;
    is_refused = true;
    r.is_plain = reply.is_error("ASK") || reply.is_error("TRYAGAIN");
    refusal = r.is_plain ? -EAGAIN : replies_.refuse(reply, r);
  }
  if (is_refused) return refusal;
  return reply.type == ':' ? replies_.read_number(stream, reply, r) : -EPROTO;
}

}  // namespace outcore::redis
