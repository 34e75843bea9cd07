// The counters of other processes, by /proc: include/outcore/sight.h.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/descriptor_place.h"
#include "core/os/file_calls.h"
#include "core/published/layout.h"
#include "outcore/sight.h"

namespace outcore {
namespace {

using published::Layout;
using published::StoreSlot;

std::string own_path_of(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }
std::string folder_of(pid_t process) { return "/proc/" + std::to_string(process); }

// The number that the process has in its own namespace; 0: it is gone.
pid_t number_inside(pid_t process) {
  std::ifstream status(folder_of(process) + "/status");
  pid_t inside = 0;
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("NSpid:")) continue;
    const size_t last = line.find_last_of(" \t");
    static_cast<void>(std::from_chars(line.data() + last + 1, line.data() + line.size(), inside));
  }
  return inside;
}

// Calls f(name) for each entry of the folder, until it returns false. -errno: it cannot be listed.
template <typename F>
int for_each_name(const std::string& path, const F& f) {
  DIR* const folder = ::opendir(path.c_str());
  if (folder == nullptr) return -errno;
  for (const dirent* entry = ::readdir(folder); entry != nullptr; entry = ::readdir(folder))
    if (entry->d_name[0] != '.' && !f(entry->d_name)) break;
  ::closedir(folder);
  return 0;
}

bool is_sheet(const std::string& path) {
  static const std::string wanted = std::string("/memfd:") + published::kFileName + " (deleted)";
  char target[64];
  const ssize_t length = ::readlink(path.c_str(), target, sizeof target);
  return length == static_cast<ssize_t>(wanted.size()) &&
         std::equal(wanted.begin(), wanted.end(), target);
}

// A copy: whoever publishes may cut its memory file short, which would end a reader that maps it.
class Copy {
 public:
  std::unique_ptr<Layout> layout;
  os::Descriptor fd;
  int error = 0;
  // No store went while it was copied. False: they come and go faster than they can be read.
  bool is_of_one_moment = false;
  enum class Kind : uint8_t { kNone, kOther, kOurs };
  Kind kind = Kind::kNone;

  // `inside`: the process that must have published it, as it knows itself; of others the head alone
  // is read. kAnyProcess: whoever has.
  static constexpr pid_t kAnyProcess = -1;
  Copy(const std::string& path, pid_t inside)
      : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    struct stat about;
    if (fd.get() < 0 || ::fstat(fd.get(), &about) != 0) {
      error = -errno;
      return;
    }
    layout = std::make_unique<Layout>();
    read_head(static_cast<uint64_t>(about.st_size));
    if (error != 0) return;
    kind = kind_for(inside == kAnyProcess ? layout->process.load() : inside);
    if (kind != Kind::kOurs) return;
    // It may be stopped amid a move; and where the processors are busy, moves come between often.
    constexpr int kCopiesMax = 1000, kLooksMax = 10'000;
    for (int copies = 0, looks = 0;
         copies < kCopiesMax && !is_of_one_moment && (copies == 0 || looks < kLooksMax); ++copies) {
      uint32_t moves = 1;
      for (; moves % 2 == 1 && looks < kLooksMax; ++looks) {
        if (looks != 0) ::sched_yield();
        if (!read_now(layout->moves, &moves)) break;
      }
      read(static_cast<uint64_t>(about.st_size));
      if (error != 0) return;
      is_of_one_moment = moves % 2 == 0 && layout->moves.load() == moves && is_still(layout->moves);
    }
  }
  // It has not changed since it was copied.
  bool is_still(const std::atomic<uint32_t>& copied) const {
    uint32_t now = 0;
    return read_now(copied, &now) && now == copied.load();
  }

  // The text as it is now, whole; empty where it never stands still, as if its writer is stopped.
  template <size_t kBytes>
  std::string whole(const published::ChangingText<kBytes>& copied) const {
    constexpr int kLooksMax = 100;
    for (int looks = 0; looks < kLooksMax; ++looks) {
      published::Text<kBytes> text;
      uint32_t before = 0, after = 1;
      if (!read_now(copied.changes, &before)) break;
      if (os::read_all(fd.get(), offset_of(&copied.text),
                       std::as_writable_bytes(std::span(&text, 1))) != 0)
        break;
      if (!read_now(copied.changes, &after)) break;
      if (before == after && before % 2 == 0) return text.get();
      ::sched_yield();
    }
    return {};
  }

 private:
  uint64_t offset_of(const void* copied) const {
    return static_cast<uint64_t>(static_cast<const std::byte*>(copied) -
                                 reinterpret_cast<const std::byte*>(layout.get()));
  }
  bool read_now(const std::atomic<uint32_t>& copied, uint32_t* now) const {
    return os::read_all(fd.get(), offset_of(&copied), std::as_writable_bytes(std::span(now, 1))) ==
           0;
  }
  Kind kind_for(pid_t inside) const {
    if (layout->magic.get() != Layout::kMagic) return Kind::kNone;
    if (layout->process.load() != inside || layout->format.load() == 0) return Kind::kNone;
    return layout->format.load() == published::format_of_this_library() ? Kind::kOurs
                                                                        : Kind::kOther;
  }
  // What comes before the slots.
  uint64_t read_head(uint64_t size) {
    const uint64_t head = std::min<uint64_t>(size, offsetof(Layout, slots));
    error = os::read_all(fd.get(), 0, {reinterpret_cast<std::byte*>(layout.get()), head});
    return head;
  }
  // That, and those that have been used.
  void read(uint64_t size) {
    auto* const bytes = reinterpret_cast<std::byte*>(layout.get());
    const uint64_t head = read_head(size);
    const uint64_t slots = std::min(layout->slots_used.load(), Layout::kSlots);
    const uint64_t end = std::min(size, offsetof(Layout, slots) + slots * sizeof(StoreSlot));
    if (error == 0 && end > head) error = os::read_all(fd.get(), head, {bytes + head, end - head});
  }
};

void add(const metrics::CounterBlock& block, Metrics* all) {
  all->counters += block.sum();
  all->fault_latency += block.fault_latency();
}

RegionMetrics metrics_of(const StoreSlot& slot) {
  RegionMetrics m;
  m.uri = slot.uri.get();
  m.size_bytes = slot.store_bytes.load();
  m.page_bytes = slot.page_bytes.load();
  m.resident_bytes = slot.resident_bytes.load();
  m.access = slot.is_writable.load() ? "read-write" : "read-only";
  m.delivery = slot.delivery.get();
  m.frames = slot.is_shared.load() ? "buffer" : slot.frames.get();
  m.is_degraded = slot.is_degraded.load();
  m.counters = slot.counters.sum();
  m.fetches = slot.fetches.metrics();
  m.fault_latency = slot.counters.fault_latency();
  return m;
}

StorePlaces places_of(const StoreSlot& slot) {
  StorePlaces places;
  places.are_all = slot.places_left_out.load() == 0;
  for (const published::Place& place : slot.places)
    if (const uint64_t start = place.start.load(), end = place.end.load(); start < end)
      places.ranges.emplace_back(start, end);
  std::sort(places.ranges.begin(), places.ranges.end());
  return places;
}

PublishedRuntime runtime_of(const Copy& copy, pid_t process) {
  Layout& seen = *copy.layout;
  PublishedRuntime runtime;
  runtime.process = process;
  runtime.version = seen.version.get();
  runtime.started_ns = seen.started_ns.load();
  runtime.policy = seen.policy.get();
  runtime.policy_now = copy.whole(seen.policy_now);
  runtime.budget_source = seen.budget_source.get();
  runtime.shared_buffer = seen.shared_buffer.get();
  const uint32_t left = std::min(seen.left_files_used.load(), Layout::kLeftFiles);
  for (uint32_t i = 0; i < left; ++i)
    runtime.left_files.push_back({seen.left_files[i].path.get(), seen.left_files[i].reason.get(),
                                  seen.left_files[i].size_bytes.load()});
  Metrics& m = runtime.metrics;
  add(seen.ended, &m);
  for (const StoreSlot& slot : seen.slots) {
    if (slot.users.load() % 2 == 0 || slot.is_over.load() || !slot.is_described.load()) continue;
    if (!copy.is_of_one_moment && !copy.is_still(slot.users)) continue;
    add(slot.counters, &m);
    m.regions.push_back(metrics_of(slot));
    runtime.places.push_back(places_of(slot));
    m.gauges.degraded += m.regions.back().is_degraded;
  }
  const uint64_t lent = seen.budget.lent.load();
  m.gauges.budget_bytes = seen.budget.limit.load() + lent;
  m.gauges.used_bytes = seen.budget.used.load() + lent;
  m.gauges.used_bytes_max = std::max(seen.budget.used_max.load(), m.gauges.used_bytes);
  m.gauges.bounce_bytes = seen.buffer_bytes.load();
  return runtime;
}

// Whoever publishes may have put anything there, and it becomes part of a message.
std::string printable(std::string text) {
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

using Kind = Copy::Kind;

// Calls f(copy) for each sheet that the process publishes, each once by whatever descriptors
// it has it, and no more than a process has good reason to have. -errno: they cannot be listed.
template <typename F>
int for_each_sheet(pid_t process, pid_t inside, const F& f) {
  constexpr size_t kSheetsMax = 64;
  std::vector<std::pair<dev_t, ino_t>> seen;
  const std::string descriptors = folder_of(process) + "/fd";
  return for_each_name(descriptors, [&](const char* name) {
    const std::string path = descriptors + "/" + name;
    struct stat about;
    if (!is_sheet(path) || ::stat(path.c_str(), &about) != 0) return true;
    const std::pair file(about.st_dev, about.st_ino);
    if (std::find(seen.begin(), seen.end(), file) != seen.end()) return true;
    seen.push_back(file);
    const Copy copy(path, inside);
    return f(copy) && seen.size() < kSheetsMax;
  });
}

}  // namespace

Result<std::vector<PublishedRuntime>> look_at(pid_t process) {
  const std::string attempt = "look at process " + std::to_string(process);
  const pid_t inside = process > 0 ? number_inside(process) : 0;
  if (inside == 0) return Error{ESRCH, attempt + ": there is no such process"};
  std::vector<PublishedRuntime> all;
  std::string other_version;
  const int error = for_each_sheet(process, inside, [&](const Copy& copy) {
    if (copy.error != 0) return true;
    if (copy.kind == Kind::kOurs) all.push_back(runtime_of(copy, process));
    if (copy.kind == Kind::kOther) other_version = printable(copy.layout->version.get());
    return true;
  });
  if (error == -ENOENT) return Error{ESRCH, attempt + ": it has ended"};
  if (error != 0)
    return base::system_error(
        error, attempt, "it is another user's, or does not let itself be looked at: try as root");
  if (all.empty() && !other_version.empty())
    return Error{EPROTO, attempt + ": its library is outcore " + other_version +
                             ", and this one is " + OUTCORE_VERSION +
                             " with other counters: use the command that belongs to it"};
  if (all.empty())
    return Error{ENOENT, attempt +
                             ": it has no runtime of Outcore (start it by `outcore run`, or "
                             "with the library)"};
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.started_ns < b.started_ns; });
  return all;
}

std::vector<int> keep_published(pid_t process) {
  const pid_t inside = process > 0 ? number_inside(process) : 0;
  std::vector<int> kept;
  if (inside == 0) return kept;
  static_cast<void>(for_each_sheet(process, inside, [&](const Copy& copy) {
    // It may have been another file when it was opened.
    if (copy.error != 0 || copy.kind != Kind::kOurs || !is_sheet(own_path_of(copy.fd.get())))
      return true;
    const int descriptor = ::fcntl(copy.fd.get(), F_DUPFD_CLOEXEC, 3);
    if (descriptor >= 0) kept.push_back(descriptor);
    return true;
  }));
  return kept;
}

Result<PublishedRuntime> look_at_kept(int descriptor) {
  const std::string path = own_path_of(descriptor);
  const Error refused{EINVAL, "look at what a process published: descriptor " +
                                  std::to_string(descriptor) + " is not one of keep_published()"};
  if (descriptor < 0 || !is_sheet(path)) return refused;
  const Copy copy(path, Copy::kAnyProcess);
  if (copy.error != 0 || copy.kind != Kind::kOurs) return refused;
  return runtime_of(copy, copy.layout->process.load());
}

std::vector<pid_t> list_published(std::vector<OtherLibrary>* others) {
  std::vector<pid_t> all;
  static_cast<void>(for_each_name("/proc", [&](const char* name) {
    pid_t process = 0;
    const char* const end = name + std::char_traits<char>::length(name);
    if (std::from_chars(name, end, process).ptr != end) return true;
    bool is_any = false;
    std::string other_version;
    const pid_t inside = number_inside(process);
    static_cast<void>(for_each_sheet(process, inside, [&](const Copy& copy) {
      is_any = copy.error == 0 && copy.kind == Kind::kOurs;
      if (copy.error == 0 && copy.kind == Kind::kOther)
        other_version = printable(copy.layout->version.get());
      return !is_any;
    }));
    if (is_any) all.push_back(process);
    if (!is_any && others != nullptr && !other_version.empty())
      others->push_back({process, other_version});
    return true;
  }));
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace outcore
