// Steps that tell the kernel about mappings, or ask it.
#include <cerrno>

#include "sequence_kinds.h"
#include "sequence_pick.h"

namespace sequence {

namespace {

struct Advice {
  const char* name;
  int value;
};

bool has_hole(const Span& s) {
  for (uint64_t i = s.first; i < s.end(); ++i)
    if (page_at(s.area, i).kind == PageKind::kGone) return true;
  return false;
}

bool is_writable_copy(const Page& page) {
  return page.kind == PageKind::kFile && !page.is_shared && (page.prot & PROT_WRITE) != 0;
}

// Drops private copies up to a page that is locked, which refuses; holes count at the end.
long drop_copies(const Span& s) {
  for (uint64_t i = s.first; i < s.end(); ++i) {
    Page& page = page_at(s.area, i);
    if (page.is_locked) return -EINVAL;
    drop_copy(page);
  }
  return has_hole(s) ? -ENOMEM : 0;
}

void advise(const Span& s, const Advice& advice) {
  say_span(s);
  say(" %s", advice.name);
  const uint64_t bytes = bytes_of_span(s);
  const long got = outcome(::madvise(address_of(s), bytes, advice.value));
  if (advice.value == MADV_DONTNEED)
    answer(got, drop_copies(s));
  else
    answer(got, kAnything);
  if (advice.value == MADV_RANDOM || advice.value == MADV_SEQUENTIAL || advice.value == MADV_NORMAL)
    split_pieces(s);
}

// A hole in the file below a mapping, made through it.
void remove_through(const Span& s) {
  say_span(s);
  say(" remove");
  const Page first = page_at(s.area, s.first);
  const bool is_refused = first.is_locked || first.kind != PageKind::kFile;
  const uint64_t bytes = s.count * kPageBytes;
  const long got = outcome(::madvise(address_of(s), bytes, MADV_REMOVE));
  answer(got, is_refused ? -EINVAL : first.is_shared && first.may_write ? kAnything : -EACCES);
  if (got == 0) zero_file(first.file, first.index * kPageBytes, bytes);
}

void populate_through(const Span& s, const Advice& advice) {
  say_span(s);
  say(" %s", advice.name);
  const bool is_writing = advice.value == MADV_POPULATE_WRITE;
  const int need = is_writing ? PROT_WRITE : PROT_READ;
  long expected = (page_at(s.area, s.first).prot & need) != 0 ? 0 : -EINVAL;
  for (uint64_t i = s.first; i < s.end() && expected == 0; ++i) {
    Page& page = page_at(s.area, i);
    if (is_behind_end(page))
      expected = -EFAULT;
    else if (is_writing && is_writable_copy(page))
      copy_page(page);
  }
  answer(outcome(::madvise(address_of(s), s.count * kPageBytes, advice.value)), expected);
}

// Locks or unlocks up to the first hole. Returns whether there is none.
bool set_locked(const Span& s, bool is_locked) {
  uint64_t count = 0;
  while (count < s.count && page_at(s.area, s.first + count).kind != PageKind::kGone)
    page_at(s.area, s.first + count++).is_locked = is_locked;
  if (count > 0) split_pieces({s.area, s.first, count});
  return count == s.count;
}

}  // namespace

void step_msync() {
  const Span s = pick_span(random.chance(20));
  const int choices[] = {
      MS_SYNC,       MS_ASYNC,          MS_ASYNC, MS_SYNC | MS_INVALIDATE, MS_ASYNC | MS_INVALIDATE,
      MS_INVALIDATE, MS_SYNC | MS_ASYNC};
  const int flags = choices[random.below(sizeof choices / sizeof choices[0])];
  long expected = 0;
  for (uint64_t i = s.first; i < s.end() && expected != -EBUSY; ++i) {
    const Page& page = page_at(s.area, i);
    if (page.kind == PageKind::kGone)
      expected = -ENOMEM;
    else if ((flags & MS_INVALIDATE) != 0 && page.is_locked)
      expected = -EBUSY;
  }
  if (flags == (MS_SYNC | MS_ASYNC)) expected = -EINVAL;
  say_span(s);
  say(" flags %d", flags);
  answer(outcome(::msync(address_of(s), bytes_of_span(s), flags)), expected);
  look_at(s);
}

void step_madvise() {
  const Advice any[] = {
      {"willneed", MADV_WILLNEED}, {"dontneed", MADV_DONTNEED},     {"dontneed", MADV_DONTNEED},
      {"random", MADV_RANDOM},     {"sequential", MADV_SEQUENTIAL}, {"normal", MADV_NORMAL},
      {"cold", MADV_COLD},         {"pageout", MADV_PAGEOUT},       {"no advice", 12345},
  };
  const Advice of_pieces[] = {{"populate read", MADV_POPULATE_READ},
                              {"populate write", MADV_POPULATE_WRITE}};
  if (random.chance(10)) return remove_through(pick_piece());
  if (random.chance(20)) {
    const Span piece = pick_piece();
    look_at(piece);
    return populate_through(piece, of_pieces[random.below(2)]);
  }
  const Span s = pick_span(random.chance(20));
  look_at(s);
  advise(s, any[random.below(sizeof any / sizeof any[0])]);
}

void step_posix_madvise() {
  const Advice all[] = {{"willneed", POSIX_MADV_WILLNEED},
                        {"dontneed", POSIX_MADV_DONTNEED},
                        {"random", POSIX_MADV_RANDOM},
                        {"sequential", POSIX_MADV_SEQUENTIAL},
                        {"normal", POSIX_MADV_NORMAL}};
  const Span s = pick_span(false);
  const Advice& advice = all[random.below(sizeof all / sizeof all[0])];
  say_span(s);
  say(" %s", advice.name);
  answer(-::posix_madvise(address_of(s), s.count * kPageBytes, advice.value), 0);
  split_pieces(s);
  look_at(s);
}

void step_mincore() {
  constexpr uint64_t kPagesMax = 4096;
  static unsigned char resident[kPagesMax];
  Span s = pick_span(random.chance(20));
  if (s.count > kPagesMax) s.count = kPagesMax;
  say_span(s);
  answer(outcome(::mincore(address_of(s), bytes_of_span(s), resident)), has_hole(s) ? -ENOMEM : 0);
  say(" a place that is no page's");
  answer(outcome(::mincore(address_of(s) + 1, kPageBytes, resident)), -EINVAL);
  const Bytes touched = pick_readable(1);
  const uint64_t page = touched.offset / kPageBytes;
  check_memory(touched);
  say(" touched a%u+%lu", touched.area, page);
  answer(outcome(::mincore(address_of({touched.area, page, 1}), 1, resident)), 0);
  if ((resident[0] & 1) == 0) mismatch("a page that was just read is not resident");
}

// Locking reads the pages in, which fails at the first that has no rights or no file below.
void step_mlock() {
  const Span s = pick_span(random.chance(20));
  say_span(s);
  long expected = set_locked(s, true) ? 0 : -ENOMEM;
  for (uint64_t i = s.first; i < s.end() && expected == 0; ++i) {
    Page& page = page_at(s.area, i);
    if (page.prot == PROT_NONE || is_behind_end(page))
      expected = -ENOMEM;
    else if (is_writable_copy(page))
      copy_page(page);
  }
  answer(outcome(::mlock(address_of(s), bytes_of_span(s))), expected);
  look_at(s);
}

void step_munlock() {
  const Span s = pick_span(random.chance(20));
  say_span(s);
  const long expected = set_locked(s, false) ? 0 : -ENOMEM;
  answer(outcome(::munlock(address_of(s), bytes_of_span(s))), expected);
  look_at(s);
}

}  // namespace sequence
