// ReplyReader: what the reply of a server means for the request that it answers: bytes, a number, a
// redirection, a refusal.
//
// Any thread; the fault path.
#pragma once

#include "far/redis/store_state.h"

namespace outcore::redis {

class ReplyReader {
 public:
  explicit ReplyReader(StoreState& state) : state_(state) {}

  // 0: the request has its result. Other errors are the connection's.
  int read_bytes(Connection& stream, const Reply& reply, ChunkRequest& r);
  int read_number(Connection& stream, const Reply& reply, ChunkRequest& r);
  // Handles an error reply. 0: the request has its result. -EAGAIN: ask again, maybe elsewhere.
  // -ENOEXEC: the server does not know the scripts.
  int refuse(const Reply& reply, ChunkRequest& r);

 private:
  void refuse_number(ChunkRequest& r);

  StoreState& state_;
};

}  // namespace outcore::redis
