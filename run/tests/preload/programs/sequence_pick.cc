#include "sequence_pick.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace sequence {

namespace {

Span focus{kNoArea, 0, 0};

// A page that is mapped, rather one of a file.
bool pick_page(unsigned* area, uint64_t* page) {
  bool is_found = false;
  for (unsigned i = 0; i < 24; ++i) {
    const auto a = static_cast<unsigned>(random.below(kAreasMax));
    if (!model.areas[a].is_used) continue;
    const uint64_t p = random.below(model.areas[a].count);
    const Page& at = page_at(a, p);
    if (at.kind == PageKind::kGone) continue;
    *area = a, *page = p, is_found = true;
    if (at.kind == PageKind::kFile) return true;
  }
  return is_found;
}

uint64_t usable_bytes(const Page& page, bool is_to_write) {
  return is_to_write ? writable_bytes(page) : readable_bytes(page);
}

// Whether a page of the file is seen twice: the order in which a copy writes would matter.
bool is_seen_before(const Area& area, uint64_t first, uint64_t page) {
  const Page& p = area.pages[page];
  for (uint64_t i = first; i < page; ++i) {
    const Page& other = area.pages[i];
    if (p.kind == PageKind::kFile && other.kind == PageKind::kFile && p.file == other.file &&
        p.index == other.index)
      return true;
  }
  return false;
}

// Some page that may be used, by chance; or else the first of all.
bool find_usable(bool is_to_write, unsigned* area, uint64_t* page) {
  for (unsigned i = 0; i < 8; ++i)
    if (pick_page(area, page) && usable_bytes(page_at(*area, *page), is_to_write) > 0) return true;
  for (*area = 0; *area < kAreasMax; ++*area)
    for (*page = 0; model.areas[*area].is_used && *page < model.areas[*area].count; ++*page)
      if (usable_bytes(page_at(*area, *page), is_to_write) > 0) return true;
  return false;
}

bool find_bytes(bool is_to_write, uint64_t count_max, Bytes* found) {
  unsigned a;
  uint64_t page;
  if (!find_usable(is_to_write, &a, &page)) return false;
  const Area& area = model.areas[a];
  const uint64_t usable = usable_bytes(area.pages[page], is_to_write);
  const uint64_t at = random.chance(30) ? 0 : random.below(usable);
  const uint64_t wanted = random.size(count_max);
  uint64_t count = usable - at;
  for (uint64_t p = page + 1; count < wanted && p < area.count; ++p) {
    if ((at + count) % kPageBytes != 0) break;  // the page before was not usable to its end
    if (is_to_write && is_seen_before(area, page, p)) break;
    const uint64_t more = usable_bytes(area.pages[p], is_to_write);
    count += more;
    if (more == 0) break;
  }
  const uint64_t offset = page * kPageBytes + at;
  *found = {a, offset, count < wanted ? count : wanted, area.base + offset};
  return true;
}

// A page of the arena that holds nothing to read, so that no step can have picked it.
uint64_t find_unused() {
  for (uint64_t i = random.below(model.pages_max); i < model.pages_max; ++i)
    if (readable_bytes(page_at(kArena, i)) == 0) return i;
  for (uint64_t i = 0; i < model.pages_max; ++i)
    if (readable_bytes(page_at(kArena, i)) == 0) return i;
  return 0;
}

}  // namespace

unsigned pick_file() {
  return random.chance(65) ? 0 : static_cast<unsigned>(random.below(kFilesMax));
}

void close_descriptor(Descriptor& d) {
  if (::close(d.number) != 0) mismatch("close of d%u: errno %d", slot_of(d), errno);
  d.number = -1;
}

Descriptor& open_file(unsigned file, int flags) {
  Descriptor* slot = nullptr;
  for (Descriptor& d : model.descriptors)
    if (d.number < 0) slot = &d;
  if (slot == nullptr) {
    slot = &model.descriptors[random.below(kDescriptorsMax)];
    close_descriptor(*slot);
  }
  slot->number = ::open(model.files[file].path, flags | O_CLOEXEC);
  if (slot->number < 0) mismatch("open of f%u: errno %d", file, errno);
  slot->file = file;
  slot->flags = flags & (O_ACCMODE | O_APPEND);
  bool is_taken[kDescriptorsMax] = {};
  for (const Descriptor& d : model.descriptors)
    if (d.number >= 0 && &d != slot) is_taken[d.position] = true;
  slot->position = 0;
  while (is_taken[slot->position]) ++slot->position;
  position_of(*slot) = 0;
  say(" open d%u f%u flags %o", slot_of(*slot), file, static_cast<unsigned>(slot->flags));
  if ((flags & O_TRUNC) != 0) resize_file(file, 0);
  return *slot;
}

Descriptor& pick_descriptor(bool is_to_read, bool is_to_write) {
  for (unsigned i = 0; i < 2 * kDescriptorsMax; ++i) {
    Descriptor& d = model.descriptors[random.below(kDescriptorsMax)];
    if (d.number < 0 || (is_to_read && !may_read(d)) || (is_to_write && !may_write(d))) continue;
    return d;
  }
  return open_file(pick_file(), is_to_write || random.chance(60) ? O_RDWR : O_RDONLY);
}

unsigned map_file(const Descriptor& d, uint64_t index, uint64_t bytes, int prot, int flags,
                  Place place, long expected) {
  const uint64_t count = (bytes + kPageBytes - 1) / kPageBytes;
  const bool is_placed = place.area != kNoArea;
  say(" f%u from %lu bytes %lu prot %d flags %x", d.file, index, bytes, prot,
      static_cast<unsigned>(flags));
  if (is_placed) say(" at a%u+%lu", place.area, place.page);
  uint8_t* hint = is_placed ? address_of({place.area, place.page, count}) : nullptr;
  void* at = ::mmap(hint, bytes, prot, flags, d.number, static_cast<off_t>(index * kPageBytes));
  answer(at == MAP_FAILED ? -errno : 0, expected);
  if (at == MAP_FAILED) return kNoArea;
  if (is_placed && at != hint) mismatch("mmap did not put it where it must be");
  const unsigned area = is_placed ? place.area : find_area();
  if (!is_placed) open_area(area, static_cast<uint8_t*>(at), count);
  const bool is_shared = (flags & MAP_TYPE) != MAP_PRIVATE;
  const Span s{area, place.page, count};
  Page page = {PageKind::kFile, static_cast<uint8_t>(prot), is_shared, !is_shared || may_write(d)};
  page.file = static_cast<uint8_t>(d.file);
  page.index = static_cast<uint32_t>(index);
  put_pages(s, page);
  // To populate a private mapping that may be written is to copy it.
  if ((flags & MAP_POPULATE) != 0 && !is_shared && (prot & PROT_WRITE) != 0)
    for (uint64_t i = s.first; i < s.end() && !is_behind_end(page_at(area, i)); ++i)
      copy_page(page_at(area, i));
  if (!is_placed) say(" is a%u", area);
  look_at(s);
  return area;
}

void map_something() {
  unsigned file = pick_file();
  for (unsigned i = 0; i < kFilesMax && model.files[file].size == 0; ++i)
    file = (file + 1) % kFilesMax;
  const File& f = model.files[file];
  if (f.size == 0) {  // nothing is changed that a step may have picked already
    const Span s{kArena, find_unused(), 1};
    void* at = ::mmap(address_of(s), s.count * kPageBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (at == MAP_FAILED) mismatch("mmap of memory: errno %d", errno);
    put_pages(s, {PageKind::kAnonymous, PROT_READ | PROT_WRITE, false, true});
    return;
  }
  // Not in a slot: whoever needs memory may hold one of them.
  const Descriptor d{::open(f.path, O_RDWR | O_CLOEXEC), file, O_RDWR, 0};
  if (d.number < 0) mismatch("open of f%u: errno %d", file, errno);
  const int prot = PROT_READ | PROT_WRITE;
  if (find_area() != kNoArea)
    map_file(d, 0, f.size, prot, MAP_SHARED, Place(), 0);
  else
    map_file(d, 0, f.size < kPageBytes ? f.size : kPageBytes, prot, MAP_SHARED | MAP_FIXED,
             {kArena, find_unused()}, 0);
  ::close(d.number);
}

Span pick_span(bool may_have_holes) {
  unsigned a;
  uint64_t page;
  if (!pick_page(&a, &page)) {
    map_something();
    return pick_span(may_have_holes);
  }
  const Area& area = model.areas[a];
  may_have_holes &= a == kArena;
  if (may_have_holes && random.chance(40)) page -= random.below(page + 1) % 8;
  uint64_t end = page + 1;
  const uint64_t wanted = random.chance(20) ? area.count : random.size(area.count);
  while (end < area.count && end - page < wanted &&
         (may_have_holes || area.pages[end].kind != PageKind::kGone))
    ++end;
  return {a, page, end - page};
}

Span pick_piece() {
  unsigned a;
  uint64_t page;
  if (!pick_page(&a, &page)) {
    map_something();
    return pick_piece();
  }
  const Area& area = model.areas[a];
  const uint32_t piece = area.pages[page].piece;
  uint64_t end = page + 1;
  while (end < area.count && area.pages[end].kind != PageKind::kGone &&
         area.pages[end].piece == piece)
    ++end;
  if (random.chance(50))
    while (page > 0 && area.pages[page - 1].kind != PageKind::kGone &&
           area.pages[page - 1].piece == piece)
      --page;
  const uint64_t count = random.chance(50) ? end - page : random.size(end - page);
  return {a, page, count};
}

Bytes pick_bytes(bool is_to_write, uint64_t count_max) {
  Bytes found{};
  while (!find_bytes(is_to_write, count_max, &found)) map_something();
  return found;
}

uint64_t bytes_of_span(const Span& s) {
  return s.count * kPageBytes - (random.chance(20) ? random.below(kPageBytes) : 0);
}

void say_span(const Span& s) { say(" a%u+%lu pages %lu", s.area, s.first, s.count); }

void say_bytes(const Bytes& where) {
  if (where.area == kNoArea)
    say(" plain %lu", where.count);
  else
    say(" a%u+%lu,%lu", where.area, where.offset, where.count);
}

uint8_t* scratch() {
  static uint8_t* bytes = nullptr;
  if (bytes == nullptr) bytes = allocate(kScratchBytes);
  return bytes;
}

void look_at(const Span& s) { focus = s; }

void observe() {
  constexpr uint64_t kPagesSeen = 16;
  const bool is_there = focus.area != kNoArea && model.areas[focus.area].is_used &&
                        focus.end() <= model.areas[focus.area].count;
  if (is_there && random.chance(70)) {
    const uint64_t count = focus.count < kPagesSeen ? focus.count : kPagesSeen;
    check_span({focus.area, focus.first, count}, random.size(kPageBytes));
    check_span({focus.area, focus.end() - 1, 1}, kPageBytes);
  }
  focus.area = kNoArea;
  unsigned a;
  uint64_t page;
  for (unsigned i = 0; i < 2; ++i)
    if (pick_page(&a, &page)) {
      const uint64_t left = model.areas[a].count - page;
      check_span({a, page, left < 3 ? left : 3}, kPageBytes);
    }
  const Descriptor& d = model.descriptors[random.below(kDescriptorsMax)];
  const bool is_open = d.number >= 0 && may_read(d);
  const unsigned file = is_open ? d.file : pick_file();
  const File& f = model.files[file];
  check_file(file, random.below(f.size + 1), random.size(3 * kPageBytes), is_open ? d.number : -1);
  struct stat status;
  if (::stat(f.path, &status) != 0 || static_cast<uint64_t>(status.st_size) != f.size)
    mismatch("stat says that f%u has %ld bytes, expected %lu", file,
             static_cast<long>(status.st_size), f.size);
}

}  // namespace sequence
