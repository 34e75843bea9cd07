#include "far/redis/chunk_commands.h"

#include <utility>

#include "core/base/assert.h"

namespace outcore::redis {

void ChunkCommands::send_script(Connection& stream, Script script, const ChunkRequest& r) {
  OC_ASSERT(!state_.layout().is_packed || script == Script::kFence);
  char chunk[ChunkKeys::kKeyMax], fence[ChunkKeys::kKeyMax];
  const bool is_of_chunk = script != Script::kFence;
  const std::string_view fence_key(fence, state_.keys.put(fence, r, true));
  stream.begin((is_of_chunk ? 9 : 6) + (state_.member.empty() ? 0 : 1));
  stream.word("EVALSHA");
  stream.word(state_.scripts[script]);
  stream.word(is_of_chunk ? 2 : 1);
  if (is_of_chunk) stream.word({chunk, state_.keys.put(chunk, r, false)});
  stream.word(fence_key);
  stream.word(state_.token.load(std::memory_order_relaxed));
  if (!is_of_chunk) {
    stream.word(state_.is_new.load(std::memory_order_relaxed) ? 1 : 0);
  } else {
    stream.word(r.offset);
    stream.word(state_.layout().chunk_bytes);
    if (script == Script::kZero)
      stream.word(r.size_bytes);
    else
      stream.bytes({r.bytes, r.size_bytes});
  }
  if (!state_.member.empty()) stream.word(state_.member);
}

void ChunkCommands::send(Connection& stream, const ChunkRequest& r) {
  char key[ChunkKeys::kKeyMax];
  const std::string_view name(key, state_.keys.put(key, r, is_of_part(r.act)));
  if (r.is_asking) {
    stream.begin(1);
    stream.word("ASKING");
  }
  OC_ASSERT(r.act != Act::kRead || r.size_bytes != 0);  // else it would ask for all of the value
  switch (r.act) {
    case Act::kRead:
      if (state_.layout().is_packed) {
        stream.begin(2);
        stream.word("GET");
        return stream.word(name);
      }
      stream.begin(4);
      stream.word("GETRANGE");
      stream.word(name);
      stream.word(r.offset);
      return stream.word(r.offset + r.size_bytes - 1);
    case Act::kWrite:
      if (state_.layout().is_packed) return packed_.send(stream, r);
      return staged_.way_of(r) == WriteWay::kScript ? send_script(stream, Script::kWrite, r)
                                                    : staged_.send(stream, r, staged_.way_of(r));
    case Act::kZero:
      if (state_.layout().is_packed) return packed_.send(stream, r);
      return send_script(stream, Script::kZero, r);
    case Act::kFence:
      return send_script(stream, Script::kFence, r);
    case Act::kSeq:
    case Act::kToken:
    case Act::kCount:
    case Act::kBytes:
      stream.begin(3);
      stream.word("HGET");
      stream.word(name);
      if (r.act == Act::kSeq)
        return stream.word(state_.member.empty() ? "seq" : std::string_view(state_.member));
      if (r.act == Act::kToken) return stream.word("token");
      return stream.word(r.act == Act::kCount ? "chunks" : "bytes");
    case Act::kForget:
    case Act::kDrop:
      stream.begin(2);
      stream.word("UNLINK");
      return stream.word(name);
  }
}

int ChunkCommands::receive(Line& line, ChunkRequest& r, LastValue& last) {
  if (r.is_same) return last.repeat(r);
  last.result = receive_own(line, r, last);
  last.error = r.result;
  last.is_short = r.is_short;
  return last.result;
}

int ChunkCommands::receive_own(Line& line, ChunkRequest& r, LastValue& last) {
  OC_ASSERT(!r.is_same);
  Connection& stream = line.connection;
  Reply reply;
  r.is_short = false;
  const WriteWay way = r.act == Act::kWrite ? staged_.way_of(r) : WriteWay::kScript;
  if (std::exchange(r.is_asking, false)) {
    if (const int result = stream.read(&reply); result != 0) return result;
  }
  if (way != WriteWay::kScript) return staged_.receive(stream, r, way);
  if (const int result = stream.read(&reply); result != 0) return result;
  if (reply.type == '-') return replies_.refuse(reply, r);
  if (r.act != Act::kRead) return replies_.read_number(stream, reply, r);
  return state_.layout().is_packed ? packed_.receive(stream, reply, r, last)
                                   : replies_.read_bytes(stream, reply, r);
}

}  // namespace outcore::redis
