#include "far/store/rbd_lifetime.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <exception>
#include <string_view>
#include <system_error>

#include "core/base/error.h"

namespace outcore::store {
namespace {

constexpr const char* kKey = "outcore.lifetime";
constexpr uint64_t kRenewMsMin = 1'000, kRenewMsMax = 600'000;

// Removes `before`, a number and `after` from the front of the text.
bool take_number(std::string_view& text, std::string_view before, std::string_view after,
                 uint64_t* number) {
  if (!text.starts_with(before)) return false;
  text.remove_prefix(before.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (!text.starts_with(after)) return false;
  text.remove_prefix(after.size());
  return true;
}

LifetimeNote note_of(std::string_view text, const std::string& id) {
  LifetimeNote note;
  const std::string whose = ",image=" + id;
  if (text.find(",image=") != std::string_view::npos && !text.ends_with(whose)) return note;
  note.is_damaged = !text.ends_with(whose);
  if (note.is_damaged) return note;
  text.remove_suffix(whose.size());
  note.is_going = text == "going";
  if (note.is_going) return note;
  if (take_number(text, "", "ms,", &note.lifetime_ms) &&
      take_number(text, "until=", "", &note.until_ms) && text.empty() && note.lifetime_ms != 0)
    return note;
  return {.is_damaged = true};
}

}  // namespace

int read_lifetime(const RbdImage& of, LifetimeNote* note) {
  std::array<char, 512> text = {};
  size_t size = text.size() - 1;
  const int error = of.library->rbd_metadata_get(of.image, kKey, text.data(), &size);
  *note = {};
  if (error == -ERANGE) note->is_damaged = true;  // longer than our notes are
  if (error == -ENOENT || error == -ERANGE) return 0;
  if (error < 0) return error;
  *note = note_of(text.data(), of.id);
  return 0;
}

int write_lifetime(const RbdImage& of, const LifetimeNote& note) {
  if (!note.is_going && note.lifetime_ms == 0) {
    const int error = of.library->rbd_metadata_remove(of.image, kKey);
    return error == -ENOENT ? 0 : error;
  }
  const std::string begin = note.is_going ? "going"
                                          : std::to_string(note.lifetime_ms) +
                                                "ms,until=" + std::to_string(note.until_ms);
  return of.library->rbd_metadata_set(of.image, kKey, (begin + ",image=" + of.id).c_str());
}

// librbd has no function for it. The OSD's class for images sets the time of the last access by its
// own clock, and returns it: seconds and nanoseconds, 4 bytes each, little-endian.
int read_cluster_time(const RbdImage& of, uint64_t* now_ms) {
  const std::string header = "rbd_header." + of.id;
  std::array<unsigned char, 64> stamp = {};
  char* const answer = reinterpret_cast<char*>(stamp.data());
  int result = of.library->rados_exec(of.pool, header.c_str(), "rbd", "set_access_timestamp",
                                      nullptr, 0, answer, stamp.size());
  if (result >= 0)
    result = of.library->rados_exec(of.pool, header.c_str(), "rbd", "get_access_timestamp", nullptr,
                                    0, answer, stamp.size());
  if (result < 0) return result;
  if (result != 8) return -EPROTO;
  const auto word = [&](size_t at) {
    uint64_t value = 0;
    for (size_t i = 0; i < 4; ++i) value |= static_cast<uint64_t>(stamp[at + i]) << (8 * i);
    return value;
  };
  *now_ms = word(0) * 1000 + word(4) / 1'000'000;
  return *now_ms == 0 ? -EPROTO : 0;
}

int is_living(const RbdImage& image, bool* is_living) {
  *is_living = false;
  LifetimeNote note;
  int error = read_lifetime(image, &note);
  if (error != 0 || note.is_going) return error;
  *is_living = true;
  if (note.lifetime_ms != 0 || note.is_damaged) return 0;
  const std::string header = "rbd_header." + image.id;  // without it there is no note either
  std::array<char, 256> prefix = {};
  error = image.library->rados_exec(image.pool, header.c_str(), "rbd", "get_object_prefix", nullptr,
                                    0, prefix.data(), prefix.size());
  *is_living = error != -ENOENT;
  return error >= 0 || error == -ENOENT ? 0 : error;
}

int is_time_over(const RbdImage& image, bool* is_over) {
  LifetimeNote note;
  *is_over = false;
  if (const int error = read_lifetime(image, &note); error != 0) return error;
  *is_over = note.is_going;
  if (note.is_going || note.lifetime_ms == 0) return 0;
  uint64_t now_ms = 0;
  if (const int error = read_cluster_time(image, &now_ms); error != 0) return error;
  *is_over = now_ms >= note.until_ms;
  return 0;
}

// `lock_` guards the note: whoever locks it last writes what is true then.
int RbdLifetime::renew() {
  const os::Locked guard(lock_);
  return lifetime_ms() == 0 ? 0 : write();
}

int RbdLifetime::write() {
  LifetimeNote note;
  note.lifetime_ms = lifetime_ms();
  uint64_t now_ms = 0;
  if (note.lifetime_ms != 0)
    if (const int error = read_cluster_time(image_, &now_ms); error != 0) return error;
  note.until_ms = now_ms + note.lifetime_ms;
  return write_lifetime(image_, note);
}

int RbdLifetime::set(uint64_t lifetime_ms) {
  const os::Locked guard(lock_);
  const uint64_t before = lifetime_ms_.exchange(lifetime_ms);
  const int error = write();
  if (error != 0) lifetime_ms_.store(before);
  return error;
}

Status RbdLifetime::begin(const RbdImage& image, int64_t lifetime_ms, const std::string& what,
                          Task task) {
  image_ = image;
  task_ = std::move(task);
  LifetimeNote note;
  if (const int error = read_lifetime(image_, &note); error != 0)
    return base::system_error(error, what + ": read its lifetime");
  if (note.is_going)
    return Error{ENOENT, what + ": its lifetime was over, and it is being given back"};
  const uint64_t wanted = lifetime_ms >= 0 ? static_cast<uint64_t>(lifetime_ms) : note.lifetime_ms;
  if (wanted == 0 && note.lifetime_ms == 0) return {};
  const os::SignalBlock block;
  if (const int error = set(wanted); error != 0)
    return base::system_error(error, what + ": note its lifetime");
  return wanted == 0 ? Status() : run_task(what);
}

Status RbdLifetime::change(int64_t lifetime_ms, const std::string& what) {
  if (lifetime_ms < 0) return {};
  const os::SignalBlock block;
  if (static_cast<uint64_t>(lifetime_ms) == this->lifetime_ms()) return {};
  if (const int error = set(static_cast<uint64_t>(lifetime_ms)); error != 0)
    return base::system_error(error, what + ": note its lifetime");
  return lifetime_ms == 0 ? Status() : start(what);
}

Status RbdLifetime::run_task(const std::string& what) {
  has_task_.store(task_ != nullptr, std::memory_order_release);
  return start(what);
}

// Starts the thread that renews, or wakes it.
Status RbdLifetime::start(const std::string& what) try {
  const os::SignalBlock block;  // the new thread inherits it
  const std::lock_guard<std::mutex> guard(keeping_);
  if (is_stopped_.load(std::memory_order_acquire) != 0) return {};
  wake();
  if (!keeper_.joinable()) keeper_ = std::thread([this] { keep(); });
  return {};
} catch (const std::system_error& e) {
  return base::system_error(e.code().value(), what + ": start a thread that renews its lifetime");
}

void RbdLifetime::wake() {
  generation_.fetch_add(1, std::memory_order_acq_rel);
  os::wake_all(&generation_);
}

// What fails, or throws (memory may be short), is repeated at the next renewal: there are several
// within a lifetime.
void RbdLifetime::keep() {
  while (is_stopped_.load(std::memory_order_acquire) == 0) {
    const uint32_t seen = generation_.load(std::memory_order_acquire);
    try {
      if (has_task_.exchange(false, std::memory_order_acq_rel)) run();
      pause(seen);
      if (is_stopped_.load(std::memory_order_acquire) == 0) static_cast<void>(renew());
    } catch (const std::exception&) {
    }
  }
}

void RbdLifetime::run() try { task_(is_stopped_); } catch (const std::exception&) {
  has_task_.store(true, std::memory_order_release);
}

// Waits until the next renewal, or until something has changed.
void RbdLifetime::pause(uint32_t seen) {
  const uint64_t lifetime_ms = this->lifetime_ms();
  const uint64_t pause_ms =
      lifetime_ms == 0 ? kRenewMsMax : std::clamp(lifetime_ms / 4, kRenewMsMin, kRenewMsMax);
  const uint64_t until_ns = os::now_ns() + pause_ms * 1'000'000;
  for (uint64_t now = os::now_ns();
       now < until_ns && generation_.load(std::memory_order_acquire) == seen; now = os::now_ns())
    os::wait(&generation_, seen, until_ns - now);
}

void RbdLifetime::end() {
  const os::SignalBlock block;
  {
    const std::lock_guard<std::mutex> guard(keeping_);
    is_stopped_.store(1, std::memory_order_release);
    wake();
  }
  if (!keeper_.joinable()) return;
  keeper_.join();
  static_cast<void>(renew());
}

void RbdLifetime::forget() {
  if (keeper_.joinable()) keeper_.detach();  // banned-ok: it does not exist in this process
}

}  // namespace outcore::store
