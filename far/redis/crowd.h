// Crowd: threads that want to read from a server all of whose connections are busy.
//
// Whoever gets a connection next takes the requests of the others along: one call of the kernel
// sends them all, and a server answers them together (flat combining, Hendler et al., SPAA 2010).
// The fault path; what waits lies on the stacks of those who wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "far/redis/generation.h"

namespace outcore::redis {

struct ChunkRequest;
struct Line;

struct Rider {
  enum State : uint32_t { kWaiting, kLeads, kCarried };

  std::span<ChunkRequest> batch;
  Line* line = nullptr;  // of one that leads: it is his now
  // kCarried: the batch has been asked for; what is not done has to be asked for again. The rider
  // may be gone as soon as this is stored.
  std::atomic<uint32_t> state{kWaiting};
  Rider* next = nullptr;
};

class Crowd {
 public:
  void join(Rider* rider);
  // False: somebody has taken it along already.
  bool leave(Rider* rider);
  // The one that has waited longest, if its batch has at most so many requests; nullptr: none.
  Rider* take(size_t requests_max);
  bool is_empty() const { return count_.load(std::memory_order_seq_cst) == 0; }

 private:
  // Signals are blocked and the list is this process' own.
  class Held;

  Holder holder_;
  std::atomic<uint32_t> count_{0};
  uint32_t process_ = 0;  // a generation
  Rider* first_ = nullptr;
  Rider* last_ = nullptr;
};

}  // namespace outcore::redis
