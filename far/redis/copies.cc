// Whether what a server holds has the copies that were asked for, and what becomes of writes where
// it has not. See servers.h.
//
// A server whose replica took its place, or whose replica died, has none. It is waited for, as
// another may come; then writes go on without, which is said once, until a replica has all of it.
//
// In a cluster that is safe only if nobody is left who could take the server's place: he would not
// have what was written without him. So it is never a lack of acknowledgements alone that counts: a
// server other than the one in question has to say that the cluster knows no replica of it that
// lives. A master that is cut off from its replica waits, until it is replaced.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "core/base/clock.h"
#include "far/redis/servers.h"

namespace outcore::redis {
namespace {

constexpr uint64_t kProbeNs = 1'000'000'000;

void say(const Address& server, const char* what) {
  char line[300];
  const int used = std::snprintf(line, sizeof line, "outcore: server %s %s\n", server.text, what);
  const ssize_t ignored =
      ::write(STDERR_FILENO, line, std::min<size_t>(static_cast<size_t>(used), sizeof line - 1));
  static_cast<void>(ignored);
}

}  // namespace

uint32_t Servers::acknowledging(uint32_t server, uint32_t wanted) const {
  if (options_.has_standby) return acknowledging_of_pair(server, wanted);
  const Server& it = *servers_[server].load();
  return it.copies.load() == Copies::kGone ? std::min(wanted, it.left.load()) : wanted;
}

void Servers::note_shortage(uint32_t server, uint32_t acknowledged) {
  Server& it = *servers_[server].load();
  it.acknowledged.store(acknowledged);
  uint64_t never = 0;
  it.short_since_ns.compare_exchange_strong(never, base::now_ns());
  is_short_.store(true, std::memory_order_release);
}

void Servers::note_acknowledged(uint32_t server, bool was_returning) {
  Server& it = *servers_[server].load();
  if (it.short_since_ns.load(std::memory_order_relaxed) != 0) it.short_since_ns.store(0);
  auto returning = Copies::kReturning;
  if (was_returning && it.copies.compare_exchange_strong(returning, Copies::kThere))
    say(it.address, "has a replica again, which has all that was written");
}

// By what is connected: whether it acknowledges, the next write finds out.
bool Servers::has_replicas(uint32_t server) {
  const uint64_t until_ns = base::now_ns() + kAskNs;
  int error = 0;
  Reply reply;
  if (Line* const line = acquire(server, Use::kControl, until_ns, &error); line != nullptr) {
    char count[24];
    char* const end = std::to_chars(count, count + sizeof count, options_.replicas).ptr;
    const std::string_view wanted(count, static_cast<size_t>(end - count));
    error = line->connection.ask({"WAIT", wanted, "100"}, &reply);
    if (error != 0) line->connection.close();
    release(line);
  }
  if (error == 0 && reply.type == ':' && reply.number >= options_.replicas) return true;
  refresh(until_ns);  // another may have its place
  return false;
}

bool Servers::is_stopped(uint64_t after_ns) {
  if (options_.alone_after_ns != 0 || options_.replicas == 0) return false;
  bool is_stopped = false;
  for (uint32_t i = 0; i < count(); ++i) {
    Server& it = *servers_[i].load();
    const uint64_t since_ns = it.short_since_ns.load(), now_ns = base::now_ns();
    if (since_ns == 0 || now_ns < since_ns + after_ns) continue;
    if (is_time_to_probe(it, now_ns) && has_replicas(i))
      it.short_since_ns.store(0);
    else
      is_stopped = true;
  }
  return is_stopped;
}

bool Servers::is_time_to_probe(Server& server, uint64_t now_ns) {
  uint64_t last_ns = server.probed_ns.load();
  return now_ns >= last_ns + kProbeNs && server.probed_ns.compare_exchange_strong(last_ns, now_ns);
}

bool Servers::may_probe(uint32_t server) {
  Server& it = *servers_[server].load();
  return it.copies.load() == Copies::kGone && is_time_to_probe(it, base::now_ns());
}

// What was written without it may have been acknowledged after what the probe wrote. So the copy
// counts when something that was sent after this has been acknowledged.
void Servers::note_found(uint32_t server) {
  auto gone = Copies::kGone;
  servers_[server].load()->copies.compare_exchange_strong(gone, Copies::kReturning);
}

bool Servers::is_unreplicated() const {
  if (options_.replicas == 0) return false;
  if (options_.has_standby) return turn_.load() >= Turn::kFirstAlone;
  for (uint32_t i = 0; i < count(); ++i)
    if (servers_[i].load()->copies.load() != Copies::kThere) return true;
  return false;
}

// REQUIRES: asking_; `asked` has just said who has which slots.
void Servers::judge_copies(uint32_t asked) {
  if (options_.has_standby || options_.replicas == 0) return;
  bool has_slots[kServersMax] = {};
  for (const uint16_t server : heard_)
    if (server != kNobody) has_slots[server] = true;
  const uint64_t now_ns = base::now_ns();
  for (uint32_t i = 0; i < count(); ++i) {
    Server& it = *servers_[i].load();
    const uint64_t since_ns = it.short_since_ns.load();
    if (!has_slots[i]) {  // what it lacked is another's business now
      it.short_since_ns.store(0);
      it.copies.store(Copies::kThere);
      continue;
    }
    if (since_ns == 0 || options_.alone_after_ns == 0) continue;
    if (now_ns < since_ns + options_.alone_after_ns) continue;
    if (is_cluster() && i == asked) continue;
    const uint32_t left = is_cluster() ? it.replicas.load() : it.acknowledged.load();
    if (left >= options_.replicas) continue;
    it.left.store(left);
    it.short_since_ns.store(0);
    if (it.copies.exchange(Copies::kGone) == Copies::kThere)
      say(it.address,
          "has too few replicas: what is written there is lost with it until one comes back "
          "(replicas=N! stops instead)");
  }
}

}  // namespace outcore::redis
