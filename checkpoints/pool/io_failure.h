// IoFailure: the message of the last failed read or write, kept until somebody asks for it. Any
// thread; the fault path may call note(). Only text() allocates.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "core/os/wait.h"

namespace outcore::versioned {

class IoFailure {
 public:
  // Replaces the message; longer texts are cut.
  void note(const char* text) {
    const os::SignalBlock block;
    const os::Locked locked(lock_);
    const size_t size = std::min(std::strlen(text), sizeof text_ - 1);
    std::memcpy(text_, text, size);
    text_[size] = '\0';
  }
  // Empty: nothing has failed.
  std::string text() const {
    char copy[sizeof text_];
    {
      const os::SignalBlock block;
      const os::Locked locked(lock_);
      std::memcpy(copy, text_, sizeof copy);
    }
    return copy;
  }

 private:
  mutable os::Lock lock_;
  char text_[512] = {};
};

}  // namespace outcore::versioned
