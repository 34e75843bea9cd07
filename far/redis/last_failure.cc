#include "far/redis/last_failure.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "core/os/wait.h"

namespace outcore::redis {

void LastFailure::note(uint32_t server, int error, std::string_view text) {
  const os::SignalBlock block;  // a handler of this thread that faults may come here, too
  while (!holder_.try_lock()) os::yield();
  std::snprintf(text_, sizeof text_, "%s: %.*s%s",
                server == Servers::kNobody ? "no server" : servers_.address(server).text,
                static_cast<int>(std::min<size_t>(text.size(), 100)), text.data(),
                error == 0 ? "" : ::strerrordesc_np(-error));
  holder_.unlock();
}

std::string LastFailure::text() const {
  char text[sizeof text_];
  {
    const os::SignalBlock block;
    while (!holder_.try_lock()) os::yield();
    std::memcpy(text, text_, sizeof text);
    holder_.unlock();
  }
  return text;
}

}  // namespace outcore::redis
