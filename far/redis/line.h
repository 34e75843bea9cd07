// Line: a connection to a server, and who holds it.
#pragma once

#include <atomic>
#include <cstdint>

#include "far/redis/connection.h"
#include "far/redis/generation.h"

namespace outcore::redis {

// Writes have connections of their own, so that they do not wait behind fills, and so that WAIT
// counts exactly what was written.
enum class Use : uint8_t { kRead, kWrite, kControl };

struct Line {
  Connection connection;
  // Opened since check_fresh() was last asked: the server may contain older data than before. The
  // same is true if its epoch differs from the one of the last check.
  bool is_fresh = false;
  uint32_t epoch = 0;

  // Ends the connection in the middle of what was sent. A write that is still on its way must not
  // be carried out after what is sent instead of it: see Lines::end_abandoned().
  void abandon() {
    if (client_id != 0) abandoned_id.store(client_id);
    connection.abandon();
  }

  // Used by Lines alone.
  Holder holder;
  uint32_t opened_by = 0;  // the generation of the process that opened it
  uint32_t server = 0;
  uint64_t client_id = 0;  // how the server names this connection, if it is for writes
  std::atomic<uint64_t> abandoned_id{0};
};

}  // namespace outcore::redis
