// Files that several processes of a run write together, in a buffer (--share-writes). See door.h.
//
// Whoever has such a file open has it mapped, too: by a mapping of the program, or by one of ours
// (Mapping::is_face). So it is among those who hand the file back together (buffer::HandingBack)
// when somebody opens it who cannot take part, or something is done to it that only the kernel can.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/buffer/handing_back.h"
#include "core/buffer/opener.h"
#include "core/os/signal_delivery.h"
#include "core/os/wait.h"
#include "core/os/wait_limit.h"
#include "core/runtime/mapper.h"
#include "core/runtime/region_changes.h"
#include "core/runtime/sharing.h"
#include "run/preload/coherence.h"
#include "run/preload/descriptor_table.h"
#include "run/preload/door.h"
#include "run/preload/own_descriptors.h"
#include "run/preload/real.h"
#include "run/preload/settings.h"
#include "run/preload/watch.h"
#include "run/preload/window.h"
#include "run/preload/words.h"

namespace outcore::preload {

using base::round_up;

namespace {

constexpr uint64_t kAskNs = 60'000'000'000;

// Hears when others hand a file back.
bool start_share_thread(buffer::Member* member) {
  try {
    std::thread([member] {
      become_ours("outcore-share");
      for (;;) {
        const uint32_t seen = member->board().handing_changes.load(std::memory_order_seq_cst);
        try {
          Door::instance().hand_back_wanted();
        } catch (const std::bad_alloc&) {  // it is tried again
        }
        os::rest_if_told();
        buffer::HandingBack::wait_for_change(*member, seen, 100'000'000);
      }
    }).detach();  // banned-ok: it lives as long as the process
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace

// With the runtime, which has just been started. REQUIRES: `lock_` is locked.
void Door::begin_to_share() {
  if (!settings().shares_writes || runtime_->sharing->buffer() == nullptr) return;
  buffer::Member& member = runtime_->sharing->buffer()->member();
  if (!start_share_thread(&member)) return;
  buffer::Opener::introduce(member);
  shares_writes_ = true;
}

buffer::Member* Door::member_to_share() {
  if (!settings().shares_writes || is_of_another_process()) return nullptr;
  const Inside inside;
  const os::Locked locked(lock_);
  if (owner_ == 0) begin();
  std::string why;
  if (!start_runtime(&why) || !shares_writes_) return nullptr;
  return &runtime_->sharing->buffer()->member();
}

bool Door::are_writers_there(const Identity& identity) const {
  return shares_writes_ && buffer::SharedFile::is_together(*runtime_->sharing->buffer(),
                                                           identity.device, identity.inode);
}

// This process is none of them. With the door's lock it hands back meanwhile what others want, who
// may be waiting for that.
bool Door::ask_others_back(const Identity& identity, bool is_locked) {
  if (!are_writers_there(identity)) return true;
  constexpr uint64_t kSliceNs = 50'000'000;
  os::WaitLimit limit(kAskNs);
  Status s;
  do {
    s = buffer::SharedFile::ask_back(*runtime_->sharing->buffer(), identity.device, identity.inode,
                                     is_locked ? kSliceNs : kAskNs);
    if (is_locked) hand_back_wanted_but(nullptr);
  } while (is_locked && s.code() == ETIMEDOUT && !limit.is_over());
  if (!s.ok()) say(s.message(), true);
  return s.ok();
}

// Whoever has not started its runtime yet knows nothing of others: where the file may be theirs, it
// is started.
bool Door::ask_others_as_stranger(const Identity& identity, uint64_t size_bytes) {
  if (size_bytes >= settings().min_bytes) static_cast<void>(member_to_share());
  {
    const os::Locked locked(lock_);
    const auto known = files_.find(identity);
    const bool is_taken = known != files_.end() && !known->second->mappings.empty();
    if (is_taken || !are_writers_there(identity)) return true;
  }
  return ask_others_back(identity);
}

bool Door::leave_to_change(TakenFile& file, const char* why) {
  const Inside inside;
  const os::Locked locked(lock_);
  return hand_back_locked(file, why) || !file.is_together();
}

bool Door::before_path_change(int folder, const char* path, const char* why) {
  const Inside inside;
  struct stat about;
  if (path == nullptr || ::fstatat(folder, path, &about, 0) != 0) return true;
  const Identity identity = identity_of(about);
  TakenFile* const file = file_of_parent_or_ours(identity);
  if (file != nullptr && !leave_to_change(*file, why)) return false;
  return !settings().shares_writes || !S_ISREG(about.st_mode) ||
         ask_others_as_stranger(identity, static_cast<uint64_t>(about.st_size));
}

void Door::opened_as_stranger(int fd) {
  const Inside inside;
  struct stat about;
  if (!settings().shares_writes || ::fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) return;
  ask_others_as_stranger(identity_of(about), static_cast<uint64_t>(about.st_size));
}

void Door::join_writers(int fd) {
  struct stat about;
  if (::fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) return;
  const Inside inside;
  const Identity identity = identity_of(about);
  const auto size_bytes = static_cast<uint64_t>(about.st_size);
  {
    const os::Locked locked(lock_);
    revive_inherited(identity, false);
    const auto known = files_.find(identity);
    if (known != files_.end() && !known->second->mappings.empty()) return;  // note_descriptor()
    const bool may_begin = (::fcntl(fd, F_GETFL, 0L) & O_ACCMODE) == O_RDWR;
    if ((may_begin || are_writers_there(identity)) && put_face(fd, size_bytes)) return;
  }
  ask_others_back(identity);
}

// Takes the file by a mapping of ours. REQUIRES: `lock_` is locked.
bool Door::put_face(int fd, uint64_t size_bytes) {
  if (size_bytes == 0) return false;
  int own = fd;
  // The program has no lock of the file that closing this would drop: it has none open yet.
  if ((::fcntl(fd, F_GETFL, 0L) & O_ACCMODE) != O_RDWR) {
    const LowNumbersTaken taken;
    own = ::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDWR | O_CLOEXEC, 0);
  }
  if (own < 0) return false;
  void* const at = map_face(own, size_bytes, PROT_READ | PROT_WRITE);
  bool is_taken = false;
  if (at != MAP_FAILED) {
    is_taken = take_locked({static_cast<std::byte*>(at), size_bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED, own, 0, MADV_NORMAL, true});
    if (!is_taken) real().munmap(at, size_bytes);
  }
  if (own != fd) ::close(own);
  return is_taken;
}

// As long as the program has a descriptor. REQUIRES: `lock_` is locked.
void Door::keep_face(TakenFile& file) {
  if (!file.is_together() || face_of(file) != nullptr || !DescriptorTable::has(&file)) return;
  if (!put_face(file.fd, file.cache()->store_bytes.load()))
    hand_back_locked(file, "its writers could not be followed (no memory, or no addresses)");
}

void Door::note_descriptor_of(TakenFile& file) {
  const Inside inside;
  const os::Locked locked(lock_);
  keep_face(file);
}

void Door::drop_face(TakenFile& file) {
  if (!file.may_be_together) return;
  Mapping* const face = face_of(file);
  if (face == nullptr || !mappings_.contains(face->address) || DescriptorTable::has(&file)) return;
  std::byte* const at = face->address;
  const uint64_t size_bytes = face->size_bytes;
  if (const Status s = unmap(file, *face); !s.ok()) {
    say(file.path + ": what the program wrote cannot be stored: " + s.message(), true);
    return;
  }
  real().munmap(at, size_bytes);
}

// Whether the door has mappings of it: other threads may have ended them since it was found.
bool Door::is_mapped_now(const TakenFile& file) const {
  return !file.mappings.empty() && mappings_.contains(file.mappings.begin()->first);
}

bool Door::write_by_face(TakenFile& file, const Place& place, std::span<const std::byte> bytes,
                         uint64_t rest_bytes) {
  const Inside inside;
  const os::Locked locked(lock_);
  if (!is_mapped_now(file) || !file.is_together()) return false;
  const Mapping* const face = face_of(file);
  const uint64_t at = place.offset(), size_bytes = file.cache()->store_bytes.load();
  if (face == nullptr || at > size_bytes || rest_bytes > size_bytes - at) return false;
  place.taken();
  return os::copy_or_fail(face->address + at, bytes.data(), bytes.size());
}

// Another process has made the file shorter, and we hear of it too late to store first: what is
// behind its end must not make it longer again.
void Door::note_cut_off(TakenFile& file) {
  struct stat about;
  // Its number may be another file's, if the program has closed ours by a call that nobody sees.
  if (::fstat(file.fd, &about) != 0 || !S_ISREG(about.st_mode) ||
      identity_of(about) != file.identity)
    return;
  const auto bytes = static_cast<uint64_t>(about.st_size);
  if (bytes < file.cache()->store_bytes.load()) file.cache()->store_bytes.store(bytes);
}

// The process ends. What it still writes is marked, and stored by others, if some stay; else it
// must go to the kernel.
bool Door::leave_to_others(TakenFile& file) {
  paging::PageCache& cache = *file.cache();
  return runtime_->engine->flush(cache, 0, cache.page_count()).ok() &&
         cache.shared->leaves_others();
}

void Door::hand_back_wanted() {
  const Inside inside;
  const os::Locked locked(lock_);
  hand_back_wanted_but(nullptr);
}

// REQUIRES: `lock_` is locked.
bool Door::is_any_wanted_back() const {
  return std::any_of(files_.begin(), files_.end(), [](const auto& file) {
    return file.second->is_together() && file.second->cache()->shared->is_wanted_back();
  });
}

// REQUIRES: `lock_` is locked.
void Door::hand_back_wanted_but(const TakenFile* other) {
  for (const auto& [identity, file] : files_) {
    if (file.get() == other || !file->is_together() || !file->cache()->shared->is_wanted_back())
      continue;
    const Status s = try_once_to_hand_back(*file, "another process needs it through the kernel");
    if (!s.ok() && s.code() != EAGAIN) say(s.message(), true);
  }
}

// The first mapping of a file that may be written together is made so, or, if this process is the
// first and it cannot be, with pages of its own, as without the option.
Result<std::unique_ptr<Region::Impl>> Door::map_region(TakenFile& file, const NewMapping& made,
                                                       MapOptions options,
                                                       const Runtime::Impl::Lent& lent) {
  using Together = Runtime::Impl::Lent::Together;
  const bool is_to_begin = file.may_be_together && file.is_writable && file.mappings.empty();
  Runtime::Impl::Lent how = lent;
  if (is_to_begin) {
    how.may_share = how.must_share = true;
    how.together = file.is_joining ? Together::kJoined : Together::kFirst;
  }
  MapOptions exact = options;
  if (file.may_be_together && file.is_writable) {
    const uint64_t end = std::max(file.store->size_bytes(), made.offset);
    exact.size_bytes = std::min(options.size_bytes, end - made.offset);
  }
  auto region = runtime_->mapper->map(file.store, file.path, exact, &how);
  if (region || !is_to_begin || file.is_joining || made.is_face) return region;
  file.may_be_together = false;
  file.board = nullptr;
  Watch::instance().end(file);
  const int watched = Watch::instance().watch(file, Watch::For::kOpens);
  if (watched < 0 || (watched != 0 && !file.is_named))
    return Error{EBUSY, "nobody would tell of who opens it"};
  // Between the two watches nobody was asked.
  if (const std::string who = who_else_writes(file); !who.empty()) return Error{EBUSY, who};
  return runtime_->mapper->map(file.store, file.path, options, &lent);
}

// Its first region was just made. REQUIRES: `lock_` is locked.
void Door::note_together(TakenFile& file) {
  file.remark =
      "written together with other processes of the buffer; handed back when others open it";
}

}  // namespace outcore::preload
