// Leaving: descriptors of the program's files that another program, or another process, is about to
// have. What is read and written by them nobody here sees, so a taken file that is written goes
// back to the kernel before. Any thread; also in processes that share our memory.
#pragma once

#include <sys/socket.h>

#include <functional>

#include "run/preload/identity.h"

namespace outcore::preload {

// The descriptor is there still after an exec.
bool stays_over_exec(int fd);
// Files of which a descriptor leaves.
void let_leave(const std::function<bool(int)>& leaves);
// The descriptor goes to another process through a socket. Nobody can tell when that has it, so the
// file is not taken for writing from now on.
void let_be_sent(int fd);
void let_descriptors_leave(const msghdr* message);  // those that the message brings to its reader
bool was_sent(const Identity& file);

// While it lives, a program is being started with what leaves. No file is taken for writing
// meanwhile: whether the new program has it cannot be told yet.
class Starting {
 public:
  explicit Starting(const std::function<bool(int)>& leaves);
  Starting(const Starting&) = delete;
  Starting& operator=(const Starting&) = delete;

  static bool is_any();

 private:
  struct Count {
    Count();
    ~Count();
  };
  const Count count_;
};

}  // namespace outcore::preload
