#include "far/redis/combined_reads.h"

#include <algorithm>

#include "core/base/assert.h"
#include "core/base/clock.h"
#include "core/os/wait.h"

namespace outcore::redis {
namespace {

constexpr size_t kSmallMax = 4;      // requests of one thread that waits in the queue
constexpr size_t kTogetherMax = 48;  // requests; the array is on the leader's stack
constexpr size_t kQueuedMax = 32;
constexpr uint64_t kLookNs = 5'000'000;  // a waiting thread looks for a free connection this often

}  // namespace

void CombinedReads::read(std::span<ChunkRequest> batch, uint64_t deadline_ns) {
  const uint32_t server = batch.front().server;
  const bool is_simple = server != Servers::kNobody && batch.size() <= kSmallMax &&
                         std::all_of(batch.begin(), batch.end(), [&](const ChunkRequest& r) {
                           return r.act == Act::kRead && r.server == server;
                         });
  if (!is_simple) return;
  OC_CHECK(server < Servers::kServersMax);
  bool is_unopened = false;
  Line* line = state_.servers.try_acquire(server, Use::kRead, &is_unopened);
  if (line == nullptr && is_unopened) return;
  if (line != nullptr) return lead(line, batch, deadline_ns);
  CombiningQueue& queue = queues_[server];
  QueuedBatch waiting;
  waiting.batch = batch;
  queue.join(&waiting);
  for (;;) {
    // Done before the first wait, too: a connection may have become free before this thread joined.
    line = state_.servers.try_acquire(server, Use::kRead, &is_unopened);
    const bool must_leave = line != nullptr || is_unopened || base::now_ns() >= deadline_ns;
    if (must_leave && queue.leave(&waiting)) break;
    if (line != nullptr) release(line, server);
    line = nullptr;
    os::wait(&waiting.state, QueuedBatch::kWaiting, kLookNs);
    const uint32_t state = waiting.state.load(std::memory_order_acquire);
    if (state == QueuedBatch::kDone) return;
    if (state == QueuedBatch::kIsLeader) line = waiting.line;
    if (line != nullptr) break;
  }
  if (line != nullptr) lead(line, batch, deadline_ns);
}

// The leader: sends its own batch and those of waiting threads, then passes the connection on.
void CombinedReads::lead(Line* line, std::span<ChunkRequest> batch, uint64_t deadline_ns) {
  OC_CHECK(line != nullptr && batch.size() <= kTogetherMax);
  const uint32_t server = batch.front().server;
  CombiningQueue& queue = queues_[server];
  ChunkRequest all[kTogetherMax];
  QueuedBatch* queued[kQueuedMax];
  size_t count = batch.size(), queued_count = 0;
  std::copy(batch.begin(), batch.end(), all);
  while (queued_count < kQueuedMax) {
    QueuedBatch* const waiting = queue.dequeue(kTogetherMax - count);
    if (waiting == nullptr) break;
    std::copy(waiting->batch.begin(), waiting->batch.end(), all + count);
    count += waiting->batch.size();
    queued[queued_count++] = waiting;
  }
  OC_CHECK(count <= kTogetherMax);
  line->connection.set_deadline(deadline_ns);
  line->connection.set_hasty(true);
  ask_together(line, server, {all, count});
  line->connection.set_hasty(false);
  release(line, server);
  std::copy_n(all, batch.size(), batch.begin());
  const ChunkRequest* next = all + batch.size();
  for (QueuedBatch* const waiting : std::span(queued, queued_count)) {
    std::copy_n(next, waiting->batch.size(), waiting->batch.begin());
    next += waiting->batch.size();
    waiting->state.store(QueuedBatch::kDone, std::memory_order_release);
    os::wake(&waiting->state, 1);
  }
}

void CombinedReads::ask_together(Line* line, uint32_t server, std::span<ChunkRequest> all) {
  Group group{server, false, line};
  for (ChunkRequest& r : all) {
    r.group = ChunkRequest::kUnsent;
    exchange_.send(group, 0, r);
  }
  line->connection.flush();
  exchange_.conclude(group, 0, all);
}

void CombinedReads::release(Line* line, uint32_t server) {
  OC_ASSERT(line != nullptr);
  CombiningQueue& queue = queues_[server];
  const bool is_for_queued = line->connection.is_open() && !state_.servers.has_waiting(server);
  QueuedBatch* const next = is_for_queued ? queue.dequeue(kTogetherMax) : nullptr;
  if (next == nullptr) return state_.servers.release(line);
  next->line = line;
  next->state.store(QueuedBatch::kIsLeader, std::memory_order_release);
  os::wake(&next->state, 1);
}

}  // namespace outcore::redis
