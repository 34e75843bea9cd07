// Steps on windows: mappings of files, made, cut, protected, moved, advised and touched.
#include <sys/mman.h>

#include <cerrno>

#include "own.h"
#include "steps.h"

namespace storm {

namespace {

// Pages of a window, or of its begin: whole ones often.
struct Pages {
  uint64_t first;
  uint64_t count;
};
Pages pick_pages(const Window& w) {
  if (random.chance(30)) return {0, w.pages};
  const uint64_t first = random.below(w.pages);
  return {first, random.size(w.pages - first)};
}

// The middle of a window as one of its own; nullptr: there are too many.
Window* cut_out(Window& w, Pages p) {
  Window* middle = split(w, p.first);
  if (middle == nullptr) return nullptr;
  return split(*middle, p.count) != nullptr ? middle : nullptr;
}

void forget(Window& w) { w.is_used = false; }

// Maps and notes it in `w`. `at`: for MAP_FIXED.
void map_into(Window& w, uint8_t* at, uint64_t pages_max) {
  const unsigned file = pick_file();
  const bool is_shared = random.chance(85);
  const bool is_writable = random.chance(70);
  const bool may_write = !is_shared || is_writable || random.chance(30);
  Descriptor* d = descriptor_of(file, true, is_shared && may_write);
  const uint64_t file_pages = pages_of(file);
  const uint64_t reach = kFileBytesMax / kPageBytes;
  uint64_t first = random.chance(50) ? 0 : random.below(file_pages > 0 ? file_pages : 1);
  uint64_t pages = random.chance(40) ? file_pages - first : random.size(reach - first);
  if (pages == 0) pages = 1;
  if (pages > pages_max) pages = pages_max;
  if (first + pages > reach) pages = reach - first;
  const int prot = PROT_READ | (is_writable ? PROT_WRITE : 0);
  const int flags = (is_shared ? MAP_SHARED : MAP_PRIVATE) | (at != nullptr ? MAP_FIXED : 0) |
                    // Private pages that may be written would be copied by that at once.
                    (is_shared && random.chance(5) ? MAP_POPULATE : 0);
  void* got = ::mmap(at, pages * kPageBytes, prot, flags, d->number,
                     static_cast<off_t>(first * kPageBytes));
  if (got == MAP_FAILED) mismatch("mmap of f%u: errno %d", file, errno);
  if (at != nullptr && got != at) mismatch("mmap of f%u with MAP_FIXED went elsewhere", file);
  w = {true,  is_shared, !is_shared || d->may_write, prot,    file,   static_cast<uint8_t*>(got),
       pages, first,     stage->file[file].shrinks,  nullptr, nullptr};
  prepare_private(w);
  say_window(w);
}

}  // namespace

void step_map() {
  Window* w = free_window();
  if (w == nullptr) return step_unmap();
  map_into(*w, nullptr, kFileBytesMax / kPageBytes);
}

// A mapping in the place of some pages of another.
void step_map_over() {
  Window* w = pick_window();
  if (w == nullptr) return say(" nothing");
  Window* middle = cut_out(*w, pick_pages(*w));
  if (middle == nullptr) return say(" no room");
  uint8_t* at = middle->base;
  const uint64_t pages = middle->pages;
  say_window(*middle);
  map_into(*middle, at, pages);
  if (middle->pages == pages) return;
  const uint64_t left = middle->pages;
  if (::munmap(at + left * kPageBytes, (pages - left) * kPageBytes) != 0)
    mismatch("munmap of the rest: errno %d", errno);
}

void step_unmap() {
  Window* w = pick_window();
  if (w == nullptr) return say(" nothing");
  Window* middle = cut_out(*w, pick_pages(*w));
  if (middle == nullptr) middle = w;
  say_window(*middle);
  answer(outcome(::munmap(middle->base, middle->pages * kPageBytes)), 0);
  forget(*middle);
}

void step_protect() {
  Window* w = pick_window();
  if (w == nullptr) return say(" nothing");
  Window* middle = cut_out(*w, pick_pages(*w));
  if (middle == nullptr) return say(" no room");
  const int all[] = {PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE, PROT_NONE};
  const int prot = all[random.below(4)];
  say_window(*middle);
  say(" to %d", prot);
  const bool may = middle->may_write || (prot & PROT_WRITE) == 0;
  const long got = answer(outcome(::mprotect(middle->base, middle->pages * kPageBytes, prot)),
                          may ? 0 : -EACCES);
  if (got == 0) middle->prot = prot;
}

void step_remap() {
  Window* w = pick_window();
  if (w == nullptr) return say(" nothing");
  say_window(*w);
  const uint64_t reach = kFileBytesMax / kPageBytes - w->first;
  uint64_t pages = random.chance(30) ? w->pages : random.size(reach);
  // Private pages that come from elsewhere than the file could not be told from the model's.
  if (!w->is_shared && pages > w->pages) pages = w->pages;
  say(" to %lu pages", pages);
  void* got = ::mremap(w->base, w->pages * kPageBytes, pages * kPageBytes, MREMAP_MAYMOVE);
  if (got == MAP_FAILED) mismatch("mremap: errno %d", errno);
  w->base = static_cast<uint8_t*>(got);
  w->pages = pages;
}

void step_advise() {
  Window* w = pick_window();
  if (w == nullptr) return say(" nothing");
  const int all[] = {MADV_DONTNEED, MADV_DONTNEED, MADV_WILLNEED,   MADV_COLD,
                     MADV_PAGEOUT,  MADV_RANDOM,   MADV_SEQUENTIAL, MADV_NORMAL};
  const uint64_t pick = random.below(sizeof all / sizeof all[0]);
  const int advice = all[pick];
  // The last three are told of whole windows: told of a part, they would make two mappings of it.
  const Pages p = pick < 5 ? pick_pages(*w) : Pages{0, w->pages};
  say_window(*w);
  say(" %lu+%lu advice %d", p.first, p.count, advice);
  bytes_within(*w);  // hears of shrinks before the copies are looked at
  answer(outcome(::madvise(w->base + p.first * kPageBytes, p.count * kPageBytes, advice)), 0);
  if (advice == MADV_DONTNEED && w->is_copied != nullptr)
    for (uint64_t i = 0; i < p.count; ++i) w->is_copied[p.first + i] = false;
}

void step_sync() {
  Window* w = pick_window();
  if (w == nullptr) return say(" nothing");
  const Pages p = pick_pages(*w);
  const int flags = random.chance(50) ? MS_SYNC : MS_ASYNC;
  say_window(*w);
  say(" %lu+%lu flags %d", p.first, p.count, flags);
  answer(outcome(::msync(w->base + p.first * kPageBytes, p.count * kPageBytes, flags)), 0);
}

void step_touch_read() {
  Window* w = pick_window_with(PROT_READ);
  if (w == nullptr) return say(" nothing");
  const uint64_t there = bytes_within(*w);
  const uint64_t offset = random.below(there);
  const uint64_t count = random.size(there - offset);
  say_window(*w);
  say(" at %lu bytes %lu", offset, count);
  check_window(*w, offset, count);
}

void step_touch_write() {
  Window* w = pick_window_with(PROT_READ | PROT_WRITE);
  if (w == nullptr) return say(" nothing");
  const uint64_t there = bytes_within(*w);
  const uint64_t offset = random.below(there);
  const uint64_t count = random.size(there - offset);
  say_window(*w);
  say(" at %lu bytes %lu", offset, count);
  uint8_t* bytes = scratch();
  random.fill(bytes, count);
  write_window(*w, offset, bytes, count);
}

// Words all over the window, read and written by turns.
void step_touch_many() {
  Window* w = pick_window_with(PROT_READ | PROT_WRITE);
  if (w == nullptr) return say(" nothing");
  const uint64_t there = bytes_within(*w);
  const uint64_t count = random.size(300);
  say_window(*w);
  say(" %lu times", count);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t offset = random.below(there);
    const uint64_t n = there - offset < 8 ? there - offset : 8;
    uint8_t bytes[8];
    random.fill(bytes, sizeof bytes);
    if (random.chance(50))
      write_window(*w, offset, bytes, n);
    else
      check_window(*w, offset, n);
  }
}

}  // namespace storm
