// Whether what a server contains has as many copies as were asked for, and what happens to writes
// if it has not. See servers.h.
//
// A server has no copies if its replica took its place, or if its replica died. It is waited for,
// because another replica may come. Then writes go on without copies, which is reported once, until
// a replica has everything again.
//
// In a cluster that is safe only if no other server is left that could take this server's place,
// because that one would lack what was written without it. So a lack of acknowledgements alone is
// never enough: another server has to say that the cluster knows no living replica of this one. A
// master that is cut off from its replica waits until it is replaced.
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

// Counts connected replicas. Whether they acknowledge is found out by the next write.
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
  refresh(until_ns);  // another server may have its place
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

// Writes that were made without the replica may be acknowledged after what the probe wrote. So the
// copy counts only when something that was sent after this has been acknowledged.
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

// REQUIRES: asking_ is held; `asked` has just said who has which slots.
void Servers::judge_copies(uint32_t asked) {
  if (options_.has_standby || options_.replicas == 0) return;
  bool has_slots[kServersMax] = {};
  for (const uint16_t server : heard_)
    if (server != kNobody) has_slots[server] = true;
  const uint64_t now_ns = base::now_ns();
  for (uint32_t i = 0; i < count(); ++i) {
    Server& it = *servers_[i].load();
    const uint64_t since_ns = it.short_since_ns.load();
    if (!has_slots[i]) {  // what it lacked now concerns another server
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
