#include "sequence_model.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace sequence {

Model model;

namespace {

constexpr uint64_t kArenaAddress = 0x1000'0000'0000;
uint8_t zeros[kPageBytes];

// Copies that were dropped, linked through their first bytes.
uint8_t* dropped_copies = nullptr;

uint8_t* allocate_copy() {
  if (dropped_copies == nullptr) {
    constexpr uint64_t kBatch = 64;
    uint8_t* batch = allocate(kBatch * kPageBytes);
    for (uint64_t i = 0; i < kBatch; ++i) {
      uint8_t* copy = batch + i * kPageBytes;
      std::memcpy(copy, &dropped_copies, sizeof dropped_copies);
      dropped_copies = copy;
    }
  }
  uint8_t* copy = dropped_copies;
  std::memcpy(&dropped_copies, copy, sizeof dropped_copies);
  return copy;
}

}  // namespace

uint8_t* allocate(uint64_t count) {
  const long at = ::syscall(SYS_mmap, nullptr, count, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1L, 0L);
  if (at == -1) {
    std::fprintf(stderr, "sequence: no memory for the model: a smaller --file-size\n");
    ::_exit(3);
  }
  return reinterpret_cast<uint8_t*>(at);
}

void make_model(uint64_t file_size_max) {
  for (unsigned i = 0; i < kFilesMax; ++i) {
    File& file = model.files[i];
    std::snprintf(file.path, sizeof file.path, "./f%u", i);
    file.size_max = file_size_max;
    file.bytes = allocate(file_size_max);
  }
  model.pages_max = 3 * (file_size_max / kPageBytes);
  for (Area& area : model.areas)
    area.pages = reinterpret_cast<Page*>(allocate(model.pages_max * sizeof(Page)));
  for (Descriptor& d : model.descriptors) d.number = -1;
  // A page more, which stays: nothing grows out of the arena.
  const uint64_t bytes = (model.pages_max + 1) * kPageBytes;
  void* arena = ::mmap(reinterpret_cast<void*>(kArenaAddress), bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (arena != reinterpret_cast<void*>(kArenaAddress)) {
    std::fprintf(stderr, "sequence: no place for the arena: the kernel refused a reservation\n");
    ::_exit(3);
  }
  open_area(kArena, static_cast<uint8_t*>(arena), model.pages_max);
  put_pages({kArena, 0, model.pages_max}, {PageKind::kAnonymous, PROT_NONE, false, true});
}

const uint8_t* bytes_of(const Page& page) {
  if (page.copy != nullptr) return page.copy;
  if (page.kind == PageKind::kAnonymous) return zeros;
  return model.files[page.file].bytes + page.index * kPageBytes;
}

bool is_behind_end(const Page& page) {
  return page.kind == PageKind::kFile && page.index >= model.files[page.file].pages();
}

uint64_t readable_bytes(const Page& page) {
  if (page.kind == PageKind::kGone || (page.prot & PROT_READ) == 0) return 0;
  return is_behind_end(page) ? 0 : kPageBytes;
}

uint64_t writable_bytes(const Page& page) {
  if (page.kind == PageKind::kGone || (page.prot & PROT_WRITE) == 0) return 0;
  if (page.kind == PageKind::kAnonymous) return kPageBytes;
  if (is_behind_end(page)) return 0;
  // What is written to a shared page behind the file's end, the kernel clears when it likes.
  const uint64_t left = model.files[page.file].size - page.index * kPageBytes;
  return page.is_shared && left < kPageBytes ? left : kPageBytes;
}

void write_file(unsigned file, uint64_t at, const uint8_t* from, uint64_t count) {
  File& f = model.files[file];
  if (count == 0) return;
  std::memcpy(f.bytes + at, from, count);
  if (at + count > f.size) f.size = at + count;
}

void zero_file(unsigned file, uint64_t at, uint64_t count) {
  File& f = model.files[file];
  if (at >= f.size) return;
  std::memset(f.bytes + at, 0, count < f.size - at ? count : f.size - at);
}

void resize_file(unsigned file, uint64_t size) {
  File& f = model.files[file];
  if (size < f.size) std::memset(f.bytes + size, 0, f.size - size);
  f.size = size;
  for (Area& area : model.areas)
    for (uint64_t i = 0; area.is_used && i < area.count; ++i) {
      Page& page = area.pages[i];
      if (page.copy != nullptr && page.file == file && is_behind_end(page)) drop_copy(page);
    }
}

void copy_page(Page& page) {
  if (page.copy != nullptr) return;
  uint8_t* copy = allocate_copy();
  std::memcpy(copy, bytes_of(page), kPageBytes);
  page.copy = copy;
}

void drop_copy(Page& page) {
  if (page.copy == nullptr) return;
  std::memcpy(page.copy, &dropped_copies, sizeof dropped_copies);
  dropped_copies = page.copy;
  page.copy = nullptr;
}

namespace {

// f(page, where in the page, where in the memory, how many bytes) for each page of it.
template <typename F>
void for_each_page(const Bytes& where, F f) {
  uint64_t done = 0;
  while (done < where.count) {
    const uint64_t at = (where.offset + done) % kPageBytes;
    const uint64_t left = where.count - done;
    const uint64_t n = left < kPageBytes - at ? left : kPageBytes - at;
    f(page_at(where.area, (where.offset + done) / kPageBytes), at, done, n);
    done += n;
  }
}

}  // namespace

void write_memory(const Bytes& where, const uint8_t* from) {
  for_each_page(where, [from](Page& page, uint64_t at, uint64_t done, uint64_t n) {
    if (page.kind == PageKind::kFile && page.is_shared) {
      write_file(page.file, page.index * kPageBytes + at, from + done, n);
    } else {
      copy_page(page);
      std::memcpy(page.copy + at, from + done, n);
    }
  });
}

void read_memory(const Bytes& where, uint8_t* to) {
  for_each_page(where, [to](const Page& page, uint64_t at, uint64_t done, uint64_t n) {
    std::memcpy(to + done, bytes_of(page) + at, n);
  });
}

void split_pieces(const Span& s) {
  Area& area = model.areas[s.area];
  const auto renew = [&area](uint64_t from, uint64_t end) {
    uint32_t was = 0;
    for (uint64_t i = from; i < end; ++i) {
      if (area.pages[i].kind == PageKind::kGone) continue;
      const bool begins = i == from || area.pages[i].piece != was;
      was = area.pages[i].piece;
      area.pages[i].piece = begins ? ++model.pieces : area.pages[i - 1].piece;
    }
  };
  uint64_t end = s.end();
  if (s.first > 0) {  // what lies behind is no longer one with what lies before
    const uint32_t before = area.pages[s.first - 1].piece;
    while (end < area.count && area.pages[end].piece == before) ++end;
  }
  renew(s.first, s.end());
  renew(s.end(), end);
}

void remove_pages(const Span& s) {
  split_pieces(s);
  for (uint64_t i = s.first; i < s.end(); ++i) {
    Page& page = page_at(s.area, i);
    drop_copy(page);
    page = Page{};
  }
}

void put_pages(const Span& s, const Page& first) {
  remove_pages(s);
  ++model.pieces;
  for (uint64_t i = 0; i < s.count; ++i) {
    Page& page = page_at(s.area, s.first + i);
    page = first;
    page.copy = nullptr;
    page.piece = model.pieces;
    page.index = first.index + static_cast<uint32_t>(i);
  }
}

void move_pages(const Span& s, unsigned to_area, uint64_t to_page, uint64_t grown) {
  Page last = page_at(s.area, s.end() - 1);
  remove_pages({to_area, to_page, s.count + grown});
  ++model.pieces;
  for (uint64_t i = 0; i < s.count; ++i) {
    Page& to = page_at(to_area, to_page + i);
    to = page_at(s.area, s.first + i);
    to.piece = model.pieces;
    page_at(s.area, s.first + i).copy = nullptr;  // it went along
  }
  remove_pages(s);
  ++last.index;
  if (grown > 0) put_pages({to_area, to_page + s.count, grown}, last);
  const uint32_t piece = page_at(to_area, to_page).piece;
  for (uint64_t i = 0; i < grown; ++i) page_at(to_area, to_page + s.count + i).piece = piece;
}

unsigned find_area() {
  for (unsigned i = kArena + 1; i < kAreasMax; ++i)
    if (!model.areas[i].is_used) return i;
  return kNoArea;
}

void open_area(unsigned area, uint8_t* base, uint64_t count) {
  Area& a = model.areas[area];
  a.base = base;
  a.count = count;
  a.is_used = true;
  std::memset(a.pages, 0, count * sizeof(Page));
}

void tidy_area(unsigned area) {
  Area& a = model.areas[area];
  if (area == kArena) return;
  for (uint64_t i = 0; i < a.count; ++i)
    if (a.pages[i].kind != PageKind::kGone) return;
  a.is_used = false;
}

bool shows(const Bytes& where, unsigned file, uint64_t first, uint64_t end, bool is_written) {
  bool is_shown = false;
  for_each_page(where, [&](const Page& page, uint64_t at, uint64_t, uint64_t n) {
    if (page.kind != PageKind::kFile || page.file != file) return;
    if (!page.is_shared && (is_written || page.copy != nullptr)) return;
    const uint64_t from = page.index * kPageBytes + at;
    is_shown |= from < end && first < from + n;
  });
  return is_shown;
}

}  // namespace sequence
