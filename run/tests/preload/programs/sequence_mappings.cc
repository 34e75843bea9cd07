// Steps that map, unmap, move and protect.
#include <unistd.h>

#include <cerrno>

#include "sequence_kinds.h"
#include "sequence_pick.h"

namespace sequence {

namespace {

int pick_prot() {
  const uint64_t choice = random.below(10);
  return choice < 5 ? PROT_READ | PROT_WRITE : choice < 9 ? PROT_READ : PROT_NONE;
}

struct Request {
  const Descriptor* descriptor;
  uint64_t index;
  uint64_t bytes;
  int prot;
  int flags;
  long expected;
};

// What to map: the whole file, a window, or more than the file has.
Request pick_request() {
  const Descriptor& d = pick_descriptor(true, false);
  say(" d%u", slot_of(d));
  const File& f = model.files[d.file];
  const uint64_t all = f.size_max / kPageBytes;
  Request r{&d, 0, 0, pick_prot(), MAP_PRIVATE, 0};
  if (random.chance(70)) r.flags = random.chance(10) ? MAP_SHARED_VALIDATE : MAP_SHARED;
  if (random.chance(15)) r.flags |= MAP_POPULATE;
  if (random.chance(10)) r.flags |= MAP_NORESERVE;
  if (random.chance(40)) {
    r.bytes = f.size > 0 ? f.size : kPageBytes;
  } else if (random.chance(20)) {
    r.bytes = (all + random.below(all / 2)) * kPageBytes;
  } else {
    r.index = random.below(random.chance(80) && f.pages() > 0 ? f.pages() : all);
    r.bytes = random.size(all - r.index) * kPageBytes;
    if (random.chance(20)) r.bytes -= random.below(kPageBytes);
  }
  const bool is_shared = (r.flags & MAP_TYPE) != MAP_PRIVATE;
  if (is_shared && (r.prot & PROT_WRITE) != 0 && !may_write(d)) r.expected = -EACCES;
  return r;
}

uint64_t pages_of(const Request& r) { return (r.bytes + kPageBytes - 1) / kPageBytes; }

void map(const Request& r, int more_flags, Place place, long expected) {
  map_file(*r.descriptor, r.index, r.bytes, r.prot, r.flags | more_flags, place, expected);
}

// The first place in the arena where so many pages are holes, from a random page on.
bool find_hole(uint64_t count, uint64_t* at) {
  uint64_t run = 0;
  for (uint64_t i = random.below(model.pages_max); i < model.pages_max; ++i) {
    run = page_at(kArena, i).kind == PageKind::kGone ? run + 1 : 0;
    if (run == count) return *at = i + 1 - count, true;
  }
  return false;
}

bool is_hole(const Span& s) {
  for (uint64_t i = s.first; i < s.end(); ++i)
    if (page_at(s.area, i).kind != PageKind::kGone) return false;
  return true;
}

// Locked pages that grew, of a private mapping that may be written, are copied at once.
void populate_locked(const Span& s) {
  for (uint64_t i = s.first; i < s.end(); ++i) {
    Page& page = page_at(s.area, i);
    if (!page.is_locked || page.is_shared || page.kind != PageKind::kFile) return;
    if ((page.prot & PROT_WRITE) == 0 || is_behind_end(page)) return;
    copy_page(page);
  }
}

// A mapping that grew behind the end of its file: the file follows, and then its bytes are there.
void lengthen_file_below(const Span& s) {
  const Page& last = page_at(s.area, s.end() - 1);
  if (last.kind != PageKind::kFile || !is_behind_end(last)) return;
  const uint64_t size = (last.index + uint64_t{1}) * kPageBytes - random.below(kPageBytes);
  const File& f = model.files[last.file];
  if (size > f.size_max) return;
  touch_and_check(s.area, (s.end() - 1) * kPageBytes, false);
  say(" truncate f%u %lu", last.file, size);
  answer(outcome(::truncate(f.path, static_cast<off_t>(size))), 0);
  resize_file(last.file, size);
  touch_and_check(s.area, (s.end() - 1) * kPageBytes, random.chance(50));
}

void unmap(const Span& s) {
  const uint64_t bytes = bytes_of_span(s);
  say_span(s);
  say(" bytes %lu", bytes);
  answer(outcome(::munmap(address_of(s), bytes)), 0);
  remove_pages(s);
}

}  // namespace

void step_mmap() {
  const Request r = pick_request();
  if (find_area() != kNoArea) return map(r, 0, Place(), r.expected);
  // All areas are in use: one goes.
  const auto area = static_cast<unsigned>(1 + random.below(kAreasMax - 1));
  Area& a = model.areas[area];
  for (uint64_t i = 0; i < a.count; ++i)
    if (a.pages[i].kind != PageKind::kGone) {
      uint64_t end = i;
      while (end < a.count && a.pages[end].kind != PageKind::kGone) ++end;
      unmap({area, i, end - i});
      i = end;
    }
  tidy_area(area);
  map(r, 0, Place(), r.expected);
}

void step_mmap_fixed() {
  const Request r = pick_request();
  Place place{kArena, random.below(model.pages_max - pages_of(r) + 1)};
  if (random.chance(30)) {  // over an older mapping, wherever it is
    const Span s = pick_span(false);
    if (s.count >= pages_of(r)) place = {s.area, s.first};
  }
  // A mapping that fails for its rights leaves what was there.
  map(r, MAP_FIXED, place, r.expected);
}

void step_mmap_noreplace() {
  const Request r = pick_request();
  Place place{kArena, random.below(model.pages_max - pages_of(r) + 1)};
  if (random.chance(60)) find_hole(pages_of(r), &place.page);
  const bool is_free = is_hole({kArena, place.page, pages_of(r)});
  // The kernel's MAP_SHARED_VALIDATE does not know the other flag.
  const bool is_known = (r.flags & MAP_TYPE) != MAP_SHARED_VALIDATE;
  map(r, MAP_FIXED_NOREPLACE, place, !is_free ? -EEXIST : is_known ? r.expected : kAnything);
}

void step_mmap_wrong() {
  const Descriptor& d = pick_descriptor(true, false);
  const struct {
    const char* what;
    int number;
    uint64_t bytes;
    int flags;
    off_t offset;
    int error;
  } cases[] = {
      {"no bytes", d.number, 0, MAP_SHARED, 0, EINVAL},
      {"an offset that is no page's", d.number, kPageBytes, MAP_SHARED, 100, EINVAL},
      {"neither shared nor private", d.number, kPageBytes, 0, 0, EINVAL},
      {"no such descriptor", 999, kPageBytes, MAP_SHARED, 0, EBADF},
      {"a place that is no page's", d.number, kPageBytes, MAP_SHARED | MAP_FIXED, 0, EINVAL},
      {"more than there are addresses", d.number, uint64_t{1} << 48, MAP_SHARED, 0, ENOMEM},
  };
  const auto& c = cases[random.below(sizeof cases / sizeof cases[0])];
  say(" %s", c.what);
  uint8_t* hint = c.flags == (MAP_SHARED | MAP_FIXED) ? model.areas[kArena].base + 1 : nullptr;
  void* at = ::mmap(hint, c.bytes, PROT_READ, c.flags, c.number, c.offset);
  answer(at == MAP_FAILED ? -errno : 0, -c.error);
}

// Anonymous memory over what is there: a reservation, or memory to use.
void step_reserve() {
  Span s = pick_span(true);
  if (random.chance(50)) {
    s.area = kArena;
    s.first = random.below(model.pages_max);
    s.count = random.size(model.pages_max - s.first);
  }
  const int prot = random.chance(70) ? PROT_NONE : PROT_READ | PROT_WRITE;
  say_span(s);
  say(" prot %d", prot);
  void* at = ::mmap(address_of(s), s.count * kPageBytes, prot,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  answer(at == MAP_FAILED ? -errno : 0, 0);
  put_pages(s, {PageKind::kAnonymous, static_cast<uint8_t>(prot), false, true});
  look_at(s);
}

void step_munmap() {
  const Span s = pick_span(true);
  if (random.chance(5)) {
    say(" a place that is no page's");
    answer(outcome(::munmap(address_of(s) + 1, kPageBytes)), -EINVAL);
    say(" no bytes");
    answer(outcome(::munmap(address_of(s), 0)), -EINVAL);
    return;
  }
  unmap(s);
  tidy_area(s.area);
  if (s.area == kArena && random.chance(50))
    touch_and_check(kArena, (s.first + random.below(s.count)) * kPageBytes + 7, false);
}

// What is not mapped may be unmapped; all else that is told about it fails.
void step_munmap_twice() {
  Span s = pick_span(true);
  if (s.area != kArena) s = {kArena, random.below(model.pages_max), 1};
  unmap(s);
  unmap(s);
  uint8_t* at = address_of(s);
  say(" msync");
  answer(outcome(::msync(at, kPageBytes, MS_SYNC)), -ENOMEM);
  say(" mprotect");
  answer(outcome(::mprotect(at, kPageBytes, PROT_READ)), -ENOMEM);
  say(" madvise");
  answer(outcome(::madvise(at, kPageBytes, MADV_WILLNEED)), -ENOMEM);
  unsigned char resident;
  say(" mincore");
  answer(outcome(::mincore(at, kPageBytes, &resident)), -ENOMEM);
  say(" mlock");
  answer(outcome(::mlock(at, kPageBytes)), -ENOMEM);
  say(" mremap");
  answer(::mremap(at, kPageBytes, 2 * kPageBytes, MREMAP_MAYMOVE) == MAP_FAILED ? -errno : 0,
         -EFAULT);
}

// Whether a mapping stays where it is depends on its neighbours. In the arena they are known;
// elsewhere it becomes an area of its own, wherever it is, so that later steps are the same.
void step_mremap() {
  const Span s = pick_piece();
  const bool is_shrinking = s.count > 1 && random.chance(40);
  const uint64_t new_count =
      is_shrinking ? 1 + random.below(s.count - 1) : s.count + random.below(model.pages_max / 3);
  const uint64_t grown = new_count > s.count ? new_count - s.count : 0;
  const bool has_room =
      s.area == kArena && s.end() + grown <= model.pages_max && is_hole({s.area, s.end(), grown});
  const bool may_move = is_shrinking || grown == 0      ? random.chance(50)
                        : s.area != kArena              ? true
                        : has_room || random.chance(30) ? false
                                                        : true;
  const unsigned to = find_area();
  say_span(s);
  say(" to %lu%s", new_count, may_move ? " may move" : "");
  const bool is_moving = grown > 0 && may_move;
  if (new_count > model.pages_max || (is_moving && to == kNoArea)) return say(" not done");
  void* at = ::mremap(address_of(s), s.count * kPageBytes, new_count * kPageBytes,
                      may_move ? MREMAP_MAYMOVE : 0);
  const bool is_refused = grown > 0 && !may_move && !has_room;
  answer(at == MAP_FAILED ? -errno : 0, is_refused ? -ENOMEM : 0);
  if (at == MAP_FAILED) return;
  if (!is_moving && at != address_of(s)) mismatch("mremap moved what was to stay");
  if (is_shrinking) {
    remove_pages({s.area, s.first + new_count, s.count - new_count});
    look_at({s.area, s.first, new_count});
  } else if (is_moving) {
    open_area(to, static_cast<uint8_t*>(at), new_count);
    move_pages(s, to, 0, grown);
    tidy_area(s.area);
    populate_locked({to, s.count, grown});
    look_at({to, 0, new_count});
    if (random.chance(50)) lengthen_file_below({to, s.count, grown});
  } else if (grown > 0) {
    Page next = page_at(s.area, s.end() - 1);
    const uint32_t piece = next.piece;
    ++next.index;
    const Span more{s.area, s.end(), grown};
    put_pages(more, next);
    for (uint64_t i = more.first; i < more.end(); ++i) page_at(s.area, i).piece = piece;
    populate_locked(more);
    look_at({s.area, s.first, new_count});
    if (random.chance(50)) lengthen_file_below(more);
  }
}

void step_mremap_fixed() {
  const Span s = pick_piece();
  const uint64_t new_count = random.chance(40) ? s.count : random.size(model.pages_max / 2);
  const Span to{kArena, random.below(model.pages_max - new_count + 1), new_count};
  say_span(s);
  say_span(to);
  const bool is_apart = s.area != kArena || to.end() <= s.first || s.end() <= to.first;
  void* at = ::mremap(address_of(s), s.count * kPageBytes, new_count * kPageBytes,
                      MREMAP_MAYMOVE | MREMAP_FIXED, address_of(to));
  answer(at == MAP_FAILED ? -errno : 0, is_apart ? 0 : -EINVAL);
  if (at == MAP_FAILED) return;
  const uint64_t kept = s.count < new_count ? s.count : new_count;
  if (kept < s.count) remove_pages({s.area, s.first + kept, s.count - kept});
  move_pages({s.area, s.first, kept}, kArena, to.first, new_count - kept);
  tidy_area(s.area);
  populate_locked({kArena, to.first + kept, new_count - kept});
  look_at(to);
}

// Goes on until a page refuses; those before it have changed.
void step_mprotect() {
  const Span s = pick_span(random.chance(20));
  const int prot = pick_prot();
  say_span(s);
  say(" prot %d", prot);
  uint64_t done = 0;
  long expected = 0;
  for (; done < s.count && expected == 0; ++done) {
    const Page& page = page_at(s.area, s.first + done);
    if (page.kind == PageKind::kGone)
      expected = -ENOMEM;
    else if ((prot & PROT_WRITE) != 0 && !page.may_write)
      expected = -EACCES;
    if (expected != 0) break;
  }
  answer(outcome(::mprotect(address_of(s), bytes_of_span(s), prot)), expected);
  if (done == 0) return;
  split_pieces({s.area, s.first, done});
  for (uint64_t i = s.first; i < s.first + done; ++i) {
    Page& page = page_at(s.area, i);
    const bool was_writable = (page.prot & PROT_WRITE) != 0;
    page.prot = static_cast<uint8_t>(prot);
    // What is locked must be there, and what may be written is there as a copy.
    if (page.is_locked && !was_writable && (prot & PROT_WRITE) != 0 && !page.is_shared &&
        page.kind == PageKind::kFile && !is_behind_end(page))
      copy_page(page);
  }
  look_at(s);
  if (random.chance(50)) {
    const uint64_t page = s.first + random.below(done);
    touch_and_check(s.area, page * kPageBytes + random.below(kPageBytes), random.chance(50));
  }
}

}  // namespace sequence
