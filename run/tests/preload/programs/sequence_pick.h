// Pick: chooses what a step works on, and makes it where there is none yet.
#pragma once

#include <fcntl.h>

#include "sequence_step.h"

namespace sequence {

// Most often the first.
unsigned pick_file();

// Opens a file in a slot that is free, or that it makes free. `flags` as for open.
Descriptor& open_file(unsigned file, int flags);
void close_descriptor(Descriptor& d);
inline bool may_read(const Descriptor& d) { return (d.flags & O_ACCMODE) != O_WRONLY; }
inline bool may_write(const Descriptor& d) { return (d.flags & O_ACCMODE) != O_RDONLY; }
inline bool is_appending(const Descriptor& d) { return (d.flags & O_APPEND) != 0; }
inline unsigned slot_of(const Descriptor& d) {
  return static_cast<unsigned>(&d - model.descriptors);
}
inline uint64_t& position_of(const Descriptor& d) { return model.positions[d.position]; }
// An open descriptor that may be read, and written, as told.
Descriptor& pick_descriptor(bool is_to_read, bool is_to_write);

// Where an mmap is to go: a page of an area that it replaces, or (kNoArea) where the kernel likes.
struct Place {
  unsigned area = kNoArea;
  uint64_t page = 0;
};
// Maps pages of a file and says so; `flags` as for mmap. Returns the area, or kNoArea if it failed.
unsigned map_file(const Descriptor& d, uint64_t index, uint64_t bytes, int prot, int flags,
                  Place place, long expected);
// Maps a file that has bytes, shared and writable; or if none has, anonymous memory.
void map_something();

// Pages that are mapped, of any kind. With `may_have_holes` the arena's holes count as well.
Span pick_span(bool may_have_holes);
// Pages that surely are one mapping.
Span pick_piece();
// Memory to read from, or to write to, of 1 … count_max bytes.
Bytes pick_bytes(bool is_to_write, uint64_t count_max);
inline Bytes pick_readable(uint64_t count_max) { return pick_bytes(false, count_max); }
inline Bytes pick_writable(uint64_t count_max) { return pick_bytes(true, count_max); }

// A page-aligned length, or sometimes one a little less, which calls must round up.
uint64_t bytes_of_span(const Span& s);

void say_span(const Span& s);
void say_bytes(const Bytes& where);

// Memory beside, for what is not to lie in an area.
inline constexpr uint64_t kScratchBytes = 8 << 20;
uint8_t* scratch();

// Looks at some memory and some of a file, and adds what it sees to the hash.
void observe();
// What observe() looks at among others.
void look_at(const Span& s);

}  // namespace sequence
