// What is sent to a server about chunks, and how its replies are understood. See chunks.h.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/clock.h"
#include "far/redis/chunks.h"
#include "far/redis/record.h"

namespace outcore::redis {
namespace {

struct Refusal {
  std::string_view name;
  int error;  // -EAGAIN: ask later, or elsewhere
};

// How error replies begin. Any other error is -EPROTO.
constexpr Refusal kRefusals[] = {
    {"TRYAGAIN", -EAGAIN},   {"CLUSTERDOWN", -EAGAIN}, {"LOADING", -EAGAIN},
    {"MASTERDOWN", -EAGAIN}, {"NOREPLICAS", -EAGAIN},  {"READONLY", -EAGAIN},
    {"BUSY", -EAGAIN},       {"UNKILLABLE", -EAGAIN},  {"NOSCRIPT", -ENOEXEC},
    {"OOM", -ENOSPC},        {"MISCONF", -ENOSPC},     {"FENCED", -ESTALE},
    {"LOST", -EIO},          {"NOAUTH", -EACCES},      {"NOPERM", -EACCES},
    {"WRONGPASS", -EACCES},
};

int error_of(const Reply& reply) {
  for (const Refusal& refusal : kRefusals)
    if (reply.is_error(refusal.name)) return refusal.error;
  return -EPROTO;
}

std::string_view word_at(std::string_view text, size_t index) {
  for (; index > 0; --index) {
    text.remove_prefix(std::min(text.size(), text.find(' ')));
    if (!text.empty()) text.remove_prefix(1);
  }
  return text.substr(0, text.find(' '));
}

}  // namespace

void Chunks::send_script(Connection& stream, Script script, const ChunkRequest& r) {
  OC_ASSERT(!layout_.is_packed || script == Script::kFence);
  char chunk[kKeyMax], fence[kKeyMax];
  const bool is_of_chunk = script != Script::kFence;
  const std::string_view fence_key(fence, put_key(fence, r, true));
  stream.begin((is_of_chunk ? 9 : 6) + (member_.empty() ? 0 : 1));
  stream.word("EVALSHA");
  stream.word(script_name_[static_cast<size_t>(script)]);
  stream.word(is_of_chunk ? 2 : 1);
  if (is_of_chunk) stream.word({chunk, put_key(chunk, r, false)});
  stream.word(fence_key);
  stream.word(token_.load(std::memory_order_relaxed));
  if (!is_of_chunk) {
    stream.word(is_new_.load(std::memory_order_relaxed) ? 1 : 0);
  } else {
    stream.word(r.offset);
    stream.word(layout_.chunk_bytes);
    if (script == Script::kZero)
      stream.word(r.size_bytes);
    else
      stream.bytes({r.bytes, r.size_bytes});
  }
  if (!member_.empty()) stream.word(member_);
}

void Chunks::send(Connection& stream, const ChunkRequest& r) {
  char key[kKeyMax];
  const std::string_view name(key, put_key(key, r, is_of_part(r.act)));
  if (r.is_asking) {
    stream.begin(1);
    stream.word("ASKING");
  }
  OC_ASSERT(r.act != Act::kRead || r.size_bytes != 0);  // else it would ask for all of the value
  switch (r.act) {
    case Act::kRead:
      if (layout_.is_packed) {
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
      if (layout_.is_packed) return send_packed(stream, r);
      return way_of(r) == Way::kScript ? send_script(stream, Script::kWrite, r)
                                       : send_staged(stream, r, way_of(r));
    case Act::kZero:
      if (layout_.is_packed) return send_packed(stream, r);
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
        return stream.word(member_.empty() ? "seq" : std::string_view(member_));
      if (r.act == Act::kToken) return stream.word("token");
      return stream.word(r.act == Act::kCount ? "chunks" : "bytes");
    case Act::kForget:
    case Act::kDrop:
      stream.begin(2);
      stream.word("UNLINK");
      return stream.word(name);
  }
}

// 0: the request has its result. -EAGAIN: ask again. -ENOEXEC: the server does not know the
// scripts. Other errors are the connection's.
int Chunks::receive(Line& line, ChunkRequest& r, Last& last) {
  if (r.is_same) return repeat(last, r);
  last.result = receive_own(line, r, last);
  last.error = r.result;
  last.is_short = r.is_short;
  return last.result;
}

int Chunks::receive_own(Line& line, ChunkRequest& r, Last& last) {
  OC_ASSERT(!r.is_same);
  Connection& stream = line.connection;
  Reply reply;
  r.is_short = false;
  const Way way = r.act == Act::kWrite ? way_of(r) : Way::kScript;
  if (std::exchange(r.is_asking, false)) {
    if (const int result = stream.read(&reply); result != 0) return result;
  }
  if (way != Way::kScript) return receive_staged(stream, r, way);
  if (const int result = stream.read(&reply); result != 0) return result;
  if (reply.type == '-') return refuse(reply, r);
  if (r.act != Act::kRead) return receive_number(stream, reply, r);
  return layout_.is_packed ? receive_packed(stream, reply, r, last)
                           : receive_bytes(stream, reply, r);
}

int Chunks::receive_bytes(Connection& stream, const Reply& reply, ChunkRequest& r) {
  if (reply.type != '$' || reply.number > r.size_bytes) return -EPROTO;
  const auto here = static_cast<size_t>(reply.number);
  if (const int result = stream.read_bytes({r.bytes, here}); result != 0) return result;
  std::memset(r.bytes + here, 0, r.size_bytes - here);
  r.is_short = here < r.size_bytes;
  return stream.end_bytes();
}

int Chunks::receive_number(Connection& stream, const Reply& reply, ChunkRequest& r) {
  r.number = static_cast<uint64_t>(reply.number);
  if (reply.type == ':') {
    if (reply.number < 0) refuse_number(r);
    return 0;
  }
  const bool must_be_there = r.act == Act::kSeq || r.act == Act::kToken;
  if (reply.type == '_') {
    r.number = 0;
    if (must_be_there) r.result = -EIO;
    return 0;
  }
  char text[24] = {};
  if (reply.type != '$') return -EPROTO;
  if (reply.number >= static_cast<int64_t>(sizeof text)) {
    refuse_number(r);
    return stream.end_bytes();
  }
  const auto bytes = static_cast<size_t>(reply.number);
  if (stream.read_bytes(std::as_writable_bytes(std::span(text, bytes))) != 0 ||
      stream.end_bytes() != 0)
    return stream.error();
  const auto number = read_count({text, bytes}, INT64_MAX);
  r.number = number.value_or(0);
  if (!number) refuse_number(r);
  return 0;
}

// Somebody else wrote the fence, so it is unknown what its part contained.
void Chunks::refuse_number(ChunkRequest& r) {
  note(r.server, 0, "a fence is damaged: its count is not a number");
  r.number = 0;
  r.result = -EIO;
}

// Handles an error reply.
int Chunks::refuse(const Reply& reply, ChunkRequest& r) {
  const bool is_ask = reply.is_error("ASK");
  if (is_ask || reply.is_error("MOVED")) {
    const uint32_t to = servers_.find(word_at(reply.text, 2), r.server);
    if (to == Servers::kNobody) return -EAGAIN;
    if (!is_ask) servers_.note_moved(slots_[part_of(r)], to);
    r.is_asking = is_ask;
    if (is_ask) r.server = static_cast<uint16_t>(to);
    return -EAGAIN;
  }
  const int error = error_of(reply);
  note(r.server, 0, reply.text);
  if (error == -EAGAIN || error == -ENOEXEC) return error;
  r.result = error;
  if (error == -EIO) lose(part_of(r));
  return 0;
}

void Chunks::lose(uint32_t part) {
  OC_CHECK(part < layout_.part_count);
  is_lost_[part].store(true);
  has_lost_.store(true);
}

// Judges what a server says about a part, of which at least `least` was acknowledged. In a cluster
// the server may have been replaced without knowing it yet, so it is asked again for a while.
int Chunks::judge(uint32_t server, uint32_t part, const ChunkRequest& answer, uint64_t least) {
  OC_ASSERT(part < layout_.part_count && answer.act == Act::kSeq);
  constexpr uint64_t kDoubtNs = 5'000'000'000;
  std::atomic<uint64_t>& since_ns = suspect_since_ns_[part];
  if (answer.result == 0 && answer.number >= least) {
    since_ns.store(0, std::memory_order_relaxed);
    return 0;
  }
  if (servers_.is_retired(server)) return -EAGAIN;
  const uint64_t now_ns = base::now_ns();
  uint64_t since = since_ns.load();
  if (since == 0 && since_ns.compare_exchange_strong(since, now_ns)) since = now_ns;
  if (servers_.is_cluster() && now_ns < since + std::min(kDoubtNs, timeout_ns_ / 2)) return -EAGAIN;
  lose(part);
  return -EIO;
}

// A value that is shorter than it should be was never written, or is lost. The fence tells which.
int Chunks::judge_short_reads(Connection& stream, uint8_t group, std::span<ChunkRequest> batch) {
  if (!must_have_fences_.load(std::memory_order_acquire)) return 0;
  for (ChunkRequest& r : batch) {
    if (r.group != group || !r.is_short) continue;
    ChunkRequest look;
    look.act = Act::kSeq;
    look.at = part_of(r);
    const uint64_t least = seen_[look.at].load();
    send(stream, look);
    stream.flush();
    Reply reply;
    if (const int result = stream.read(&reply); result != 0) return result;
    r.is_short = r.is_done = false;
    if (reply.type == '-') continue;  // another server has it: it is read there
    if (const int result = receive_number(stream, reply, look); result != 0) return result;
    const int verdict = judge(r.server, part_of(r), look, least);
    r.is_done = verdict != -EAGAIN;
    if (verdict == -EIO) r.result = -EIO;
  }
  return 0;
}

// A server to which nobody spoke for a while may have been replaced by one with older data. What it
// contains of this store must be as new as what was acknowledged. -EAGAIN: it cannot say yet.
int Chunks::check_fresh(Line& line, uint32_t server) {
  if (!must_have_fences_.load(std::memory_order_acquire)) return 0;
  Connection& stream = line.connection;
  ChunkRequest r;
  r.act = Act::kSeq;
  const auto is_there = [&](uint32_t part) { return servers_.server_of(slots_[part]) == server; };
  bool is_in_doubt = false;
  uint32_t asked[kBatchMax];
  uint64_t least[kBatchMax];  // as of before it was asked, because others write meanwhile
  for (uint32_t part = 0; part < layout_.part_count;) {
    size_t count = 0;
    for (; part < layout_.part_count && count < kBatchMax; ++part) {
      if (!is_there(part)) continue;
      least[count] = seen_[part].load();
      asked[count++] = part;
      r.at = part;
      send(stream, r);
    }
    stream.flush();
    for (size_t i = 0; i < count; ++i) {
      r.at = asked[i];
      r.result = 0;
      Reply reply;
      if (const int result = stream.read(&reply); result != 0) return result;
      if (reply.is_error("MOVED") || reply.is_error("ASK")) continue;  // another has it: ask there
      if (reply.type == '-') return -EAGAIN;
      if (const int result = receive_number(stream, reply, r); result != 0) return result;
      is_in_doubt = judge(server, asked[i], r, least[i]) == -EAGAIN || is_in_doubt;
    }
  }
  return is_in_doubt ? -EAGAIN : 0;
}

int Chunks::load_scripts(Connection& stream) {
  for (const std::string_view text : kScriptText) {
    stream.begin(3);
    stream.word("SCRIPT");
    stream.word("LOAD");
    stream.word(text);
  }
  stream.flush();
  for (auto& name : script_name_) {
    Reply reply;
    if (const int result = stream.read(&reply); result != 0) return result;
    if (reply.type != '$' || reply.number != 40) return -EACCES;
    char heard[41] = {};
    if (stream.read_bytes(std::as_writable_bytes(std::span(heard, 40))) != 0 ||
        stream.end_bytes() != 0)
      return stream.error();
    if (name[0] == 0) std::memcpy(name, heard, sizeof heard);
  }
  return 0;
}

}  // namespace outcore::redis
