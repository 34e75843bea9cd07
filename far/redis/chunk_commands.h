// ChunkCommands: the commands that carry out the requests of a store, and how they are answered.
//
// Any thread; the fault path.
#pragma once

#include "far/redis/packed_values.h"
#include "far/redis/reply_reader.h"
#include "far/redis/staged_writes.h"
#include "far/redis/store_state.h"

namespace outcore::redis {

class ChunkCommands {
 public:
  ChunkCommands(StoreState& state, ReplyReader& replies, PackedValues& packed, StagedWrites& staged)
      : state_(state), replies_(replies), packed_(packed), staged_(staged) {}

  void send(Connection& stream, const ChunkRequest& r);
  // 0: the request has its result. -EAGAIN: ask again. -ENOEXEC: the server does not know the
  // scripts. Other errors are the connection's.
  int receive(Line& line, ChunkRequest& r, LastValue& last);

 private:
  void send_script(Connection& stream, Script script, const ChunkRequest& r);
  int receive_own(Line& line, ChunkRequest& r, LastValue& last);

  StoreState& state_;
  ReplyReader& replies_;
  PackedValues& packed_;
  StagedWrites& staged_;
};

}  // namespace outcore::redis
