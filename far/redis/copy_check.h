// CopyCheck: what a server is asked before it takes the place of another (standby.h).
#pragma once

#include "far/redis/connection.h"

namespace outcore::redis {

class CopyCheck {
 public:
  virtual ~CopyCheck() = default;
  // 0: it has all that was acknowledged. -ENODATA: it has not. -EAGAIN: it cannot say yet.
  // -ENOTCONN: it is a replica that says nothing without its master. Else the error of the
  // connection.
  // Any thread; the fault path.
  virtual int check_copy(Connection& stream, uint32_t server) = 0;
};

}  // namespace outcore::redis
