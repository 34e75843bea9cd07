#include "far/redis/standby.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <span>
#include <string_view>

#include "core/base/clock.h"

namespace outcore::redis {
namespace {

constexpr uint64_t kGoneNs = 2'000'000'000;  // silent for so long: the standby is asked
constexpr uint64_t kLeftNs = 5'000'000'000;  // after so long a silence, the standby is given up
constexpr uint64_t kForgottenNs =
    10'000'000'000;  // two silences with so long between them are not one

// What a server says about itself.
struct Role {
  bool is_master = false;
  bool is_linked = false;  // of a replica: it is connected to its master
};

// Reads "master" and more, or "slave", host, port, state of the link and more.
int read_role(Connection& stream, Role* role) {
  Reply reply;
  if (const int result = stream.ask({"ROLE"}, &reply); result != 0) return result;
  if (reply.type != '*') return stream.refuse(reply);
  int64_t left = reply.number;
  for (int64_t word = 0; left > 0; --left, ++word) {
    if (const int result = stream.read(&reply); result != 0) return result;
    if (reply.type == '*') left += reply.number;
    if (reply.type != '$') continue;
    char text[32] = {};
    const size_t bytes = std::min<size_t>(static_cast<size_t>(reply.number), sizeof text - 1);
    if (stream.read_bytes(std::as_writable_bytes(std::span(text, bytes))) != 0 ||
        stream.end_bytes() != 0)
      return stream.error();
    if (word == 0) role->is_master = std::strcmp(text, "master") == 0;
    if (word == 3) role->is_linked = std::strcmp(text, "connected") == 0;
  }
  return 0;
}

// Of a replica without its master: whether it has got all that there was once, and what came later.
int ask_has_copied(Connection& stream, bool* has_copied) {
  constexpr std::string_view kField = "\nslave_repl_offset:";
  Reply reply;
  if (const int result = stream.ask({"INFO", "replication"}, &reply); result != 0) return result;
  if (reply.type != '$') return stream.refuse(reply);
  char text[2048];
  const size_t bytes = std::min<size_t>(static_cast<size_t>(reply.number), sizeof text);
  if (stream.read_bytes(std::as_writable_bytes(std::span(text, bytes))) != 0 ||
      stream.end_bytes() != 0)
    return stream.error();
  const size_t at = std::string_view(text, bytes).find(kField);
  int64_t offset = 0;  // 1: it has got nothing
  if (at != std::string_view::npos)
    std::from_chars(text + at + kField.size(), text + bytes, offset);
  *has_copied = offset > 1;
  return 0;
}

int make_master(Connection& stream) {
  Reply reply;
  if (const int result = stream.ask({"REPLICAOF", "NO", "ONE"}, &reply); result != 0) return result;
  return reply.type == '+' ? 0 : stream.refuse(reply);
}

}  // namespace

uint64_t Standby::Silence::extend(uint64_t now_ns) {
  if (since_ns == 0 || now_ns > seen_ns + kForgottenNs) since_ns = now_ns;
  seen_ns = now_ns;
  return now_ns - since_ns;
}

uint32_t Standby::acknowledging(uint32_t server, uint32_t wanted) const {
  if (table_.options().alone_after_ns == 0) return wanted;
  const Turn turn = turn_.load(std::memory_order_acquire);
  // A write that was on its way to the first server when the standby took over is not acknowledged
  // there, and is repeated.
  return (server == 0 && turn == Turn::kFirstAlone) || (server == 1 && turn >= Turn::kChanges)
             ? 0
             : wanted;
}

int Standby::ask(uint64_t deadline_ns) {
  const auto soon = [&] { return std::min(deadline_ns, base::now_ns() + SlotReader::kAskNs); };
  if (turn_.load() < Turn::kChanges) {
    const int result = slot_reader_.ask(0, soon());
    const bool is_gone =
        result != 0 && result != -EACCES && result != -EBUSY && !Connection::is_refusal(result);
    if (!is_gone) first_silence_.end();
    if (is_gone && first_silence_.extend(base::now_ns()) < kGoneNs) return result;
    // A standby that was given up lacks what was written since.
    if (turn_.load() == Turn::kFirstAlone || (!is_gone && !copies_.end_shortage())) return result;
    const int standby = look_at_standby(is_gone, soon());
    if (turn_.load() < Turn::kChanges) return is_gone ? standby : result;
  }
  if (turn_.load() == Turn::kChanges)
    if (const int result = make_standby_serve(soon()); result != 0) return result;
  return slot_reader_.ask(1, soon());
}

// Finds out whether the standby has taken over, has to take over, or is gone itself.
int Standby::look_at_standby(bool is_first_gone, uint64_t deadline_ns) {
  int error = 0;
  Role role;
  bool must_serve = false;
  Line* const line = lines_.acquire(1, Use::kControl, deadline_ns, &error);
  if (line != nullptr) {
    error = read_role(line->connection, &role);
    // A standby that is connected to the first server must not be used instead of it.
    must_serve = error == 0 && (role.is_master || (is_first_gone && !role.is_linked));
    CopyCheck* const check = check_.load();
    if (must_serve && check != nullptr) error = check->check_copy(line->connection, 1);
    if (bool has_copied = false; error == -ENOTCONN && !role.is_master) {
      error = ask_has_copied(line->connection, &has_copied);
      if (error == 0 && !has_copied) error = -EAGAIN;
    }
    if (error != 0) line->connection.close();
    lines_.release(line);
  }
  const bool is_there = error == 0 || error == -EAGAIN;
  if (is_there) standby_silence_.end();
  const bool is_gone = !is_there && standby_silence_.extend(base::now_ns()) >= kLeftNs;
  if (is_gone && !is_first_gone && table_.options().alone_after_ns != 0)
    turn_.store(Turn::kFirstAlone, std::memory_order_release);
  if (error != 0) return error;
  if (must_serve) turn_.store(Turn::kChanges);
  return must_serve ? 0 : -EAGAIN;
}

int Standby::make_standby_serve(uint64_t deadline_ns) {
  int error = 0;
  Line* const line = lines_.acquire(1, Use::kControl, deadline_ns, &error);
  if (line == nullptr) return error;
  error = make_master(line->connection);
  if (error != 0) line->connection.close();
  lines_.release(line);
  if (error == 0) turn_.store(Turn::kSecond, std::memory_order_release);
  return error;
}

}  // namespace outcore::redis
