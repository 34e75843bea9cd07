// Files whose pages stay after the program has unmapped them. See door.h.
//
// Programs map a file, unmap it and map it again: for each batch of training data (np.memmap), or
// whenever it has grown (gdbm). The kernel has the pages still; ours went with the last mapping,
// and were read from the device each time. So from the second end on a mapping of ours of one page
// (Mapping::is_face) keeps them for ten seconds. All else is as if the program had the file mapped:
// who opens or changes it meanwhile gets it as before. What was written is stored when the program
// unmaps it, as without.
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/wait.h"
#include "run/preload/descriptor_table.h"
#include "run/preload/door.h"
#include "run/preload/last_store.h"
#include "run/preload/own_memory.h"
#include "run/preload/real.h"
#include "run/preload/watch.h"
#include "run/preload/window.h"
#include "run/preload/words.h"

namespace outcore::preload {

using base::kSystemPage;

namespace {

constexpr uint64_t kIdleNsMax = 10'000'000'000;
constexpr size_t kIdleFilesMax = 16;    // each has up to three descriptors
constexpr uint32_t kIdleCallsMax = 64;  // then the program goes on with calls alone

bool is_only_mapping(const TakenFile& file, const Mapping* mapping) {
  return std::all_of(file.mappings.begin(), file.mappings.end(), [&](const auto& entry) {
    return entry.second.get() == mapping || entry.second->is_face;
  });
}

// Not by other machines, nor by a server past the kernel's leases and marks.
bool is_changed_by_this_kernel(int fd) {
  constexpr long kBcachefs = 0xca451a4e, kZfs = 0x2fc12fc1;
  struct statfs about;
  if (::fstatfs(fd, &about) != 0) return false;
  switch (about.f_type) {
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
    case kBcachefs:
    case kZfs:
      return true;
    default:
      return false;
  }
}

}  // namespace

Mapping* face_of(const TakenFile& file) {
  for (const auto& [address, m] : file.mappings)
    if (m->is_face) return m.get();
  return nullptr;
}

// Where faults in-thread can be had if they can: all mappings of a file have the same delivery.
void* map_face(int fd, uint64_t size_bytes, int protection) {
  OC_CHECK(size_bytes != 0);
  void* at = MAP_FAILED;
  if (Window::is_offered() && Window::instance().prepare())
    at = Window::instance().map(size_bytes, protection, MAP_SHARED, fd, 0);
  return at != MAP_FAILED ? at : real().mmap(nullptr, size_bytes, protection, MAP_SHARED, fd, 0);
}

// Whether pages of the file may outlive its mappings, and are likely to be used again. What others
// write must be known before the program maps it again: not only soon after.
bool Door::is_worth_keeping(const TakenFile& file) const {
  constexpr uint32_t kEndsLeast = 2;  // most files are mapped once
  // Of more than that few pages would still be there. What was learnt of the file is, too: how much
  // to fetch. That is worth the slower frames where a program maps it for a moment each time.
  constexpr uint64_t kBudgets = 2, kEndsOfLarge = 4;
  if (file.ends < kEndsLeast || why_closed_ != nullptr || LastStore::has_begun()) return false;
  const bool is_known =
      (file.is_writable ? !file.is_named : file.is_leased) && is_changed_by_this_kernel(file.fd);
  // Others are not to miss the space of a file that the program has closed and removed.
  if (!is_known || (file.is_writable && !DescriptorTable::has(&file))) return false;
  const paging::PageCache& cache = *file.cache();
  if (cache.counters.sum().fill_errors != 0) return false;  // to be tried anew
  return cache.shared != nullptr || file.ends >= kEndsOfLarge ||
         cache.store_bytes.load() <= kBudgets * runtime_->engine->budget_bytes();
}

// The mapping is about to end. REQUIRES: `lock_` is locked.
void Door::keep_pages(TakenFile& file, const Mapping& ending) {
  OC_CHECK(ending.file == &file && !file.mappings.empty());
  if (shares_writes_ || ending.is_face || !is_only_mapping(file, &ending)) return;
  ++file.ends;
  if (face_of(file) != nullptr || !OwnMemory::has_room(OwnMemory::kCallBytes)) return;
  if (!is_worth_keeping(file) || !Watch::instance().start().ok()) return;
  const int fd = file.read_fd >= 0 ? file.read_fd : file.fd;
  void* const at = map_face(fd, kSystemPage, PROT_READ);
  if (at == MAP_FAILED) return;
  std::string why;  // nobody asks: then the pages go, as they would
  const NewMapping made{
      static_cast<std::byte*>(at), kSystemPage, PROT_READ, MAP_SHARED, fd, 0, MADV_NORMAL, true};
  if (!put_region(file, made, &why)) real().munmap(at, kSystemPage);
}

// A mapping of the file has ended. REQUIRES: `lock_` is locked.
void Door::note_idle(TakenFile& file) {
  if (shares_writes_ || file.mappings.empty() || !is_only_mapping(file, nullptr)) return;
  file.idle_since_ns = os::now_ns();
  file.idle_calls = 0;
  if (!is_worth_keeping(file) ||  // it may not be any more
      store::FileVersion::of(file.fd, &file.idle_version) != 0)
    return end_idle(file);
  TakenFile* oldest = &file;
  size_t count = 0;
  for (const auto& [identity, other] : files_) {
    if (other->idle_since_ns == 0) continue;
    ++count;
    if (other->idle_since_ns < oldest->idle_since_ns) oldest = other.get();
  }
  if (count > kIdleFilesMax) end_idle(*oldest);
  if (!has_idle_.exchange(true)) Watch::instance().look_at_idle();
}

// Its pages go. REQUIRES: `lock_` is locked, and the file is idle.
void Door::end_idle(TakenFile& file) {
  Mapping* const face = face_of(file);
  OC_CHECK(file.idle_since_ns != 0 && face != nullptr && is_only_mapping(file, nullptr));
  std::byte* const at = face->address;
  paging::PageCache& cache = *file.cache();
  const uint64_t end =
      base::round_up(cache.store_bytes.load(), cache.page_bytes) / cache.page_bytes;
  Status s;
  if (file.is_writable)  // nothing can be, but for what an unmap could not store
    s = runtime_->engine->flush(cache, 0, std::min(cache.page_count(), end));
  if (s.ok()) s = unmap(file, *face);
  if (s.ok()) {
    real().munmap(at, kSystemPage);
  } else {
    file.idle_since_ns = os::now_ns();
    say(file.path + ": what the program wrote cannot be stored: " + s.message(), true);
  }
}

// The program uses the file by a call. REQUIRES: `lock_` is locked.
void Door::note_idle_call(TakenFile& file) {
  if (file.idle_since_ns != 0 && ++file.idle_calls > kIdleCallsMax) end_idle(file);
}

// We have changed it, or seen that it was changed. REQUIRES: `lock_` is locked.
void Door::note_idle_change(TakenFile& file) {
  if (file.idle_since_ns != 0)
    static_cast<void>(store::FileVersion::of(file.fd, &file.idle_version));
}

// By what nobody sees: a system call by an instruction of the program's own. REQUIRES: `lock_` is
// locked.
void Door::end_idle_if_changed(TakenFile& file, int fd) {
  if (file.idle_since_ns == 0) return;
  store::FileVersion version;
  if (store::FileVersion::of(fd, &version) != 0 || version != file.idle_version) end_idle(file);
}

// The program has mapped it again, by that descriptor. REQUIRES: `lock_` is locked.
void Door::end_idleness(TakenFile& file, int fd) {
  if (std::exchange(file.idle_since_ns, 0) != 0) DescriptorTable::set_file(fd, &file);
}

bool Door::look_at_idle() {
  const Inside inside;
  const os::Locked locked(lock_);
  bool is_any = false;
  const uint64_t now_ns = os::now_ns();
  for (const auto& [identity, file] : files_) {
    if (file->idle_since_ns == 0) continue;
    struct stat about;
    const bool is_removed = !DescriptorTable::has(file.get()) &&
                            (::fstat(file->fd, &about) != 0 || about.st_nlink == 0);
    if (is_removed || now_ns - file->idle_since_ns > kIdleNsMax) end_idle(*file);
    is_any = is_any || file->idle_since_ns != 0;
  }
  has_idle_.store(is_any);
  return is_any;
}

}  // namespace outcore::preload
