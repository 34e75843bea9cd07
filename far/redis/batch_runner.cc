#include "far/redis/batch_runner.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/clock.h"
#include "core/os/wait.h"

namespace outcore::redis {
namespace {

bool is_all_done(std::span<const ChunkRequest> batch) {
  return std::all_of(batch.begin(), batch.end(), [](const ChunkRequest& r) { return r.is_done; });
}

void sleep_ns(uint64_t ns) {
  std::atomic<uint32_t> nobody{0};
  os::wait(&nobody, 0, ns);
}

}  // namespace

void BatchRunner::run(std::span<ChunkRequest> batch) {
  OC_ASSERT(batch.size() <= ChunkRequest::kBatchMax);
  const uint64_t start_ns = base::now_ns(), deadline_ns = start_ns + state_.timeout_ns;
  for (ChunkRequest& r : batch) {
    OC_ASSERT(state_.part_of(r) < state_.layout().part_count);
    OC_ASSERT(is_of_part(r.act) || (state_.layout().is_packed && r.act == Act::kWrite) ||
              uint64_t{r.offset} + r.size_bytes <= state_.layout().chunk_bytes);
    OC_ASSERT((r.act != Act::kRead && r.act != Act::kWrite) || r.bytes != nullptr);
    r.result = 0;
    r.is_done = r.is_asking = r.is_plain = r.is_short = false;
  }
  assign(batch);
  if (state_.servers.is_stopped(state_.timeout_ns))
    for (ChunkRequest& r : batch)
      if (r.act == Act::kWrite || r.act == Act::kZero) {
        r.result = -ETIMEDOUT;
        r.is_done = true;
      }
  if (!batch.empty()) combined_reads_.read(batch, deadline_ns);
  if (is_all_done(batch)) return;
  bool has_refreshed = false;
  for (uint64_t pause_ns = 500'000;; pause_ns = std::min<uint64_t>(2 * pause_ns, 100'000'000)) {
    assign(batch);
    if (round(batch, deadline_ns)) return;
    if (base::now_ns() >= deadline_ns) break;
    if (std::all_of(batch.begin(), batch.end(), [&](const ChunkRequest& r) {
          return r.is_done || is_given_up(r, start_ns, has_refreshed);
        }))
      break;
    const bool is_redirected = std::any_of(batch.begin(), batch.end(), [](const ChunkRequest& r) {
      return !r.is_done && r.is_asking;
    });
    if (is_redirected) continue;
    sleep_ns(pause_ns);
    state_.servers.refresh(deadline_ns);
    has_refreshed = true;
  }
  for (ChunkRequest& r : batch)
    if (!r.is_done) r.result = -ETIMEDOUT;
}

// Whether others have waited for this server as long as a request may. Otherwise a flush of many
// pages would wait that long for each of them. A write whose server is no longer there waits for
// nothing more once it is known that no other has its place: pages that other servers take leave
// memory in the same batches, and the program may wait for their room. Who reads would get an
// error, and the server may be starting.
bool BatchRunner::is_given_up(const ChunkRequest& r, uint64_t start_ns, bool has_refreshed) const {
  if (r.server == Servers::kNobody) return false;
  const uint64_t since_ns =
      state_.servers.silent_since_ns(r.server, is_change(r.act) ? Use::kWrite : Use::kRead);
  const uint64_t now_ns = base::now_ns();
  return since_ns != 0 && now_ns >= since_ns + state_.timeout_ns &&
         ((r.is_unheard && is_change(r.act) && has_refreshed) ||
          now_ns >= start_ns + GroupExchange::kGraceNs);
}

void BatchRunner::assign(std::span<ChunkRequest> batch) {
  for (ChunkRequest& r : batch)
    if (!r.is_done && !r.is_asking)
      r.server =
          static_cast<uint16_t>(state_.servers.server_of(state_.keys.slot_of(state_.part_of(r))));
}

// Finds the servers and directions of requests that are not done, in ascending order, so that two
// batches that hold some connections while they wait for others cannot wait for each other.
size_t BatchRunner::find_groups(std::span<const ChunkRequest> batch, Group* groups) {
  size_t count = 0;
  for (const ChunkRequest& r : batch) {
    if (r.is_done || r.server == Servers::kNobody) continue;
    const Group wanted{r.server, is_change(r.act), nullptr};
    const auto key = [](const Group& g) { return 2 * g.server + (g.is_write ? 1 : 0); };
    Group* const end = groups + count;
    Group* const place = std::lower_bound(
        groups, end, wanted, [&](const Group& a, const Group& b) { return key(a) < key(b); });
    if ((place != end && key(*place) == key(wanted)) || count == kGroupsMax) continue;
    std::move_backward(place, end, end + 1);
    *place = wanted;
    ++count;
  }
  OC_ASSERT(count <= kGroupsMax);
  return count;
}

// Asks all servers once. True: everything is done.
bool BatchRunner::round(std::span<ChunkRequest> batch, uint64_t deadline_ns) {
  Group groups[kGroupsMax + 1];
  const size_t count = find_groups(batch, groups);
  for (ChunkRequest& r : batch) {
    r.group = ChunkRequest::kUnsent;
    r.is_unheard = false;
  }
  for (size_t i = 0; i < count; ++i) {
    Group& group = groups[i];
    if (const int error = exchange_.open(group, deadline_ns); error != 0) {
      for (ChunkRequest& r : batch) {
        if (r.server != group.server) continue;
        r.is_asking = false;
        r.is_unheard = r.is_unheard || error == -ECONNREFUSED;
      }
      continue;
    }
    OC_ASSERT(group.line != nullptr && group.line->connection.is_open());
    group.was_returning = state_.servers.is_returning(group.server);
    group.replicas = state_.servers.acknowledging(group.server, state_.replicas);
    for (ChunkRequest& r : batch) {
      if (r.is_done || r.server != group.server || is_change(r.act) != group.is_write) continue;
      exchange_.send(group, static_cast<uint8_t>(i), r);
    }
    if (group.is_write && state_.replicas > 0) exchange_.send_wait(group, deadline_ns);
    group.line->connection.flush();
  }
  for (size_t i = 0; i < count; ++i) {
    Group& group = groups[i];
    if (group.line == nullptr) continue;
    exchange_.conclude(group, static_cast<uint8_t>(i), batch);
    group.is_write ? state_.servers.release(group.line)
                   : combined_reads_.release(group.line, group.server);
  }
  return is_all_done(batch);
}

}  // namespace outcore::redis
