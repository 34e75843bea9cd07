// LastFailure: the last network error of a store, for messages: "127.0.0.1:7000: Connection
// refused". Any thread; the fault path may note one.
#pragma once

#include <string>
#include <string_view>

#include "far/redis/generation.h"
#include "far/redis/servers.h"

namespace outcore::redis {

class LastFailure {
 public:
  explicit LastFailure(const Servers& servers) : servers_(servers) {}

  // `error`: 0 or -errno, whose description follows the text.
  void note(uint32_t server, int error, std::string_view text = {});
  std::string text() const;

 private:
  const Servers& servers_;
  mutable Holder holder_;
  char text_[256] = {};
};

}  // namespace outcore::redis
