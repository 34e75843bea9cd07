// CombiningQueue: batches of threads that want to read from one server while all connections to it
// are busy.
//
// The thread that gets the next connection is the leader: it sends the batches of the waiting
// threads together with its own, in one system call, and the server answers them together (flat
// combining, Hendler et al., SPAA 2010). Any thread; the fault path. Nothing is allocated: each
// QueuedBatch lies on the stack of the thread that waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "far/redis/generation.h"

namespace outcore::redis {

struct ChunkRequest;
struct Line;

struct QueuedBatch {
  enum State : uint32_t { kWaiting, kIsLeader, kDone };

  std::span<ChunkRequest> batch;
  Line* line = nullptr;  // Set with kIsLeader only: the connection, which this thread now owns.
  // kDone: a leader has sent the batch; requests that are not done must be asked for again. The
  // QueuedBatch may no longer exist once kDone is stored: its thread returns.
  std::atomic<uint32_t> state{kWaiting};
  QueuedBatch* next = nullptr;
};

class CombiningQueue {
 public:
  void join(QueuedBatch* waiting);
  // False: a leader has already removed it; the thread must wait for its state to change.
  bool leave(QueuedBatch* waiting);
  // Removes and returns the batch that has waited longest; nullptr if there is none, or if it has
  // more than `requests_max` requests.
  QueuedBatch* dequeue(size_t requests_max);
  bool is_empty() const { return count_.load(std::memory_order_seq_cst) == 0; }

 private:
  // The lock of the list. Blocks signals; in a forked child it first empties the list.
  class Held;

  Holder holder_;
  std::atomic<uint32_t> count_{0};
  uint32_t process_ = 0;  // the generation() in which the list was last used
  QueuedBatch* first_ = nullptr;
  QueuedBatch* last_ = nullptr;
};

}  // namespace outcore::redis
