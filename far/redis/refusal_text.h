// RefusalText: what a server said when it refused to serve last, for messages. Any thread; the
// fault path.
#pragma once

#include <cstdio>
#include <cstring>
#include <string>

#include "core/os/wait.h"
#include "far/redis/connection.h"
#include "far/redis/generation.h"

namespace outcore::redis {

class RefusalText {
 public:
  using Line = char[Connection::kRefusalBytes];

  void note(const char* text) {
    const os::SignalBlock block;  // a handler of this thread that faults may come here, too
    lock();
    std::snprintf(text_, sizeof text_, "%s", text);
    holder_.unlock();
  }
  void copy_to(Line& into) const {
    const os::SignalBlock block;
    lock();
    std::memcpy(into, text_, sizeof text_);
    holder_.unlock();
  }
  std::string text() const {
    Line line;
    copy_to(line);
    return line;
  }

 private:
  void lock() const {
    while (!holder_.try_lock()) os::yield();
  }

  mutable Holder holder_;
  Line text_ = {};
};

}  // namespace outcore::redis
