// RbdLifetime: how long an image is kept when nobody has it open.
//
// The image's metadata has a note, which is renewed while the image is open for writing:
// outcore.lifetime = "3600000ms,until=1764012345678,image=5e1f", or "going,image=5e1f"
//
// Times are those of the OSD that has the image's header, in milliseconds since 1970, so the clocks
// of clients do not matter. A note for another image (copies have it, too) does not count, nor does
// one that cannot be parsed. Whoever removes an image writes `going` first, and then looks whether
// anybody watches the image; whoever opens one watches it first, and then reads the note. See
// docs/internals/decisions/0030-lifetimes-on-rbd.md. Any thread but the fault path.
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

// An open image, for calls that are not about its bytes.
struct RbdImage {
  const RbdLibrary* library = nullptr;
  rados_ioctx_t pool = nullptr;
  rbd_image_t image = nullptr;
  std::string id;
};

struct LifetimeNote {
  uint64_t lifetime_ms = 0;  // 0: there is no note, and the image is kept for ever
  uint64_t until_ms = 0;
  bool is_going = false;    // it is being removed, or its removal was interrupted
  bool is_damaged = false;  // it cannot be parsed: the image is kept for ever
};

// 0 or -errno.
int read_lifetime(const RbdImage& image, LifetimeNote* note);
int write_lifetime(const RbdImage& image, const LifetimeNote& note);  // without lifetime: none
// The time of the OSD that has the image's header.
int read_cluster_time(const RbdImage& image, uint64_t* now_ms);
// Whether the image still exists, and is not being removed.
int is_living(const RbdImage& image, bool* is_living);
// Whether its lifetime is over: it is being removed, or its deadline has passed.
int is_time_over(const RbdImage& image, bool* is_over);

class RbdLifetime {
 public:
  // Work for the thread that renews the note; it is repeated later if it throws. It must stop when
  // the word is set.
  using Task = std::function<void(const std::atomic<uint32_t>& is_stopped)>;

  // Writes the note and starts to renew it. The task runs at once if the image has a lifetime,
  // and whenever run_task() asks for it. lifetime_ms: 0: for ever; -1: as the note says.
  // REQUIRES: the image is open for writing, and outlives end(). Errors: ENOENT (it is being
  // removed), and those of the cluster.
  Status begin(const RbdImage& image, int64_t lifetime_ms, const std::string& what, Task task);
  // Changes the lifetime between begin() and end(). Any thread.
  Status change(int64_t lifetime_ms, const std::string& what);
  // Makes the thread that renews run the task soon, and starts the thread for it if necessary.
  // Does not wait.
  Status run_task(const std::string& what);
  // Stops renewing: the lifetime counts from now on.
  void end();
  // For a forked child: the thread is the parent's.
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
  Task task_;
  std::atomic<uint64_t> lifetime_ms_{0};
  std::atomic<uint32_t> is_stopped_{0};
  std::atomic<uint32_t> generation_{0};  // of what the thread that renews is to know
  std::atomic<bool> has_task_{false};
  os::Lock lock_;       // guards the note
  std::mutex keeping_;  // guards start and end of the thread
  std::thread keeper_;
};

}  // namespace outcore::store
