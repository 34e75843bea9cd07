// ChangeGroup: a fanotify group that reports changes of taken files. (Another group makes openers
// of these files wait: see listener.h.) Only the listener's thread uses it, which has its
// descriptors in its own table.
//
// Most of these changes are the program's own: a database that writes its mapped file by calls
// makes tens of thousands a second, and waking a thread for each costs more than the write. So
// after a change by this process the group pauses: the thread does not wait for it, and the kernel
// merges further changes of this process into the event that is there. A change by another process
// is noticed that much later; a few times as late where hundreds of files change.
#pragma once

#include <cstdint>

#include "run/preload/identity.h"

namespace outcore::preload {

class ChangeGroup {
 public:
  ChangeGroup() = default;
  ~ChangeGroup();
  ChangeGroup(const ChangeGroup&) = delete;
  ChangeGroup& operator=(const ChangeGroup&) = delete;

  // Changes of the file are heard of until end(); twice is once. 0 or -errno: EPERM (without
  // CAP_SYS_ADMIN), EMFILE (the user has too many groups), …
  int watch(const char* path);
  // Without memory. Where the path leads nowhere any more (the program has another root, or other
  // rights) the file stays watched.
  void end(const char* path);

  // What poll() is to wait for, -1 while there is nothing or it rests, and for how long: in
  // milliseconds, -1 for ever.
  struct Wait {
    int fd = -1, milliseconds = -1;
  };
  Wait to_wait_for() const;

  // Reads one event. kOwn: of this process. kFile: this process has changed this file.
  // kAny: they have changed some file, and it is not known which.
  enum class Heard : uint8_t { kNothing, kOwn, kFile, kAny };
  Heard next(Identity* changed, int* process);
  // What was heard was of no use.
  void rest();

 private:
  static constexpr uint64_t kRestNs = 10'000'000;

  int group_ = -1;
  uint64_t rests_until_ns_ = 0;
};

}  // namespace outcore::preload
