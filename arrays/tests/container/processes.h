// in_processes: what processes of a test do together.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <vector>

namespace outcore::scene {

// Runs it in so many processes; what they return, or 1000 and the signal that ended them.
// `meanwhile`: what this one does when all have begun. A thread could not: who is forked while
// it allocates may find a lock, of a sanitizer or the C library, that nobody gives back.
inline std::vector<int> in_processes(unsigned count, const std::function<int(unsigned rank)>& run,
                                     const std::function<void()>& meanwhile = {}) {
  std::vector<pid_t> pids;
  for (unsigned rank = 0; rank < count; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(run(rank));
    pids.push_back(pid);
  }
  if (meanwhile) meanwhile();
  std::vector<int> results;
  for (const pid_t pid : pids) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    results.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status));
  }
  return results;
}

}  // namespace outcore::scene
