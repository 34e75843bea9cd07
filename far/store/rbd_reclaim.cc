#include "far/store/rbd_reclaim.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <mutex>

#include "core/os/process_lock.h"
#include "core/store/snapshot_names.h"
#include "far/store/rbd_lock.h"

namespace outcore::store {
namespace {

constexpr const char* kGoing = "outcore.going.";
constexpr uint64_t kStepObjects = 16 << 10;  // how many are deleted at a time
constexpr uint64_t kDueNs = 60'000'000'000;
constexpr size_t kImagesMax = 1 << 20;
constexpr size_t kSnapshotsMax = 1 << 16;
constexpr size_t kSeenWatchersMax = 64;

bool is_set(const std::atomic<uint32_t>& word) { return word.load(std::memory_order_acquire) != 0; }

// One thread of this process for each pool. Threads of a forked child's parent do not count.
class Turn {
 public:
  explicit Turn(const std::string& pool) : pool_(pool) {
    const os::SignalBlock block;
    const std::lock_guard<os::ProcessLock> guard(lock());
    pid_t& owner = owners()[pool_];
    is_ours_ = owner != ::getpid();
    owner = ::getpid();
  }
  ~Turn() {
    if (!is_ours_) return;
    const os::SignalBlock block;
    const std::lock_guard<os::ProcessLock> guard(lock());
    owners().erase(pool_);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool is_ours() const { return is_ours_; }

 private:
  static os::ProcessLock& lock() {
    static os::ProcessLock* const all = new os::ProcessLock;
    return *all;
  }
  static std::map<std::string, pid_t>& owners() {
    static auto* const all = new std::map<std::string, pid_t>;
    return *all;
  }
  const std::string pool_;
  bool is_ours_ = false;
};

}  // namespace

// An image that is open, and watched unless it is only read.
class RbdReclaim::Opened {
 public:
  Opened(const RbdReclaim& of, const std::string& name, bool is_writable) {
    image_.library = &of.library_;
    image_.pool = of.connection_.pool();
    error_ = is_writable ? of.library_.rbd_open(image_.pool, name.c_str(), &image_.image, nullptr)
                         : of.library_.rbd_open_read_only(image_.pool, name.c_str(), &image_.image,
                                                          nullptr);
    if (error_ != 0) {
      image_.image = nullptr;
      return;
    }
    std::array<char, 256> id = {};
    error_ = of.library_.rbd_get_id(image_.image, id.data(), id.size());
    image_.id = id.data();
  }
  ~Opened() { close(); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  int error() const { return error_; }
  const RbdImage& image() const { return image_; }
  rbd_image_t handle() const { return image_.image; }

  void close() {
    if (image_.image != nullptr) image_.library->rbd_close(image_.image);
    image_.image = nullptr;
  }
  // Whether it has more than `most` watchers; true also if that cannot be found out.
  bool is_watched_by_more_than(size_t most) const {
    std::array<rbd_image_watcher_t, kSeenWatchersMax> watchers = {};
    size_t count = watchers.size();
    if (image_.library->rbd_watchers_list(handle(), watchers.data(), &count) != 0) return true;
    image_.library->rbd_watchers_list_cleanup(watchers.data(), count);
    return count > most;
  }
  int list_snapshots(std::vector<std::string>* names) const {
    std::vector<rbd_snap_info_t> found(16);
    for (;;) {
      int room = static_cast<int>(found.size());
      const int count = image_.library->rbd_snap_list(handle(), found.data(), &room);
      if (count == -ERANGE && found.size() < kSnapshotsMax) {
        found.resize(found.size() * 2);
        continue;
      }
      if (count < 0) return count;
      for (int i = 0; i < count; ++i) names->emplace_back(found[static_cast<size_t>(i)].name);
      if (count > 0) image_.library->rbd_snap_list_end(found.data());
      return 0;
    }
  }

 private:
  RbdImage image_;
  int error_ = 0;
};

int RbdReclaim::list(std::vector<Image>* images) const {
  std::vector<rbd_image_spec_t> found(256);
  size_t count = found.size();
  int error = 0;
  while ((error = library_.rbd_list2(connection_.pool(), found.data(), &count)) == -ERANGE) {
    if (found.size() >= kImagesMax) return -E2BIG;
    found.resize(std::max(count, found.size() * 2));
    count = found.size();
  }
  if (error < 0) return error;
  for (size_t i = 0; i < count; ++i) images->push_back({found[i].name, found[i].id});
  library_.rbd_image_spec_list_cleanup(found.data(), count);
  return 0;
}

bool RbdReclaim::is_due() const {
  static os::ProcessLock* const lock = new os::ProcessLock;
  static auto* const last_ns = new std::map<std::string, uint64_t>;
  const os::SignalBlock block;
  const std::lock_guard<os::ProcessLock> guard(*lock);
  uint64_t& last = (*last_ns)[connection_.identity()];
  const uint64_t now = os::now_ns();
  if (last != 0 && now < last + kDueNs) return false;
  last = now;
  return true;
}

int RbdReclaim::is_over(const Image& one, bool* is_over) const {
  const Opened image(*this, one.name, false);
  if (image.error() != 0) return image.error();
  if (image.image().id != one.id) return -ENOENT;  // another image has the name now
  return is_time_over(image.image(), is_over);
}

// Whether the anchor of such snapshots is an image that is kept.
int RbdReclaim::is_living(const std::string& anchor_prefix, const Opened& member, Word is_stopped,
                          bool* is_living) const {
  *is_living = false;
  std::vector<Image> images;
  if (const int error = list(&images); error != 0) return error;
  for (const Image& one : images) {
    if (is_set(is_stopped)) return -EINTR;
    if (snapshot_prefix(connection_.identity_of(one.id)) != anchor_prefix ||
        one.id == member.image().id)
      continue;
    const Opened anchor(*this, one.name, false);
    if (anchor.error() == -ENOENT) continue;  // it has just been removed
    if (anchor.error() != 0) return anchor.error();
    bool is_over = false;
    if (const int error = is_time_over(anchor.image(), &is_over); error != 0) return error;
    *is_living = *is_living || !is_over || anchor.is_watched_by_more_than(0);
  }
  return 0;
}

int RbdReclaim::is_held(const Opened& image, const std::vector<std::string>& names, Word is_stopped,
                        bool* is_held) const {
  *is_held = false;
  std::vector<std::string> prefixes;
  for (const std::string& name : names) {
    const std::string prefix = name.substr(0, snapshot_prefix("").size());
    const bool is_ours = prefix.starts_with("outcore.") && prefix.ends_with(".");
    if (!is_ours) *is_held = true;
    if (std::find(prefixes.begin(), prefixes.end(), prefix) == prefixes.end())
      prefixes.push_back(prefix);
  }
  for (const std::string& prefix : prefixes) {
    if (*is_held) break;
    if (const int error = is_living(prefix, image, is_stopped, is_held); error != 0) return error;
  }
  return 0;
}

// What takes long is done before the image is locked: while it is locked, others are told that
// somebody writes it.
int RbdReclaim::retire(const std::string& name, Word is_stopped, std::string* retired) const {
  const Opened image(*this, name, true);
  if (image.error() != 0) return image.error();
  LifetimeNote note;
  bool is_over = false, is_kept = false;
  std::vector<std::string> names, names_now;
  int error = is_time_over(image.image(), &is_over);
  if (error != 0 || !is_over) return error != 0 ? error : -ENOENT;
  if (image.is_watched_by_more_than(1)) return -EBUSY;
  if (error = image.list_snapshots(&names); error != 0) return error;
  if (error = is_held(image, names, is_stopped, &is_kept); error != 0) return error;
  if (is_kept) return -ENOTEMPTY;
  if (is_set(is_stopped)) return -EINTR;
  RbdLock lock;
  if (!lock.lock(library_, image.handle(), "give back " + name)) return -EBUSY;
  error = is_time_over(image.image(), &is_over);  // its owner may have renewed it meanwhile
  if (error == 0 && is_over) error = read_lifetime(image.image(), &note);
  if (error != 0 || !is_over) return error != 0 ? error : -ENOENT;
  if (error = image.list_snapshots(&names_now); error != 0) return error;
  if (names_now != names) return -EBUSY;  // somebody has made a snapshot meanwhile
  const LifetimeNote before = note;
  note.is_going = true;
  if (error = write_lifetime(image.image(), note); error != 0) return error;
  if (image.is_watched_by_more_than(1)) error = -EBUSY;
  *retired = kGoing + image.image().id;
  if (error == 0 && name != *retired)
    error = library_.rbd_rename(connection_.pool(), name.c_str(), retired->c_str());
  if (error != 0 && !before.is_going) static_cast<void>(write_lifetime(image.image(), before));
  return error;
}

// Removes the bytes. The image is marked as going, and nobody opens it any more.
int RbdReclaim::finish(const std::string& retired, Word is_stopped) const {
  const auto may_go_on = [&] { return !is_set(is_stopped); };
  Opened image(*this, retired, true);
  if (image.error() != 0) return image.error();
  LifetimeNote note;
  if (const int error = read_lifetime(image.image(), &note); error != 0) return error;
  if (!note.is_going) return -ENOENT;
  std::vector<std::string> names;
  if (const int error = image.list_snapshots(&names); error != 0) return error;
  for (const std::string& name : names) {
    if (!name.starts_with("outcore.")) return -ENOTEMPTY;
    if (!may_go_on()) return -EINTR;
    const int error = library_.rbd_snap_remove(image.handle(), name.c_str());
    if (error != 0 && error != -ENOENT) return error;
  }
  rbd_image_info_t about;
  if (const int error = library_.rbd_stat(image.handle(), &about, sizeof about); error != 0)
    return error;
  const uint64_t step_bytes = about.obj_size * kStepObjects;
  for (uint64_t size = about.size; size > step_bytes; size -= step_bytes) {
    if (!may_go_on()) return -EINTR;
    const int error = library_.rbd_resize(image.handle(), size - step_bytes);
    if (error != 0) return error;
  }
  image.close();
  return may_go_on() ? library_.rbd_remove(connection_.pool(), retired.c_str()) : -EINTR;
}

int RbdReclaim::give_back(const std::string& name) const {
  const std::atomic<uint32_t> never{0};
  std::string retired;
  if (const int error = retire(name, never, &retired); error != 0) return error;
  return finish(retired, never);
}

int RbdReclaim::run(Word is_stopped, Outcome* outcome) const {
  const Turn turn(connection_.identity());
  if (!turn.is_ours()) return -EALREADY;
  std::vector<Image> images;
  if (const int error = list(&images); error != 0) return error;
  for (const Image& image : images) {
    if (is_set(is_stopped)) return -EINTR;
    bool is_it = image.name.starts_with(kGoing);
    if (!is_it && is_over(image, &is_it) != 0) continue;
    if (!is_it) continue;
    std::string retired;
    int error = retire(image.name, is_stopped, &retired);
    if (error == 0) error = finish(retired, is_stopped);
    if (error == 0) outcome->given_back.push_back(image.name);
    outcome->has_others = outcome->has_others || (error != 0 && error != -ENOTEMPTY);
  }
  return 0;
}

}  // namespace outcore::store
