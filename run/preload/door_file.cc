// System calls on taken files, and the way back to the kernel. See door.h.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/wait_limit.h"
#include "core/runtime/learnt_starts.h"
#include "core/runtime/region_changes.h"
#include "core/runtime/sharing.h"
#include "run/preload/coherence.h"
#include "run/preload/descriptor_table.h"
#include "run/preload/door.h"
#include "run/preload/others.h"
#include "run/preload/page_advice.h"
#include "run/preload/real.h"
#include "run/preload/watch.h"
#include "run/preload/words.h"

namespace outcore::preload {

using base::kSystemPage;
using base::round_up;
using paging::PageCache;

// The errno that the kernel would give for a file whose bytes could not be stored.
int as_errno(const Status& s) {
  return s.ok() || s.code() == ENOSPC || s.code() == EDQUOT ? s.code() : EIO;
}

bool Door::mark_descriptors(TakenFile& file) {
  return for_each_own_descriptor(file.identity,
                                 [&](int fd) { DescriptorTable::set_file(fd, &file); });
}

// What does not fit would evict what was filled before it. Locked pages all stay, or are refused.
void Door::populate(Mapping& mapping) {
  paging::Engine& engine = *runtime_->engine;
  region::View& view = *mapping.region->view;
  const uint64_t first = view.first_page();
  uint64_t end = view.end_page();
  if ((mapping.flags & MAP_LOCKED) == 0)
    end = std::min(end, first + engine.budget_bytes() / view.cache->page_bytes);
  static_cast<void>(fill_pages(engine, view, first, end));
}

void Door::add_ended(TakenFile& file) {
  const PageCache* cache = file.cache();
  if (cache == nullptr) return;
  file.ended += cache->counters.sum();
}

// No mapping of the file is left. Our descriptors of it stay open while the program has one.
void Door::close_file(TakenFile& file) {
  OC_CHECK(file.mappings.empty());
  Watch::instance().end(file);
  if (std::exchange(file.is_written_by_calls, false) && runtime_ != nullptr &&
      std::none_of(files_.begin(), files_.end(),
                   [](const auto& other) { return other.second->is_written_by_calls; }))
    cache_room_.return_all(*runtime_);
  if (file.is_counted) taken_count_.fetch_sub(1, std::memory_order_release);
  file.is_counted = false;
  file.is_writable = false;
  file.idle_since_ns = 0;
  if (!DescriptorTable::has(&file)) close_descriptors(file);
}

void Door::close_descriptors(TakenFile& file) {
  OC_CHECK(file.mappings.empty());
  file.old.emplace_back(file.fd, std::move(file.store));
  for (const auto& [fd, store] : file.old)
    if (fd >= 0) ::close(fd);
  file.old.clear();
  if (file.read_fd >= 0) ::close(file.read_fd);
  file.fd = file.read_fd = -1;
  file.is_open_for_writing = false;
}

void Door::closed_descriptor(TakenFile& file) {
  const Inside inside;
  const os::Locked locked(lock_);
  if (file.idle_since_ns != 0 && file.is_writable && !DescriptorTable::has(&file)) end_idle(file);
  if (!file.mappings.empty()) return drop_face(file);
  if (file.fd >= 0 && !DescriptorTable::has(&file)) close_descriptors(file);
}

int Door::before_read(TakenFile& file, uint64_t offset, uint64_t size_bytes) {
  const Inside inside;
  const os::Locked locked(lock_);
  if (is_inherited(file)) return 0;
  note_idle_call(file);
  PageCache* cache = file.cache();
  if (cache == nullptr || !cache->is_writable || size_bytes == 0) return 0;
  const uint64_t end =
      std::min((offset + size_bytes - 1) / cache->page_bytes + 1, cache->page_count());
  const uint64_t first = std::min(offset / cache->page_bytes, end);
  const Status s = runtime_->engine->flush(*cache, first, end);
  if (!s.ok()) say("read of " + file.path + ": " + s.message(), true);
  return as_errno(s);
}

int Door::store_files(const dev_t* device) {
  const Inside inside;
  const os::Locked locked(lock_);
  int result = 0;
  for (const auto& [identity, file] : files_) {
    PageCache* cache = file->cache();
    if (cache == nullptr || !cache->is_writable || is_inherited(*file)) continue;
    struct stat about;
    if (device != nullptr && ::fstat(file->fd, &about) == 0 && about.st_dev != *device) continue;
    const Status s = runtime_->engine->flush(*cache, 0, cache->page_count());
    if (s.ok()) continue;
    say("sync of " + file->path + ": " + s.message(), true);
    result = as_errno(s);
  }
  return result;
}

void Door::around_write(TakenFile& file, base::FunctionRef<uint64_t()> offset_now,
                        uint64_t size_bytes, base::FunctionRef<uint64_t()> change) {
  const Inside inside;
  const os::Locked locked(lock_);
  if (is_inherited(file)) return static_cast<void>(change());
  note_idle_call(file);
  const uint64_t offset = offset_now();
  bool is_changed = false;
  uint64_t written = 0;
  const auto once = [&] {
    is_changed = true;
    written = change();
    // To be read from the kernel's page cache: a direct read would wait for the device to have it.
    if (file.store == nullptr || file.mappings.empty()) return;
    file.store->note_cached(offset, size_bytes);
    for (const auto& [fd, store] : file.old) store->note_cached(offset, size_bytes);
  };
  if (PageCache* const shared = file.cache(); shared != nullptr && shared->shared != nullptr)
    hand_back_locked(file, "it is written, and others share its pages");
  if (file.is_together()) return;  // it could not be: written past the buffer it would be lost
  PageCache* cache = file.cache();
  // Bytes past the end of the file are in no page of ours.
  const uint64_t known = cache == nullptr ? 0 : cache->store_bytes.load();
  const uint64_t bytes = offset >= known ? 0 : std::min(size_bytes, known - offset);
  if (cache != nullptr && bytes != 0) {
    // A write that makes the file longer also changes what is behind its old end.
    const Status s = bytes == size_bytes
                         ? runtime_->changes->overwrite(*cache, offset, bytes, once)
                         : runtime_->changes->with_blocked_range(*cache, offset, bytes, once);
    if (!s.ok()) hand_back_locked(file, ("a write to it: " + s.message()).c_str());
  }
  if (!is_changed) once();
  note_growth_locked(file);
  note_idle_change(file);
  if (written == 0 || file.mappings.empty()) return;
  file.is_written_by_calls = true;
  cache_room_.note_written(*runtime_, written);
}

void Door::note_growth(TakenFile& file) {
  const Inside inside;
  const os::Locked locked(lock_);
  note_growth_locked(file);
  note_idle_change(file);
}

void Door::note_growth_locked(TakenFile& file) {
  if (is_inherited(file)) return;
  const PageCache* cache = file.cache();
  if (cache == nullptr || file.store->look_at_size(true) != 0) return;
  // If the file was opened again for writing, pages may still be read by an older store.
  for (const auto& [fd, store] : file.old) static_cast<void>(store->look_at_size(true));
  const uint64_t bytes = file.store->size_bytes();
  file.file_bytes = std::max(file.file_bytes, bytes);
  if (bytes <= cache->store_bytes.load()) return;
  for (const auto& [address, m] : file.mappings) {
    const uint64_t there = bytes <= m->offset ? 0 : bytes - m->offset;
    const uint64_t shown = std::min(round_up(there, kSystemPage), m->size_bytes);
    const Status s = runtime_->changes->extend(
        *m->region, std::max(shown, m->region->view->size_bytes.load()), bytes);
    if (s.ok()) continue;
    hand_back_locked(file, ("it grew: " + s.message()).c_str());
    return;
  }
}

bool Door::hand_back(TakenFile& file, const char* why) {
  const Inside inside;
  const os::Locked locked(lock_);
  return hand_back_locked(file, why);
}

bool Door::hand_back(const Identity& identity, const char* why) {
  const Inside inside;
  const os::Locked locked(lock_);
  const auto found = files_.find(identity);
  if (found == files_.end()) return true;
  drop_what_was_cut_off(*found->second);
  return hand_back_locked(*found->second, why);
}

// Another process has made the file shorter, and we heard of it too late to store first. What was
// written behind its end is lost, as in a kernel's mapping, and must not make it longer again.
void Door::drop_what_was_cut_off(TakenFile& file) {
  PageCache* cache = file.cache();
  struct stat about;
  if (cache == nullptr || !cache->is_writable || file.is_together() ||
      ::fstat(file.fd, &about) != 0)
    return;
  const auto bytes = static_cast<uint64_t>(about.st_size);
  const uint64_t known = file.store->size_bytes();
  const uint64_t from = round_up(bytes, cache->page_bytes);
  if (!S_ISREG(about.st_mode) || bytes >= known) return;
  if (const Status s = runtime_->engine->flush(*cache, 0, bytes / cache->page_bytes); !s)
    say("write of " + file.path + ": " + s.message(), true);
  if (from < known)
    static_cast<void>(
        runtime_->engine->discard(*cache, from, round_up(known, cache->page_bytes) - from));
}

// The question comes from a descendant; when that was created, the file was among ours.
ReleaseLink::Answer Door::release(const ReleaseLink::Question& question) {
  using Answer = ReleaseLink::Answer;
  const Inside inside;
  {
    const os::Locked locked(lock_);
    const auto found = files_.find(question.file);
    if (found == files_.end()) return Answer::kUnknown;
    TakenFile& file = *found->second;
    if (question.is_only_if_written && !file.is_writable && !file.may_be_together)
      return Answer::kReleased;
    if (!hand_back_locked(file, "a child uses it, too")) return Answer::kRefused;
  }
  return ask_others_back(question.file) ? Answer::kReleased : Answer::kRefused;
}

bool map_by_kernel(const Mapping& m) {
  OC_ASSERT(m.file != nullptr && m.size_bytes != 0);
  const int flags = (m.flags & ~(MAP_FIXED_NOREPLACE | MAP_POPULATE)) | MAP_FIXED;
  void* p = real().mmap(m.address, m.size_bytes, m.protection, flags, m.file->fd_of(m),
                        static_cast<off_t>(m.offset));
  if (p == MAP_FAILED) return false;
  for (const Mapping::Lock& l : m.locks) real().mlock(m.address + l.from, l.to - l.from);
  if (m.pattern != MADV_NORMAL) real().madvise(p, m.size_bytes, m.pattern);
  return true;
}

bool Door::hand_back_if_writable(TakenFile& file, const char* why) {
  const Inside inside;
  const os::Locked locked(lock_);
  return !file.is_writable || hand_back_locked(file, why);
}

bool Door::hand_back_locked(TakenFile& file, const char* why) {
  const Status s = try_to_hand_back(file, why);
  if (!s.ok()) say(s.message(), true);
  return s.ok();
}

// Others may hand back another file that this process has, too, and wait for it.
Status Door::try_to_hand_back(TakenFile& file, const char* why) {
  constexpr uint64_t kNsMax = 60'000'000'000, kPauseNs = 1'000'000;
  os::WaitLimit limit(kNsMax);
  for (;;) {
    const bool is_together = file.is_together();
    const Status s = try_once_to_hand_back(file, why);
    if (s.ok() || s.code() != EAGAIN || !is_together || limit.is_over()) return s;
    hand_back_wanted_but(&file);
    os::pause(kPauseNs);
  }
}

Status Door::try_once_to_hand_back(TakenFile& file, const char* why) {
  if (is_inherited(file) || file.mappings.empty()) return {};
  std::vector<Region::Impl*> regions;
  for (const auto& [address, m] : file.mappings) {
    OC_CHECK(m->region != nullptr && m->file == &file);
    for (const Mapping::Lock& l : m->locks)
      static_cast<void>(
          runtime_->engine->unpin(*m->region->view, m->address + l.from, l.to - l.from));
    regions.push_back(m->region.get());
  }
  add_ended(file);
  if (file.is_together()) note_cut_off(file);
  const Status s = runtime_->changes->hand_back(regions, [&]() -> Status {
    // Each mapping replaces one that exists, so the kernel has no reason to refuse.
    for (const auto& [address, m] : file.mappings) {
      const bool is_mapped = map_by_kernel(*m);
      if (!is_mapped) say(file.path + ": the kernel: " + ::strerrordesc_np(errno), true);
      OC_CHECK(is_mapped);
    }
    return {};
  });
  if (!s.ok()) {
    file.ended = {};
    return s;
  }
  for (const auto& [address, m] : file.mappings) {
    OC_ASSERT(mappings_.contains(address));
    if (m->is_face)
      real().munmap(address, m->size_bytes);
    else
      note_left(file.path, m->size_bytes, std::string("handed back: ") + why);
    mappings_.erase(address);
  }
  file.mappings.clear();
  file.remark = std::string("handed back to the kernel: ") + why;
  close_file(file);
  return {};
}

TakenFile* Door::file_of_identity(const Identity& identity) {
  const Inside inside;
  const os::Locked locked(lock_);
  const auto found = files_.find(identity);
  return found == files_.end() || found->second->mappings.empty() ? nullptr : found->second.get();
}

TakenFile* Door::file_of_path(int folder, const char* path) {
  struct stat about;
  if (path == nullptr || ::fstatat(folder, path, &about, 0) != 0) return nullptr;
  return file_of_identity(identity_of(about));
}

void Door::before_write_open(TakenFile& file) {
  const Inside inside;
  const os::Locked locked(lock_);
  if (file.mappings.empty() || file.is_writable) return;
  if (file.cache()->shared != nullptr) {
    hand_back_locked(file, "the program opens it for writing, and others share its pages");
    return;
  }
  const std::string why = become_writable(
      file, nullptr, [this](std::byte* a) { return mapping_covering(a) != nullptr; });
  if (!why.empty()) hand_back_locked(file, why.c_str());
}

void Door::note_descriptor(int fd) {
  struct stat about;
  if (fd < 0) return;
  DescriptorTable::closed(fd);
  if (::fstat(fd, &about) != 0) return;
  TakenFile* file = file_of_identity(identity_of(about));
  if (file == nullptr) return;
  if (fd < DescriptorTable::kDescriptorsMax) {
    DescriptorTable::set_file(fd, file);
    if (file->may_be_together) note_descriptor_of(*file);
  } else if (file->is_writable) {
    hand_back(*file, "the program has more descriptors than can be followed");
  }
}

}  // namespace outcore::preload
