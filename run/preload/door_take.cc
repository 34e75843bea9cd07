// How a mapping of the program is taken. See door.h.
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <optional>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/buffer/opener.h"
#include "core/os/file_calls.h"
#include "core/runtime/learnt_starts.h"
#include "core/runtime/mapper.h"
#include "core/runtime/sharing.h"
#include "run/preload/coherence.h"
#include "run/preload/deadly_signals.h"
#include "run/preload/descriptor_table.h"
#include "run/preload/door.h"
#include "run/preload/in_memory.h"
#include "run/preload/last_store.h"
#include "run/preload/own_descriptors.h"
#include "run/preload/own_memory.h"
#include "run/preload/real.h"
#include "run/preload/settings.h"
#include "run/preload/watch.h"
#include "run/preload/words.h"

namespace outcore::preload {

using base::kSystemPage;
using base::round_up;

std::atomic<uint32_t> Door::taken_count_{0};
std::atomic<uint64_t> Door::low_{UINT64_MAX};
std::atomic<uint64_t> Door::high_{0};

Door& Door::instance() {
  static Door* const door = new Door;  // never freed: it is used until the process ends
  return *door;
}

namespace {

bool is_writable_shared(const NewMapping& made) {
  return (made.flags & MAP_TYPE) != MAP_PRIVATE && (made.protection & PROT_WRITE) != 0;
}

// Whether the program may write through it now, or after an mprotect or mremap, where files may not
// reach.
bool is_larger_than_allowed(const NewMapping& made, const struct stat& about) {
  return (made.flags & MAP_TYPE) != MAP_PRIVATE && S_ISREG(about.st_mode) &&
         static_cast<uint64_t>(about.st_size) > os::file_size_limit() &&
         (::fcntl(made.fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

std::string path_of(int fd) {
  char path[PATH_MAX];
  const ssize_t n =
      ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path - 1);
  return n <= 0 ? std::string() : std::string(path, static_cast<size_t>(n));
}

// Why the mapping is not taken, as far as that shows without a look at who else has the file.
// Empty: nothing is against it.
std::string why_never(const NewMapping& made, const struct stat& about, const std::string& path,
                      bool is_taken) {
  const Settings& s = settings();
  if ((made.protection & PROT_EXEC) != 0) return "executable";
  if (s.is_go) return "mapped by a Go program, whose calls nobody sees";
  if (LastStore::has_begun() && is_writable_shared(made)) return "the process ends";
  if (made.protection == PROT_NONE) return "mapped without access";
  if ((made.flags & (MAP_HUGETLB | MAP_GROWSDOWN | MAP_STACK | MAP_SYNC)) != 0)
    return "a kind of mapping that only the kernel has";
  if (S_ISBLK(about.st_mode) && !s.is_named(path)) return "a block device: name it by --map";
  if (!S_ISBLK(about.st_mode) && !S_ISREG(about.st_mode)) return "no file";
  if (path.rfind("/memfd:", 0) == 0 || path.rfind("/SYSV", 0) == 0) return "memory, not a file";
  if (is_kept_in_memory(made.fd, about)) return "its filesystem keeps it in memory";
  if ((made.flags & MAP_TYPE) == MAP_PRIVATE && (made.protection & PROT_WRITE) != 0)
    return "private and writable: its changes are the process's own";
  if (is_larger_than_allowed(made, about))
    return "written, and larger than files may become (ulimit -f)";
  if (is_taken) return {};  // whatever its size: two kinds of mapping could show different bytes
  if (s.is_excluded(path)) return "excluded by --not-map";
  if (!s.map.empty() && !s.is_named(path)) return "not named by --map";
  if (made.size_bytes < s.min_bytes)
    return "smaller than --min-size " + base::format_bytes(s.min_bytes);
  return {};
}

// Libraries and small files are not reported, except for --explain.
bool is_worth_telling(const NewMapping& made, const std::string& path) {
  if (settings().is_explaining) return true;
  return (made.protection & PROT_EXEC) == 0 && path.find(".so") == std::string::npos &&
         made.size_bytes >= std::min(settings().min_bytes, uint64_t{64} << 20);
}

// Of a file that may be written together with others.
bool is_to_share(const NewMapping& made) {
  return settings().shares_writes && made.size_bytes >= settings().min_bytes &&
         (made.flags & MAP_TYPE) != MAP_PRIVATE;
}

// The buffer that processes share by default if the first process of a run has started them, and no
// option says anything about buffers. Empty: none. Processes whose budget follows what others leave
// share none, and only those with the same budget share one.
std::string default_buffer() {
  if (settings().buffer.empty()) return {};
  if (settings().root == ::getpid() && !settings().shares_writes) return {};
  const Result<runtime::ResolvedOptions> options = runtime::resolve_options({});
  if (!options || options.value().adapts_budget || options.value().source_of("buffer") != "default")
    return {};
  const char* const budget = std::getenv("OUTCORE_BUDGET");
  const size_t mark = std::hash<std::string>()(budget == nullptr ? "" : budget);
  return settings().buffer + "-" + std::to_string(mark % 1'000'000);
}

// With the default buffer, what is not shared has the budget that a process alone would have.
Result<std::shared_ptr<Runtime::Impl>> start_usual_runtime() {
  if (!settings().complaint.empty()) return Error{EINVAL, settings().complaint};
  if (const std::string buffer = default_buffer(); !buffer.empty()) {
    RuntimeOptions options;
    options.buffer = buffer;
    auto started = Runtime::Impl::start(options, true);
    if (started) return started;
    if (settings().shares_writes)
      say(started.message() + "; this process shares nothing of what it writes");
  }
  return Runtime::Impl::start({});
}

}  // namespace

void Door::note_left(const std::string& path, uint64_t size_bytes, const std::string& reason) {
  const bool is_new = not_taken_.add(path, size_bytes, reason);
  if (is_new && runtime_ != nullptr)
    runtime_->sheet->memory().add_left_file(path, size_bytes, reason);
}

bool Door::start_runtime(std::string* why) {
  if (runtime_ != nullptr) return true;
  if (!has_tried_runtime_) {
    has_tried_runtime_ = true;
    // So it runs before exit handlers that were registered earlier, some of which close standard
    // error.
    std::atexit(end_of_process);
    Result<std::shared_ptr<Runtime::Impl>> started = start_usual_runtime();
    if (started)
      runtime_ = std::move(started).value();
    else
      why_no_runtime_ = started.message();
    if (runtime_ != nullptr && !LastStore::start()) {
      runtime_ = nullptr;
      why_no_runtime_ = "no thread could be started that stores what was written at the end";
    }
    if (runtime_ != nullptr) {
      begin_to_share();
      cache_room_.begin(*runtime_);
      for (const NotTaken::Entry& e : not_taken_.entries())
        runtime_->sheet->memory().add_left_file(e.path, e.size_bytes, e.reason);
    } else {
      say(why_no_runtime_ + "; every mapping stays with the kernel");
    }
    const std::string complaint = runtime_ == nullptr ? "" : runtime_->learnt->complaint();
    if (!complaint.empty()) {
      kept_ = Kept::kFailed;
      say(complaint);
    }
  }
  *why = why_no_runtime_;
  return runtime_ != nullptr;
}

std::shared_ptr<Runtime::Impl> Door::runtime_for_heap(std::string* why) {
  if (is_of_another_process()) return nullptr;
  const Inside inside;
  const os::Locked locked(lock_);
  if (owner_ == 0) begin();
  return start_runtime(why) ? runtime_ : nullptr;
}

void Door::include(const std::byte* address, uint64_t size_bytes) {
  const os::Locked locked(instance().lock_);
  widen_bounds(address, size_bytes);
  taken_count_.fetch_add(1, std::memory_order_release);
}

bool Door::take(const NewMapping& made) {
  if (is_of_another_process()) return false;  // the child of vfork, in its parent's memory
  const Inside inside;
  // Who looks whether others have the file open must not meet one that is about to join.
  std::optional<buffer::Member::OpeningLock> opening;
  buffer::Member* const member = is_to_share(made) ? member_to_share() : nullptr;
  if (member != nullptr) opening.emplace(*member);
  const buffer::Opening own(member);
  const os::Locked locked(lock_);
  // A forked child maps what it has inherited: the parent's mappings are no placeholders then.
  struct stat about;
  if (has_inherited_.load() && ::fstat(made.fd, &about) == 0)
    revive_inherited(identity_of(about), true);
  return take_locked(made);
}

// REQUIRES: `lock_` is locked.
bool Door::take_locked(const NewMapping& made) {
  struct stat about;
  if (::fstat(made.fd, &about) != 0) return false;
  if (owner_ == 0) begin();  // a library that is initialized before ours calls
  const auto known = files_.find(identity_of(about));
  if (known != files_.end()) end_idle_if_changed(*known->second, made.fd);
  const bool is_taken = known != files_.end() && !known->second->mappings.empty();
  const bool was_idle = is_taken && known->second->idle_since_ns != 0;
  if (!is_taken && made.size_bytes < settings().min_bytes && !settings().is_explaining)
    return false;
  const std::string path = path_of(made.fd);
  std::string why = OwnMemory::has_room(OwnMemory::kCallBytes)
                        ? why_never(made, about, path, is_taken)
                        : "no memory is left for it";
  if (why.empty() && why_closed_ != nullptr) why = why_closed_;
  const bool is_asked = why.empty();
  TakenFile* file =
      is_asked && start_runtime(&why) ? find_or_open(made, about, path, &why) : nullptr;
  if (file != nullptr && !put_region(*file, made, &why)) {
    if (file->mappings.empty()) close_file(*file);
    file = nullptr;
  }
  // It may be possible without what stayed of it.
  if (file == nullptr && is_asked && was_idle) {
    end_idle(*known->second);
    if (known->second->mappings.empty()) return take_locked(made);
  }
  if (file != nullptr && file->is_together()) keep_face(*file);
  if (file != nullptr && !file->mappings.empty()) return true;
  // A mapping of the kernel would not see what is written through Outcore, nor the other way round.
  if (is_taken && known->second->is_writable)
    hand_back_locked(*known->second,
                     ("another mapping of it stays with the kernel: " + why).c_str());
  if (!made.is_face && is_worth_telling(made, path)) note_left(path, made.size_bytes, why);
  return false;
}

TakenFile* Door::find_or_open(const NewMapping& made, const struct stat& about,
                              const std::string& path, std::string* why) {
  const Identity identity = identity_of(about);
  std::unique_ptr<TakenFile>& slot = files_[identity];
  if (slot == nullptr) slot = std::make_unique<TakenFile>();
  TakenFile& file = *slot;
  const bool is_first = file.mappings.empty();
  const int program_flags = ::fcntl(made.fd, F_GETFL, 0L);
  const bool may_write = (program_flags & O_ACCMODE) == O_RDWR;
  if (is_first) {
    file.identity = identity;
    file.path = path;
    file.is_named = settings().is_named(path);
    file.remark.clear();
    file.is_writable = file.is_unchanging = file.is_leased = false;
    // Not what is mapped for reading first: if it is written later, everybody is a stranger.
    file.may_be_together = shares_writes_ && S_ISREG(about.st_mode) && is_writable_shared(made);
    file.board = file.may_be_together ? &runtime_->sharing->buffer()->member().board() : nullptr;
    file.is_joining = file.may_be_together && are_writers_there(identity);
  }
  const std::string by_descriptor = "/proc/self/fd/" + std::to_string(made.fd);
  const bool is_enough = file.fd >= 0 && (!may_write || file.is_open_for_writing);
  const auto ask = [&] {
    *why = keep_coherent(file, made.address, is_writable_shared(made), is_first,
                         [this](std::byte* a) { return mapping_covering(a) != nullptr; });
    return why->empty();
  };
  // With the program's descriptor: if the answer is no, there is none of ours to close, which would
  // drop the POSIX locks that the program holds on the file.
  const bool is_lent = is_first && file.fd < 0;
  const auto give_up = [&] {
    Watch::instance().end(file);
    file.fd = -1;
    file.is_open_for_writing = file.is_writable = false;
    return nullptr;
  };
  if (is_lent) {
    file.fd = made.fd;
    file.is_open_for_writing = may_write;
    if (!ask()) return give_up();
  }
  if (!is_enough) {
    const LowNumbersTaken taken;
    const Watch::Quiet quiet(&file);
    const int fd = ::open(by_descriptor.c_str(), (may_write ? O_RDWR : O_RDONLY) | O_CLOEXEC, 0);
    store::FileStoreOptions options;
    options.path = by_descriptor;
    options.uri = path;
    options.open.is_writable = may_write;
    Result<std::shared_ptr<Store>> store =
        fd < 0 ? Result<std::shared_ptr<Store>>(base::system_error(errno, "open it once more"))
               : store::FileStore::open(options);
    if (!store) {
      if (fd >= 0) ::close(fd);
      *why = store.message();
      if (is_lent) return give_up();
      if (is_first) close_file(file);
      return nullptr;
    }
    if (file.fd >= 0 && !is_lent) file.old.emplace_back(file.fd, file.store);
    if (may_write && file.read_fd < 0)
      file.read_fd = ::open(by_descriptor.c_str(), O_RDONLY | O_CLOEXEC, 0);
    file.fd = fd;
    file.is_open_for_writing = may_write;
    file.store = std::static_pointer_cast<store::FileStore>(std::move(store).value());
  }
  if (is_lent || ask()) return &file;
  if (is_first) close_file(file);
  return nullptr;
}

bool Door::put_region(TakenFile& file, const NewMapping& made, std::string* why) {
  OC_CHECK(runtime_ != nullptr && file.store != nullptr);
  if (file.mappings.size() >= kMappingsMax) {
    *why = "more than " + std::to_string(kMappingsMax) + " mappings of one file";
    return false;
  }
  static_cast<void>(file.store->look_at_size(!file.mappings.empty()));
  const uint64_t file_bytes = file.store->size_bytes();
  const uint64_t size_bytes = round_up(made.size_bytes, kSystemPage);
  OC_ASSERT(size_bytes != 0 && made.address != nullptr);
  const uint64_t there = made.offset >= file_bytes ? 0 : file_bytes - made.offset;
  MapOptions options;
  options.access = is_writable_shared(made) ? Access::kReadWrite : Access::kReadOnly;
  options.offset = made.offset;
  options.advice = advice_of(made.pattern);
  options.size_bytes = std::min(round_up(there, kSystemPage), size_bytes);
  if (const Delivery chosen = delivery_for(file, made); chosen != Delivery::kAuto)
    options.delivery = chosen;
  const uint64_t room_bytes =
      std::max(made.offset + size_bytes, file_bytes) * 2 + (uint64_t{1} << 30);
  const Runtime::Impl::Lent lent{made.address, size_bytes, room_bytes,
                                 !file.is_writable && file.is_unchanging};
  Result<std::unique_ptr<Region::Impl>> region = map_region(file, made, options, lent);
  if (!region) {
    *why = region.message();
    // The kernel's mapping may be gone in part.
    real().mmap(made.address, size_bytes, made.protection, (made.flags & ~MAP_POPULATE) | MAP_FIXED,
                made.fd, static_cast<off_t>(made.offset));
    real().madvise(made.address, size_bytes, made.pattern);
    return false;
  }
  auto mapping = std::make_unique<Mapping>();
  mapping->address = made.address;
  mapping->size_bytes = size_bytes;
  mapping->offset = made.offset;
  mapping->protection = made.protection;
  mapping->flags = made.flags & ~(MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_POPULATE);
  mapping->pattern = made.pattern;
  mapping->is_face = made.is_face;
  if (!made.is_face) end_idleness(file, made.fd);
  mapping->may_write = (made.flags & MAP_TYPE) != MAP_PRIVATE &&
                       (::fcntl(made.fd, F_GETFL, 0L) & O_ACCMODE) == O_RDWR;
  mapping->file = &file;
  file.owner = owner_;
  file.link = ReleaseLink::asking_end();
  file.file_bytes = std::max(file.file_bytes, file_bytes);
  note_delivery(region.value()->cache->delivery);
  mapping->region = std::move(region).value();
  if (file.mappings.empty() && mapping->region->cache->writes != nullptr) note_together(file);
  mappings_[made.address] = mapping.get();
  widen_bounds(made.address, size_bytes);
  bool is_followed = true;
  if (!file.is_counted) {
    file.is_counted = true;
    taken_count_.fetch_add(1, std::memory_order_release);
    is_followed = mark_descriptors(file);
  }
  if (is_writable_shared(made) || runtime_->learnt->learns_by_option()) DeadlySignals::take_over();
  Mapping& put = *(file.mappings[made.address] = std::move(mapping));
  if (!is_followed) {
    *why = "what the program has open could not be looked at";
    hand_back_locked(file, why->c_str());
    return false;
  }
  if ((made.flags & (MAP_POPULATE | MAP_LOCKED)) != 0) populate(put);
  return true;
}

}  // namespace outcore::preload
