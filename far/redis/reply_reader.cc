#include "far/redis/reply_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

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

int ReplyReader::read_bytes(Connection& stream, const Reply& reply, ChunkRequest& r) {
  if (reply.type != '$' || reply.number > r.size_bytes) return -EPROTO;
  const auto here = static_cast<size_t>(reply.number);
  if (const int result = stream.read_bytes({r.bytes, here}); result != 0) return result;
  std::memset(r.bytes + here, 0, r.size_bytes - here);
  r.is_short = here < r.size_bytes;
  return stream.end_bytes();
}

int ReplyReader::read_number(Connection& stream, const Reply& reply, ChunkRequest& r) {
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
void ReplyReader::refuse_number(ChunkRequest& r) {
  state_.failure.note(r.server, 0, "a fence is damaged: its count is not a number");
  r.number = 0;
  r.result = -EIO;
}

int ReplyReader::refuse(const Reply& reply, ChunkRequest& r) {
  const bool is_ask = reply.is_error("ASK");
  if (is_ask || reply.is_error("MOVED")) {
    const uint32_t to = state_.servers.find(word_at(reply.text, 2), r.server);
    if (to == Servers::kNobody) return -EAGAIN;
    if (!is_ask) state_.servers.note_moved(state_.keys.slot_of(state_.part_of(r)), to);
    r.is_asking = is_ask;
    if (is_ask) r.server = static_cast<uint16_t>(to);
    return -EAGAIN;
  }
  const int error = error_of(reply);
  state_.failure.note(r.server, 0, reply.text);
  if (error == -EAGAIN || error == -ENOEXEC) return error;
  r.result = error;
  if (error == -EIO) state_.fences.lose(state_.part_of(r));
  return 0;
}

}  // namespace outcore::redis
