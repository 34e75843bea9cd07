// Leaving: descriptors of the program's files that another program or process is about to get. We
// do not see what is read and written through them, so a taken file that is written is handed back
// to the kernel first. Any thread; also in processes that share our memory.
#pragma once

#include <sys/socket.h>

#include <functional>

#include "run/preload/identity.h"

namespace outcore::preload {

// Whether the descriptor stays open over an exec.
bool stays_over_exec(int fd);
// Hands back the files of those descriptors for which leaves(descriptor) is true.
void let_leave(const std::function<bool(int)>& leaves);
// The descriptor is sent to another process through a socket. We cannot know when that process has
// it, so the file is not taken for writing from now on.
void let_be_sent(int fd);
void let_descriptors_leave(const msghdr* message);  // those that the message carries
// Those that came with it: other processes may write their files together.
void note_received(const msghdr& message);
bool was_sent(const Identity& file);
// In a forked child, before any other thread.
void forget_leaving_in_child();

// While it exists, a program is being started and inherits descriptors. No file is taken for
// writing meanwhile, because it cannot be known yet whether the new program has it.
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
