// Written pipe: a file that is read at the start may be a pipe, as of a command that prints it; one
// that nobody writes would be waited for without an end.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

namespace outcore::os {

// Waits a few seconds until a process writes to it, and lets reads wait from then on. False: none
// does. True for anything that is not a pipe. REQUIRES: the file was opened with O_NONBLOCK, for
// reading.
inline bool is_written(int file, const struct stat& about) {
  constexpr int kMsMax = 5000;
  if (!S_ISFIFO(about.st_mode)) return true;
  pollfd writer{file, POLLIN, 0};
  return ::poll(&writer, 1, kMsMax) > 0 && ::fcntl(file, F_SETFL, O_RDONLY) == 0;
}

}  // namespace outcore::os
