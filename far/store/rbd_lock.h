// RbdLock: who may write an image: librbd's exclusive lock, with the owner's name beside it.
//
// A lock whose owner is alive is refused, and the message names the owner. If the owner's watch of
// the image has ended (it died, or was cut off for `osd_client_watch_timeout`, 30 s), librbd puts
// it on the cluster's blocklist before it breaks the lock, so that whatever it still sends is
// refused (-ESHUTDOWN). Any thread but the fault path.
#pragma once

#include <string>

#include "far/store/rbd_library.h"

namespace outcore::store {

class RbdLock {
 public:
  // Locks the image; waits until the watch of a dead owner ends. REQUIRES: the image is open for
  // writing and has the feature exclusive-lock. Errors: EBUSY (with the owner), and those of
  // librbd.
  Status lock(const RbdLibrary& library, rbd_image_t image, const std::string& what);

  // Called when the process ends, so that others need not wait until its watch has ended.
  static void release(const RbdLibrary& library, rbd_image_t image) {
    static_cast<void>(library.rbd_lock_release(image));
  }

  // "process 7 (prog) on host, the client at ADDRESS"; empty: nobody owns it.
  static std::string name_of_owner(const RbdLibrary& library, rbd_image_t image);

  // 0; -ESTALE: since it was locked somebody else has owned the image, and may have written it;
  // another -errno: that cannot be found out now.
  int check(const RbdLibrary& library, rbd_image_t image) const;

 private:
  std::string note_;  // stored beside the lock: its address, host, process and program
};

}  // namespace outcore::store
