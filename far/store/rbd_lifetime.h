// RbdLifetime: how long an image is kept when nobody has it open.
//
// A note in its metadata, renewed by whoever has it open for writing:
//   outcore.lifetime = "3600000ms,until=1764012345678,image=5e1f", or "going,image=5e1f"
// Times are those of the OSD that has the image's header, in milliseconds since 1970: no client's
// clock counts. A note of another image (copies have them, too), or one that cannot be read, is
// none. Who removes an image writes `going` and then looks whether anybody watches it; who opens
// one watches it and then reads the note. See docs/internals/decisions/0030-lifetimes-on-rbd.md.
// Any thread but the fault path.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "core/os/wait.h"
#include "far/store/rbd_library.h"

namespace outcore::store {

// An open image, for what is asked beside its bytes.
struct RbdImage {
  const RbdLibrary* library = nullptr;
  rados_ioctx_t pool = nullptr;
  rbd_image_t image = nullptr;
  std::string id;
};

struct LifetimeNote {
  uint64_t lifetime_ms = 0;  // 0: there is no note, and the image is kept for ever
  uint64_t until_ms = 0;
  bool is_going = false;    // it is being removed, or was when that was interrupted
  bool is_damaged = false;  // kept for ever, too
};

// 0 or -errno.
int read_lifetime(const RbdImage& image, LifetimeNote* note);
int write_lifetime(const RbdImage& image, const LifetimeNote& note);  // without lifetime: none
// The time of the OSD that has the image's header.
int read_cluster_time(const RbdImage& image, uint64_t* now_ms);
// Whether it is there still, and is not going.
int is_living(const RbdImage& image, bool* is_living);
// Whether its time is over: going, or past its deadline.
int is_time_over(const RbdImage& image, bool* is_over);

class RbdLifetime {
 public:
  // Done by the thread that renews; again later if it throws. The word is set: stop.
  using Errand = std::function<void(const std::atomic<uint32_t>& is_stopped)>;

  // The errand runs at once if it has a lifetime, and when it is asked for.
  // REQUIRES: the image is ours to write, and outlives end(). lifetime_ms: 0 for ever, -1 as it was
  // noted. Errors: ENOENT (it is going), what the cluster said.
  Status begin(const RbdImage& image, int64_t lifetime_ms, const std::string& what, Errand errand);
  // While it is open, by any thread.
  Status change(int64_t lifetime_ms, const std::string& what);
  // Soon, by the thread that renews, which is started for it; waits for nothing.
  Status run_errand(const std::string& what);
  // Its time counts from now on.
  void end();
  // In a forked child: the thread is the parent's.
  void forget();

  uint64_t lifetime_ms() const { return lifetime_ms_.load(std::memory_order_relaxed); }

 private:
  int renew();
  int write();  // REQUIRES: lock_
  int set(uint64_t lifetime_ms);
  Status start(const std::string& what);
  void wake();
  void keep();
  void run();
  void pause(uint32_t seen);

  RbdImage image_;
  Errand errand_;
  std::atomic<uint64_t> lifetime_ms_{0};
  std::atomic<uint32_t> is_stopped_{0};
  std::atomic<uint32_t> generation_{0};  // of what the keeper is to know
  std::atomic<bool> has_errand_{false};
  os::Lock lock_;       // of the note
  std::mutex keeping_;  // of the keeper's start and end
  std::thread keeper_;
};

}  // namespace outcore::store
