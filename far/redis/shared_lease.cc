#include "far/redis/shared_lease.h"

#include <algorithm>
#include <cerrno>

#include "core/base/clock.h"
#include "far/redis/call.h"
#include "far/redis/catalog_scripts.h"

namespace outcore::redis {
namespace {

const std::string& members_script() {
  // Never destroyed: a lease is given back when the process ends, after static objects are
  // destroyed.
  static const auto* const text = new std::string(std::string(kRecordPrelude) + kMembersScript);
  return *text;
}

}  // namespace

Result<SharedLease::Answer> SharedLease::ask(const std::string& attempted, const std::string& verb,
                                             std::vector<std::string> arguments,
                                             uint64_t timeout_ns) {
  const uint32_t chance = chance_of_fence();
  Command command;
  command.words = {"EVAL", members_script(), "2", kCatalogSet,
                   std::string(kCatalogSet) + ":" + name_};
  command.words.insert(command.words.end(), {verb, name_, std::to_string(token_), member_,
                                             std::to_string(kLeaseMs), std::to_string(chance)});
  command.words.insert(command.words.end(), arguments.begin(), arguments.end());
  command.slot = slot_of(kCatalogSet);
  command.replicas = replicas_;
  const Result<Value> reply = call(servers_, command, base::now_ns() + timeout_ns);
  const std::string what = attempted + " '" + name_ + "'";
  if (!reply) return Error{reply.code(), what + ": " + reply.message()};
  const Value& value = reply.value();
  if (value.type == '-' && value.text.starts_with("FENCED"))
    return Error{ESTALE, what +
                             ": this process, or another of those that write it together, was "
                             "silent for longer than its lease"};
  if (value.type == '-') return explain_refusal(what, value.text);
  Answer answer;
  const std::string& outcome = value.field("outcome");
  if (outcome == "busy") answer.outcome = Outcome::kBusy;
  if (outcome == "broken") answer.outcome = Outcome::kBroken;
  if (outcome == "late") return Error{EPROTO, what + ": the server heard it late: try again"};
  answer.who = value.field("who");
  uint64_t token = 0, alive = 0, unheard = 0, dead = 0;
  const auto take = [&](const char* field, uint64_t* into, uint64_t most = kCountMax) {
    const std::string& text = value.field(field);
    const auto number = read_count(text.empty() ? "0" : text, most);
    *into = number.value_or(0);
    return number.has_value();
  };
  if (!take("size", &answer.size_bytes) || !take("now", &answer.now_ms) || !take("token", &token) ||
      !take("alive", &alive, UINT32_MAX) || !take("unheard", &unheard, UINT32_MAX) ||
      !take("dead", &dead, UINT32_MAX))
    return Error{EIO, what + ": its record is damaged: what the server says is not a number"};
  answer.alive = static_cast<unsigned>(alive);
  answer.unheard = static_cast<unsigned>(unheard);
  answer.dead = static_cast<unsigned>(dead);
  answer.fence_token = fence_token_of(token, chance);
  return answer;
}

Status SharedLease::renew(uint64_t timeout_ns) {
  return ask("renew the lease of", "renew", {}, timeout_ns).status();
}

Status SharedLease::set_state(State state) {
  return ask("write", "be", {std::string(1, static_cast<char>(state))}, timeout_ns_).status();
}

Result<SharedLease::Answer> SharedLease::lock(const std::string& what) {
  const uint64_t turn = what == kCatalogLock ? turn_.load() + 1 : 0;
  return ask("lock " + what + " of", "lock", {what, std::to_string(turn)}, timeout_ns_);
}

Status SharedLease::unlock(const std::string& what) {
  const uint64_t turn = what == kCatalogLock ? turn_.fetch_add(1) + 1 : 0;
  return ask("unlock " + what + " of", "unlock", {what, std::to_string(turn)}, timeout_ns_)
      .status();
}

Result<SharedLease::Answer> SharedLease::others(uint64_t since_ms, bool may_break) {
  return ask("look at the writers of", "others", {std::to_string(since_ms), may_break ? "1" : "0"},
             timeout_ns_);
}

Status SharedLease::leave() {
  constexpr uint64_t kWaitNs = 2'000'000'000;
  return ask("leave", "leave", {}, std::min(timeout_ns_, kWaitNs)).status();
}

}  // namespace outcore::redis
