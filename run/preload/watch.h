// Watch: learns what others do to taken files, and gets requests to this process. It has two
// threads, which start with the first file.
//
// A read-only file gets a read lease. When the lease is broken, the mapping is handed back while
// the writer waits in open(2). A writable file is watched by fanotify; the opener waits until the
// mapping is handed back, which needs CAP_SYS_ADMIN. Without that such a file is taken only if
// --map names it, and for a moment an opener may read old bytes. A change without an open
// (truncate(2), or a descriptor that was passed out of this process) waits, too, if the kernel can
// ask us before an access; otherwise it is reported a moment late.
//
// The thread that listens has a descriptor table of its own: when it opens and closes a file, that
// must not drop the POSIX locks that the program holds on the file, and the program cannot close
// its descriptors. The other thread hands mappings back, which takes the door's lock; so the first
// one always answers at once.
#pragma once

#include <cstdint>

#include "outcore/result.h"
#include "run/preload/taken_file.h"

namespace outcore::preload {

class Watch {
 public:
  // kStrangersOpens: as kOpens, but that members of file.board may open the file (buffer::Opening)
  // and change it, as they do so as this process does; and who shortens the file by its name does
  // not wait: the descriptors of those members would ask us at each access.
  enum class For : uint8_t { kWrites, kOpens, kStrangersOpens, kChanges };

  static Watch& instance();

  // Watches the file: for kWrites by a read lease, for the other two by fanotify. 1: openers are
  // reported, but do not wait. 0 or -errno: EAGAIN (a lease is not possible, because somebody has
  // the file open for writing), EACCES (a lease on a file of another user), … One call for a file
  // at a time. Any thread but the two.
  int watch(TakenFile& file, For what);
  void end(TakenFile& file);
  // Starts the threads, if they do not run yet. Without them no file that is written can be taken.
  Status start();

  // While it exists, the kernel does not ask us before accesses to the file. It never asks about a
  // descriptor that is opened meanwhile; otherwise each read(2) on it would wait for our answer.
  class Quiet {
   public:
    explicit Quiet(const TakenFile* file);  // nullptr: does nothing
    ~Quiet();
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;

   private:
    const TakenFile* const file_;
  };

  // Files are idle: looks at them once a second (Door::look_at_idle). REQUIRES: start() succeeded.
  void look_at_idle();

  // In a forked child: the threads are the parent's.
  void forget_in_child();
  // Nobody can ask any more.
  void hang_up();

 private:
  Watch() = default;
  void ask_access(const TakenFile& file, bool is_asking);
  struct Impl;
  static Status give_up(Impl* impl, const Status& why);
  Impl* impl_ = nullptr;  // exists as long as the process
  bool is_half_started_ = false;
};

}  // namespace outcore::preload
