#include "far/redis/copy_watch.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "core/base/clock.h"

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

uint32_t CopyWatch::acknowledging(uint32_t server, uint32_t wanted) const {
  const Server& it = table_.at(server);
  return it.copies.load() == Copies::kGone ? std::min(wanted, it.left.load()) : wanted;
}

void CopyWatch::note_shortage(uint32_t server, uint32_t acknowledged) {
  Server& it = table_.at(server);
  it.acknowledged.store(acknowledged);
  uint64_t never = 0;
  it.short_since_ns.compare_exchange_strong(never, base::now_ns());
  is_short_.store(true, std::memory_order_release);
}

void CopyWatch::note_acknowledged(uint32_t server, bool was_returning) {
  Server& it = table_.at(server);
  if (it.short_since_ns.load(std::memory_order_relaxed) != 0) it.short_since_ns.store(0);
  auto returning = Copies::kReturning;
  if (was_returning && it.copies.compare_exchange_strong(returning, Copies::kThere))
    say(it.address, "has a replica again, which has all that was written");
}

bool CopyWatch::is_time_to_probe(Server& server, uint64_t now_ns) {
  uint64_t last_ns = server.probed_ns.load();
  return now_ns >= last_ns + kProbeNs && server.probed_ns.compare_exchange_strong(last_ns, now_ns);
}

bool CopyWatch::may_probe(uint32_t server) {
  Server& it = table_.at(server);
  return it.copies.load() == Copies::kGone && is_time_to_probe(it, base::now_ns());
}

// Writes that were made without the replica may be acknowledged after what the probe wrote. So the
// copy counts only when something that was sent after this has been acknowledged.
void CopyWatch::note_found(uint32_t server) {
  auto gone = Copies::kGone;
  table_.at(server).copies.compare_exchange_strong(gone, Copies::kReturning);
}

bool CopyWatch::is_unreplicated() const {
  for (uint32_t i = 0; i < table_.count(); ++i)
    if (table_.at(i).copies.load() != Copies::kThere) return true;
  return false;
}

void CopyWatch::judge(uint32_t asked, std::span<const uint16_t> heard) {
  if (table_.options().has_standby || table_.options().replicas == 0) return;
  bool has_slots[ServerTable::kServersMax] = {};
  for (const uint16_t server : heard)
    if (server != ServerTable::kNobody) has_slots[server] = true;
  const uint64_t now_ns = base::now_ns();
  for (uint32_t i = 0; i < table_.count(); ++i) {
    Server& it = table_.at(i);
    const uint64_t since_ns = it.short_since_ns.load();
    if (!has_slots[i]) {  // what it lacked now concerns another server
      it.short_since_ns.store(0);
      it.copies.store(Copies::kThere);
      continue;
    }
    if (since_ns == 0 || table_.options().alone_after_ns == 0) continue;
    if (now_ns < since_ns + table_.options().alone_after_ns) continue;
    if (table_.is_cluster() && i == asked) continue;
    const uint32_t left = table_.is_cluster() ? it.replicas.load() : it.acknowledged.load();
    if (left >= table_.options().replicas) continue;
    it.left.store(left);
    it.short_since_ns.store(0);
    if (it.copies.exchange(Copies::kGone) == Copies::kThere)
      say(it.address,
          "has too few replicas: what is written there is lost with it until one comes back "
          "(replicas=N! stops instead)");
  }
}

}  // namespace outcore::redis
