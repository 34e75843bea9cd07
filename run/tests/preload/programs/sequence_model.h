// Model: what the bytes of files and of memory must be, kept in memory of its own.
//
// Memory is a set of areas of pages. The first area is the arena, a reservation far below where the
// kernel places mappings, so that nothing ever falls into its holes. Each other area is one mapping
// whose place the kernel chose; what was unmapped of it is never named again.
#pragma once

#include <sys/mman.h>

#include <cstdint>

namespace sequence {

inline constexpr uint64_t kPageBytes = 4096;
inline constexpr unsigned kFilesMax = 3;
inline constexpr unsigned kAreasMax = 12;
inline constexpr unsigned kDescriptorsMax = 8;
inline constexpr unsigned kArena = 0;
inline constexpr unsigned kNoArea = kAreasMax;

struct File {
  char path[16];
  uint8_t* bytes;  // size_max of them; those behind size are zero
  uint64_t size;
  uint64_t size_max;  // a multiple of the page

  uint64_t pages() const { return (size + kPageBytes - 1) / kPageBytes; }
};

enum class PageKind : uint8_t { kGone, kAnonymous, kFile };

// One page of an area. Pages of one piece were mapped and treated alike, so that they surely belong
// to one mapping of the kernel's.
struct Page {
  PageKind kind;
  uint8_t prot;
  bool is_shared;
  bool may_write;  // false where a shared file was opened for reading
  bool is_locked;
  uint8_t file;
  uint32_t piece;
  uint32_t index;  // of the file's page
  uint8_t* copy;   // the private copy, if there is one
};

struct Area {
  uint8_t* base;
  uint64_t count;
  Page* pages;  // pages_max of them
  bool is_used;
};

// Descriptors that are duplicates of each other share a position.
struct Descriptor {
  int number;  // -1: closed
  unsigned file;
  int flags;
  unsigned position;
};

struct Span {
  unsigned area;
  uint64_t first;
  uint64_t count;  // pages

  uint64_t end() const { return first + count; }
};

// A piece of memory within an area, or (area = kNoArea) of the buffer that lies beside.
struct Bytes {
  unsigned area;
  uint64_t offset;
  uint64_t count;
  uint8_t* address;
};

struct Model {
  File files[kFilesMax];
  Area areas[kAreasMax];
  Descriptor descriptors[kDescriptorsMax];
  uint64_t positions[kDescriptorsMax];
  uint64_t pages_max;  // of an area
  uint32_t pieces;
};
extern Model model;

// Memory that no preloaded library can have taken over.
uint8_t* allocate(uint64_t count);

// Makes the tables and the arena; the files' bytes are zero and their sizes 0.
void make_model(uint64_t file_size_max);

inline uint8_t* address_of(const Span& s) {
  return model.areas[s.area].base + s.first * kPageBytes;
}
inline Page& page_at(unsigned area, uint64_t page) { return model.areas[area].pages[page]; }

// The bytes that a page must show. REQUIRES: it is not gone, nor behind the end of its file.
const uint8_t* bytes_of(const Page& page);
// How many bytes from the page's begin may be read, or written and found again.
uint64_t readable_bytes(const Page& page);
uint64_t writable_bytes(const Page& page);
// Whether a touch finds no file below.
bool is_behind_end(const Page& page);

void write_file(unsigned file, uint64_t at, const uint8_t* from, uint64_t count);
void zero_file(unsigned file, uint64_t at, uint64_t count);
// Private copies of pages behind the new end go with them.
void resize_file(unsigned file, uint64_t size);

// Gives a page of a private mapping its copy, as a write does.
void copy_page(Page& page);
void drop_copy(Page& page);
// REQUIRES: all of it is writable.
void write_memory(const Bytes& where, const uint8_t* from);
void read_memory(const Bytes& where, uint8_t* to);

// A piece of its own for each piece, or part of one, within the span and behind it.
void split_pieces(const Span& s);
void remove_pages(const Span& s);
// Pages that the same call maps: `first` and those that follow it in the file.
void put_pages(const Span& s, const Page& first);
// Moves pages into another area (or within one), over what is there; `grown` more follow the last.
void move_pages(const Span& s, unsigned to_area, uint64_t to_page, uint64_t grown);
// A closed area for a mapping at `base`, or kNoArea if all are in use.
unsigned find_area();
void open_area(unsigned area, uint8_t* base, uint64_t count);
// Closes an area of which nothing is left.
void tidy_area(unsigned area);

// Whether bytes `first` … `end` of a file are seen in this memory; `is_written`: by writing to it.
bool shows(const Bytes& where, unsigned file, uint64_t first, uint64_t end, bool is_written);

}  // namespace sequence
