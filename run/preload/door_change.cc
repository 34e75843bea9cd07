// How mappings of ours change: munmap, mprotect, mremap, mlock. See door.h.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/region/address_map.h"
#include "core/runtime/mapper.h"
#include "core/runtime/region_changes.h"
#include "run/preload/door.h"
#include "run/preload/own_memory.h"
#include "run/preload/real.h"
#include "run/preload/window.h"
#include "run/preload/words.h"

namespace outcore::preload {

using base::kSystemPage;
using base::round_up;

bool Door::is_ours(const void* address) {
  region::View* view =
      region::AddressMap::instance().find_and_hold(static_cast<const std::byte*>(address));
  if (view == nullptr) return false;
  region::AddressMap::release(view);
  return true;
}

Mapping* Door::mapping_at(const std::byte* address) {
  auto at = mappings_.upper_bound(const_cast<std::byte*>(address));
  if (at != mappings_.begin() && std::prev(at)->second->end() > address) --at;
  OC_ASSERT(at == mappings_.end() || at->second->address == at->first);
  return at == mappings_.end() ? nullptr : at->second;
}

Mapping* Door::mapping_covering(const std::byte* address) {
  Mapping* mapping = mapping_at(address);
  return mapping != nullptr && mapping->address <= address ? mapping : nullptr;
}

void Door::widen_bounds(const std::byte* address, uint64_t size_bytes) {
  const auto from = reinterpret_cast<uint64_t>(address);
  if (from < low_.load()) low_.store(from);
  if (from + size_bytes > high_.load()) high_.store(from + size_bytes);
}

void Door::for_each_part(const std::byte* address, uint64_t size_bytes,
                         const std::function<void(Mapping&, uint64_t, uint64_t)>& f) {
  const Inside inside;
  const os::Locked locked(lock_);
  const std::byte* end = address + size_bytes;
  for (Mapping* m = mapping_at(address); m != nullptr && m->address < end;) {
    const std::byte* next = m->end();
    const uint64_t from = m->address < address ? static_cast<uint64_t>(address - m->address) : 0;
    f(*m, from, std::min<uint64_t>(m->size_bytes, static_cast<uint64_t>(end - m->address)));
    m = mapping_at(next);
  }
}

// Ends a whole mapping of ours: its bytes are stored, and its addresses are free for another use.
Status Door::unmap(TakenFile& file, Mapping& mapping) {
  OC_CHECK(mapping.file == &file && mapping.region != nullptr);
  const bool is_last = file.mappings.size() == 1;
  for (const Mapping::Lock& l : mapping.locks)
    static_cast<void>(
        runtime_->engine->unpin(*mapping.region->view, mapping.address + l.from, l.to - l.from));
  mapping.locks.clear();
  if (is_last) add_ended(file);
  if (Status s = runtime_->mapper->unmap(*mapping.region, false); !s) {
    if (is_last) file.ended = {};
    return s;
  }
  forget(file, mapping);
  if (is_last) close_file(file);
  return {};
}

void Door::forget(TakenFile& file, Mapping& mapping) {
  OC_CHECK(mappings_.contains(mapping.address) && file.mappings.contains(mapping.address));
  mappings_.erase(mapping.address);
  file.mappings.erase(mapping.address);
}

// Ends bytes [from, to) of a mapping. If from == to, it is divided there, and loses nothing.
int Door::cut(Mapping& mapping, uint64_t from, uint64_t to,
              const std::function<void(std::byte*, uint64_t)>& between) {
  OC_CHECK(mapping.file != nullptr && from <= to && to <= mapping.size_bytes);
  OC_ASSERT(to != 0 && from != mapping.size_bytes);
  TakenFile& file = *mapping.file;
  // With delivery by mprotect the frames know the mapping only as a whole.
  if (!mapping.locks.empty() || mapping.region->cache->delivery == Delivery::kMprotect ||
      file.is_together())
    return EBUSY;
  std::unique_ptr<Region::Impl> right;
  const Status s = runtime_->changes->cut(*mapping.region, from, to, &right, [&] {
    if (to > from) between(mapping.address + from, to - from);
  });
  if (!s.ok()) return s.code();
  const auto add = [&](uint64_t begin, uint64_t end, std::unique_ptr<Region::Impl> region) {
    OC_CHECK(begin < end && region != nullptr);
    auto part = std::make_unique<Mapping>();
    part->address = mapping.address + begin;
    part->size_bytes = end - begin;
    part->offset = mapping.offset + begin;
    part->protection = mapping.protection;
    part->flags = mapping.flags;
    part->may_write = mapping.may_write;
    part->pattern = mapping.pattern;
    part->file = &file;
    part->region = std::move(region);
    mappings_[part->address] = part.get();
    file.mappings[part->address] = std::move(part);
  };
  const uint64_t end = mapping.size_bytes;
  if (from == 0) {
    std::unique_ptr<Mapping> old = std::move(file.mappings[mapping.address]);
    forget(file, mapping);
    add(to, end, std::move(old->region));
  } else {
    mapping.size_bytes = from;
    if (to < end) add(to, end, std::move(right));
  }
  return 0;
}

int Door::release(std::byte* address, uint64_t size_bytes,
                  const std::function<void(std::byte*, uint64_t)>& between) {
  const Inside inside;
  const os::Locked locked(lock_);
  if (!OwnMemory::has_room(OwnMemory::kCallBytes)) return ENOMEM;
  const std::byte* end = address + size_bytes;
  for (Mapping* m = mapping_at(address); m != nullptr && m->address < end;
       m = mapping_at(address)) {
    TakenFile& file = *m->file;
    const uint64_t from = m->address < address ? static_cast<uint64_t>(address - m->address) : 0;
    const uint64_t to = std::min<uint64_t>(m->size_bytes, static_cast<uint64_t>(end - m->address));
    if (from == 0 && to == m->size_bytes) {
      keep_pages(file, *m);
      const Status s = unmap(file, *m);
      if (s.ok() && !file.mappings.empty()) drop_face(file);
      if (s.ok()) note_idle(file);
      if (!s.ok()) {
        say("munmap of " + file.path +
                ": what the program wrote cannot be stored: " + ::strerrordesc_np(s.code()) +
                "; it stays mapped, in memory: make room before the program ends",
            true);
        return s.code();
      }
      continue;
    }
    const int result = cut(*m, from, to, between);
    if (result == 0) continue;
    // The part does not consist of whole pages of ours, or it is locked: the file becomes the
    // kernel's.
    if (!hand_back_locked(file, "it was unmapped in parts that pages do not allow")) return EIO;
  }
  return 0;
}

namespace {

constexpr int kOpen = PROT_READ | PROT_WRITE;

}  // namespace

int Door::protect(std::byte* address, uint64_t size_bytes, int protection) {
  const Inside inside;
  const os::Locked locked(lock_);
  if (!OwnMemory::has_room(OwnMemory::kCallBytes)) return ENOMEM;
  const std::byte* end = address + size_bytes;
  for (std::byte* at = address; at < end;) {
    Mapping* m = mapping_at(at);
    std::byte* next =
        m == nullptr || m->address > end ? address + size_bytes : std::max(at, m->address);
    if (next > at) {  // not ours
      const auto bytes = static_cast<size_t>(next - at);
      if (real().mprotect(at, bytes, protection) != 0) return errno;
      at = next;
      continue;
    }
    TakenFile& file = *m->file;
    const uint64_t from = static_cast<uint64_t>(at - m->address);
    const uint64_t to = std::min<uint64_t>(m->size_bytes, static_cast<uint64_t>(end - m->address));
    if ((protection & PROT_WRITE) != 0 && (m->flags & MAP_TYPE) != MAP_PRIVATE && !m->may_write)
      return EACCES;
    const bool was_writable = m->region->access == Access::kReadWrite;
    const bool is_possible = (protection & ~kOpen) == 0 &&
                             ((protection & PROT_WRITE) == 0 || was_writable) && m->locks.empty() &&
                             m->region->cache->delivery != Delivery::kMprotect &&
                             !file.is_together();
    if (!is_possible) {
      if (!hand_back_locked(file, "its protection was changed to one that only the kernel has"))
        return ENOMEM;
      continue;
    }
    if (from > 0) {  // divide, and look again
      if (cut(*m, from, from, {}) != 0 && !hand_back_locked(file, "it was divided")) return ENOMEM;
      continue;
    }
    if (to < m->size_bytes) {
      if (cut(*m, to, to, {}) != 0 && !hand_back_locked(file, "it was divided")) return ENOMEM;
      continue;
    }
    const auto tell = [&](bool is_readable, bool is_writable) -> Status {
      const int now = is_writable ? protection | PROT_WRITE : is_readable ? PROT_READ : PROT_NONE;
      if (real().mprotect(m->address, m->size_bytes, now) == 0) return {};
      return Error{errno, "mprotect"};
    };
    const Status s = runtime_->changes->protect(*m->region, protection != PROT_NONE,
                                                (protection & PROT_WRITE) != 0, tell);
    if (!s.ok()) return s.code();
    m->protection = protection;
    at = m->end();
  }
  return 0;
}

// Moves the mapping: the same bytes get other addresses.
void* Door::move(Mapping& mapping, uint64_t new_bytes, int flags, std::byte* new_address) {
  OC_ASSERT(mapping.file != nullptr && new_bytes != 0);
  TakenFile& file = *mapping.file;
  const bool is_fixed = (flags & MREMAP_FIXED) != 0;
  const int fd = file.fd_of(mapping);
  NewMapping made{nullptr, new_bytes,      mapping.protection, mapping.flags,
                  fd,      mapping.offset, mapping.pattern};
  const auto offset = static_cast<off_t>(mapping.offset);
  void* place = MAP_FAILED;
  if (!is_fixed && Window::covers(mapping.address, mapping.size_bytes))
    place = Window::instance().map(new_bytes, mapping.protection, mapping.flags, fd, offset);
  if (place == MAP_FAILED)
    place = real().mmap(is_fixed ? new_address : nullptr, new_bytes, mapping.protection,
                        mapping.flags | (is_fixed ? MAP_FIXED : 0), fd, offset);
  if (place == MAP_FAILED) return MAP_FAILED;
  made.address = static_cast<std::byte*>(place);
  std::byte* const old_address = mapping.address;
  const uint64_t old_bytes = mapping.size_bytes;
  keep_pages(file, mapping);
  // The file is not closed in between, which would end its watch: what made the old mapping
  // possible holds for the new one.
  const bool is_last = file.mappings.size() == 1;
  if (is_last) add_ended(file);
  if (const Status s = runtime_->mapper->unmap(*mapping.region, false); !s.ok()) {
    say("mremap: " + s.message(), true);
    real().munmap(place, new_bytes);
    errno = s.code();
    return MAP_FAILED;
  }
  forget(file, mapping);
  real().munmap(old_address, old_bytes);
  std::string why;
  if (!put_region(file, made, &why)) {
    real().madvise(place, new_bytes, made.pattern);
    note_left(file.path, new_bytes, why);
    if (!file.mappings.empty())
      hand_back_locked(file, "another mapping of it stays with the kernel");
    else
      close_file(file);
  }
  return place;
}

void* Door::remap(std::byte* address, uint64_t old_bytes, uint64_t new_bytes, int flags,
                  std::byte* new_address) {
  const Inside inside;
  const os::Locked locked(lock_);
  if (!OwnMemory::has_room(OwnMemory::kCallBytes)) return errno = ENOMEM, MAP_FAILED;
  new_bytes = round_up(new_bytes, kSystemPage);
  Mapping* m = mapping_covering(address);
  const bool is_whole = m != nullptr && m->address == address &&
                        m->size_bytes == round_up(old_bytes, kSystemPage) && m->locks.empty();
  const bool is_known =
      (flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED)) == 0 && m != nullptr && !m->file->is_together();
  if (is_whole && is_known && new_bytes != 0) {
    if ((flags & MREMAP_FIXED) != 0) return move(*m, new_bytes, flags, new_address);
    if (new_bytes == m->size_bytes) return address;
    if (new_bytes > m->size_bytes) {
      if ((flags & MREMAP_MAYMOVE) != 0) return move(*m, new_bytes, flags, nullptr);
    } else {
      if (cut(*m, new_bytes, m->size_bytes,
              [](std::byte* a, uint64_t n) { real().munmap(a, n); }) == 0)
        return address;
    }
  }
  // The kernel does what we cannot do in the same way.
  const std::byte* end = address + std::max<uint64_t>(old_bytes, 1);
  for (Mapping* part = mapping_at(address); part != nullptr && part->address < end;
       part = mapping_at(address))
    if (!hand_back_locked(*part->file, "it was remapped in a way that only the kernel has")) {
      errno = EIO;
      return MAP_FAILED;
    }
  return real().mremap(address, old_bytes, new_bytes, flags, new_address);
}

int Door::lock_range(const std::byte* address, uint64_t size_bytes) {
  int result = OwnMemory::has_room(OwnMemory::kCallBytes) ? 0 : ENOMEM;
  bool is_some_shared = false;
  for_each_part(address, size_bytes, [&](Mapping& m, uint64_t, uint64_t) {
    is_some_shared = is_some_shared || m.region->cache->shared != nullptr;
  });
  // The limit of a buffer is for all of its members, so what one of them locks is not pinned in it:
  // the kernel locks it for this one, as far as it may.
  if (is_some_shared && result == 0)
    result = leave(address, size_bytes, "the program locks it, and others share it");
  for_each_part(address, size_bytes, [&](Mapping& m, uint64_t from, uint64_t to) {
    to = std::min<uint64_t>(to, m.region->view->mapped_bytes());
    if (from >= to || result != 0) return;
    if (m.protection == PROT_NONE) {
      result = ENOMEM;
      return;
    }
    const Status s = runtime_->engine->pin(*m.region->view, m.address + from, to - from);
    if (s.ok())
      m.locks.push_back({from, to});
    else
      result = s.code();
  });
  return result;
}

void Door::unlock_range(const std::byte* address, uint64_t size_bytes) {
  for_each_part(address, size_bytes, [&](Mapping& m, uint64_t from, uint64_t to) {
    std::vector<Mapping::Lock> rest;
    for (const Mapping::Lock& l : m.locks) {
      if (l.to <= from || l.from >= to) {
        rest.push_back(l);
        continue;
      }
      // What is outside of the range stays pinned.
      static_cast<void>(runtime_->engine->unpin(*m.region->view, m.address + std::max(l.from, from),
                                                std::min(l.to, to) - std::max(l.from, from)));
      if (l.from < from) rest.push_back({l.from, from});
      if (l.to > to) rest.push_back({to, l.to});
    }
    m.locks = std::move(rest);
  });
}

}  // namespace outcore::preload
