// Lines: the connections to servers, each of which one thread holds at a time.
//
// Any thread; the fault path: waits end at a deadline. A forked child opens connections of its own.
#pragma once

#include <cstdint>
#include <span>

#include "far/redis/server_table.h"

namespace outcore::redis {

// See Servers for what the functions promise.
class Lines {
 public:
  explicit Lines(ServerTable& table) : table_(table) {}

  Line* acquire(uint32_t server, Use use, uint64_t deadline_ns, int* error);
  Line* try_acquire(uint32_t server, Use use, bool* is_unopened);
  void release(Line* line);
  bool has_waiting(uint32_t server) const { return table_.at(server).waiting.is_any(); }
  bool is_checked(const Line& line, uint32_t server) const {
    return !line.is_fresh && line.epoch != 0 && line.epoch == table_.epoch(server);
  }
  int end_abandoned(Line& line);
  // Keeps what the line's server said, for messages, if the error is that it refuses.
  void note_refusal(const Line& line, int error);

 private:
  int open(Line& line, uint32_t server, Use use, uint64_t deadline_ns);
  std::span<Line> lines_of(uint32_t server, Use use) const;

  ServerTable& table_;
};

}  // namespace outcore::redis
