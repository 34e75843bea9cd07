// Watch: hears of what others do to taken files, and of requests to this process. Two threads,
// started with the first file.
//
// Read-only files: a read lease, whose break hands the mapping back while the writer waits in
// open(2). Writable ones: fanotify; the opener waits until the mapping is handed back, which needs
// CAP_SYS_ADMIN. Without it such a file is taken only if --map names it, and an opener may read
// bytes from before for a moment. Who changes the file and opens nothing (truncate(2), a descriptor
// that was taken out of this process) waits, too, where the kernel lets us ask before an access;
// elsewhere it is heard of a moment late.
//
// The thread that listens has a table of descriptors of its own: what it opens and closes of a file
// must not drop the POSIX locks that the program holds on it, and the program cannot close it. The
// other hands mappings back, which takes the door's lock; so the first always answers at once.
#pragma once

#include <cstdint>

#include "outcore/result.h"
#include "run/preload/taken_file.h"

namespace outcore::preload {

class Watch {
 public:
  enum class For : uint8_t { kWrites, kOpens, kChanges };

  static Watch& instance();

  // Hears of others: for kWrites by a read lease, for the other two by fanotify. 1: openers are
  // heard of, but go on at once. 0 or -errno:
  // EAGAIN (a lease, and somebody has the file open for writing), EACCES (a lease on another
  // user's file), … One of them a file at a time. Any thread but the two.
  int watch(TakenFile& file, For what);
  void end(TakenFile& file);

  // Starts the threads, if they are not there. Without them no file that is written can be taken.
  Status start();

  // While it lives, the kernel does not ask us before accesses to the file. A descriptor that is
  // opened meanwhile is never asked about: else each read(2) on it would wait for our answer.
  class Quiet {
   public:
    explicit Quiet(const TakenFile* file);  // nullptr: nothing
    ~Quiet();
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;

   private:
    const TakenFile* const file_;
  };

  // In a forked child: the parent's threads are not the child's.
  void forget_in_child();

 private:
  Watch() = default;
  void ask_access(const TakenFile& file, bool is_asking);
  struct Impl;
  Impl* impl_ = nullptr;  // lives as long as the process
};

}  // namespace outcore::preload
