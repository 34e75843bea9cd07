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

// Asks for the seq of each part that `is_asked` names, many at a time. `judge` gets the reply, and
// what was acknowledged before it was asked, because others write meanwhile; what it returns other
// than 0 ends the questions.
int FenceCheck::ask_parts(Connection& stream, base::FunctionRef<bool(uint32_t)> is_asked,
                          base::FunctionRef<int(const Reply&, ChunkRequest&, uint64_t)> judge) {
  ChunkRequest r;
  r.act = Act::kSeq;
  uint32_t asked[ChunkRequest::kBatchMax];
  uint64_t least[ChunkRequest::kBatchMax];
  for (uint32_t part = 0; part < state_.layout().part_count;) {
    size_t count = 0;
    for (; part < state_.layout().part_count && count < ChunkRequest::kBatchMax; ++part) {
      if (!is_asked(part)) continue;
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
      if (const int result = judge(reply, r, least[i]); result != 0) return result;
    }
  }
  return 0;
}

int FenceCheck::check_fresh(Line& line, uint32_t server) {
  if (!state_.fences.must_exist()) return 0;
  Connection& stream = line.connection;
  bool is_in_doubt = false;
  const auto is_there = [&](uint32_t part) {
    return state_.servers.server_of(state_.keys.slot_of(part)) == server;
  };
  const auto judge = [&](const Reply& reply, ChunkRequest& r, uint64_t least) {
    if (reply.is_error("MOVED") || reply.is_error("ASK")) return 0;  // another has it: ask there
    if (reply.type == '-') return -EAGAIN;
    if (const int result = replies_.read_number(stream, reply, r); result != 0) return result;
    const auto part = static_cast<uint32_t>(r.at);
    is_in_doubt = state_.fences.judge(server, part, r, least) == -EAGAIN || is_in_doubt;
    return 0;
  };
  if (const int result = ask_parts(stream, is_there, judge); result != 0) return result;
  return is_in_doubt ? -EAGAIN : 0;
}

// What is lost already is nowhere. All replies are read: the caller may ask for more.
int FenceCheck::check_copy(Connection& stream, uint32_t server) {
  if (!state_.fences.must_exist()) return 0;
  int verdict = 0;
  const auto is_asked = [&](uint32_t part) { return !state_.fences.is_lost(part); };
  const auto judge = [&](const Reply& reply, ChunkRequest& look, uint64_t least) {
    if (reply.is_error("MASTERDOWN")) return verdict = -ENOTCONN, 0;
    if (reply.is_error("LOADING") || reply.is_error("BUSY")) return verdict = -EAGAIN, 0;
    if (reply.type != '-')
      if (const int result = replies_.read_number(stream, reply, look); result != 0) return result;
    if (reply.type == '-' || look.result != 0 || look.number < least) verdict = -ENODATA;
    return 0;
  };
  if (const int result = ask_parts(stream, is_asked, judge); result != 0) return result;
  if (verdict == -ENODATA)
    state_.failure.note(server, 0, "lacks what was acknowledged, so it is no replica any more");
  return verdict;
}

}  // namespace outcore::redis
