// RbdLock: who may write an image: librbd's exclusive lock, and the owner's name beside it.
//
// A living owner refuses, and the refusal names it. An owner whose watch of the image has ended (it
// died, or was cut off for `osd_client_watch_timeout`, 30 s) is put on the cluster's blocklist by
// librbd before its lock is broken: whatever it still sends is refused (-ESHUTDOWN). Any thread but
// the fault path.
#pragma once

#include <string>

#include "far/store/rbd_library.h"

namespace outcore::store {

class RbdLock {
 public:
  // Takes it; waits for a dead owner's watch to end. REQUIRES: the image is open for writing and
  // has the feature exclusive-lock. Errors: EBUSY (with the owner), and what librbd said.
  Status take(const RbdLibrary& library, rbd_image_t image, const std::string& what);

  // So that others need not wait until the watch of a process that ends has ended, too.
  static void release(const RbdLibrary& library, rbd_image_t image) {
    static_cast<void>(library.rbd_lock_release(image));
  }

  // "process 7 (prog) on host, the client at ADDRESS"; empty: nobody owns it.
  static std::string name_of_owner(const RbdLibrary& library, rbd_image_t image);

  // 0, or -ESTALE: since it was taken somebody else owned the image, and may have written it.
  // -errno: it cannot be known now.
  int check(const RbdLibrary& library, rbd_image_t image) const;

 private:
  std::string note_;  // what lies beside the lock: its address, host, process, program
};

}  // namespace outcore::store
