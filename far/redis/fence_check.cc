#include "far/redis/fence_check.h"

#include <cerrno>

#include "core/base/assert.h"

namespace outcore::redis {

int FenceCheck::judge_short_reads(Connection& stream, uint8_t group,
                                  std::span<ChunkRequest> batch) {
  if (!state_.fences.must_exist()) return 0;
  for (ChunkRequest& r : batch) {
    if (r.group != group || !r.is_short) continue;
    ChunkRequest look;
    look.act = Act::kSeq;
    look.at = state_.part_of(r);
    const uint64_t least = state_.fences.seen(state_.part_of(r));
    commands_.send(stream, look);
    stream.flush();
    Reply reply;
    if (const int result = stream.read(&reply); result != 0) return result;
    r.is_short = r.is_done = false;
    if (reply.type == '-') continue;  // another server has it: it is read there
    if (const int result = replies_.read_number(stream, reply, look); result != 0) return result;
    const int verdict = state_.fences.judge(r.server, state_.part_of(r), look, least);
    r.is_done = verdict != -EAGAIN;
    if (verdict == -EIO) r.result = -EIO;
  }
  return 0;
}

int FenceCheck::check_fresh(Line& line, uint32_t server) {
  if (!state_.fences.must_exist()) return 0;
  Connection& stream = line.connection;
  ChunkRequest r;
  r.act = Act::kSeq;
  const auto is_there = [&](uint32_t part) {
    return state_.servers.server_of(state_.keys.slot_of(part)) == server;
  };
  bool is_in_doubt = false;
  uint32_t asked[ChunkRequest::kBatchMax];
  // As of before it was asked, because others write meanwhile.
  uint64_t least[ChunkRequest::kBatchMax];
  for (uint32_t part = 0; part < state_.layout().part_count;) {
    size_t count = 0;
    for (; part < state_.layout().part_count && count < ChunkRequest::kBatchMax; ++part) {
      if (!is_there(part)) continue;
      least[count] = state_.fences.seen(part);
      asked[count++] = part;
      r.at = part;
      commands_.send(stream, r);
    }
    stream.flush();
    for (size_t i = 0; i < count; ++i) {
      r.at = asked[i];
      r.result = 0;
      Reply reply;
      if (const int result = stream.read(&reply); result != 0) return result;
      if (reply.is_error("MOVED") || reply.is_error("ASK")) continue;  // another has it: ask there
      if (reply.type == '-') return -EAGAIN;
      if (const int result = replies_.read_number(stream, reply, r); result != 0) return result;
      is_in_doubt = state_.fences.judge(server, asked[i], r, least[i]) == -EAGAIN || is_in_doubt;
    }
  }
  return is_in_doubt ? -EAGAIN : 0;
}

}  // namespace outcore::redis
