// Reads of several threads that travel together. See crowd.h.
#include <algorithm>

#include "core/base/clock.h"
#include "core/os/wait.h"
#include "far/redis/chunks.h"

namespace outcore::redis {
namespace {

constexpr size_t kSmallMax = 4;      // requests of one who rides
constexpr size_t kTogetherMax = 48;  // requests, on the stack of whoever leads
constexpr size_t kRidersMax = 32;
constexpr uint64_t kLookNs = 5'000'000;  // a connection that nobody passed on is found after this

}  // namespace

// Asks once for small reads from one server, as leader or rider. What is not done afterwards has
// to be asked for in the general way.
void Chunks::ride(std::span<ChunkRequest> batch, uint64_t deadline_ns) {
  const uint32_t server = batch.front().server;
  const bool is_simple = server != Servers::kNobody && batch.size() <= kSmallMax &&
                         std::all_of(batch.begin(), batch.end(), [&](const ChunkRequest& r) {
                           return r.act == Act::kRead && r.server == server;
                         });
  if (!is_simple) return;
  bool is_unopened = false;
  Line* line = servers_.try_take(server, Use::kRead, &is_unopened);
  if (line == nullptr && is_unopened) return;
  if (line != nullptr) return lead(line, batch, deadline_ns);
  Crowd& crowd = crowds_[server];
  Rider rider;
  rider.batch = batch;
  crowd.join(&rider);
  for (;;) {
    // Also at once: a connection may have been given back before this thread had joined.
    line = servers_.try_take(server, Use::kRead, &is_unopened);
    const bool must_leave = line != nullptr || is_unopened || base::now_ns() >= deadline_ns;
    if (must_leave && crowd.leave(&rider)) break;
    if (line != nullptr) give(line, server);
    line = nullptr;
    os::wait(&rider.state, Rider::kWaiting, kLookNs);
    const uint32_t state = rider.state.load(std::memory_order_acquire);
    if (state == Rider::kCarried) return;
    if (state == Rider::kLeads) line = rider.line;
    if (line != nullptr) break;
  }
  if (line != nullptr) lead(line, batch, deadline_ns);
}

// Asks for the batch and for those of others, and passes the connection on.
void Chunks::lead(Line* line, std::span<ChunkRequest> batch, uint64_t deadline_ns) {
  const uint32_t server = batch.front().server;
  Crowd& crowd = crowds_[server];
  ChunkRequest all[kTogetherMax];
  Rider* riders[kRidersMax];
  size_t count = batch.size(), rider_count = 0;
  std::copy(batch.begin(), batch.end(), all);
  while (rider_count < kRidersMax) {
    Rider* const rider = crowd.take(kTogetherMax - count);
    if (rider == nullptr) break;
    std::copy(rider->batch.begin(), rider->batch.end(), all + count);
    count += rider->batch.size();
    riders[rider_count++] = rider;
  }
  line->connection.set_deadline(deadline_ns);
  line->connection.set_hasty(true);
  ask_together(line, server, {all, count});
  line->connection.set_hasty(false);
  give(line, server);
  std::copy_n(all, batch.size(), batch.begin());
  const ChunkRequest* next = all + batch.size();
  for (Rider* const rider : std::span(riders, rider_count)) {
    std::copy_n(next, rider->batch.size(), rider->batch.begin());
    next += rider->batch.size();
    rider->state.store(Rider::kCarried, std::memory_order_release);
    os::wake(&rider->state, 1);
  }
}

void Chunks::ask_together(Line* line, uint32_t server, std::span<ChunkRequest> all) {
  Group group{server, false, line};
  for (ChunkRequest& r : all) {
    r.group = ChunkRequest::kUnsent;
    send_unless_lost(group, 0, r);
  }
  line->connection.flush();
  conclude(group, 0, all);
}

// To the thread that waits longest, or back.
void Chunks::give(Line* line, uint32_t server) {
  Crowd& crowd = crowds_[server];
  const bool is_for_riders = line->connection.is_open() && !servers_.has_waiting(server);
  Rider* const next = is_for_riders ? crowd.take(kTogetherMax) : nullptr;
  if (next == nullptr) return servers_.give(line);
  next->line = line;
  next->state.store(Rider::kLeads, std::memory_order_release);
  os::wake(&next->state, 1);
}

}  // namespace outcore::redis
