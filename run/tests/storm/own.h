// Own: what a process of a storm has: windows (mappings of files), descriptors, allocated blocks.
//
// It lies in the process's own memory: a forked child has a copy of it, as it has of all it says.
#pragma once

#include <sys/mman.h>

#include "turn.h"

namespace storm {

inline constexpr unsigned kWindowsMax = 12;
inline constexpr unsigned kDescriptorsMax = 10;
inline constexpr unsigned kBlocksMax = 4;
inline constexpr uint64_t kBlockBytesMax = 512 * 1024;

// A mapping, or what is left of one. All of it was mapped and treated alike.
struct Window {
  bool is_used;
  bool is_shared;
  bool may_write;  // false where a shared file was opened for reading
  int prot;
  unsigned file;
  uint8_t* base;
  uint64_t pages;
  uint64_t first;    // page of the file
  uint32_t shrinks;  // of the file, that this window has heard of
  uint8_t* copies;   // of a private window: the pages that are its own,
  bool* is_copied;   // and which these are
};

// Allocated memory, and the bytes that it must have.
struct Block {
  uint8_t* bytes;  // nullptr: none
  uint64_t count;
  uint8_t* model;
};

struct Own {
  Window windows[kWindowsMax];
  Descriptor descriptors[kDescriptorsMax];
  Block blocks[kBlocksMax];
  bool is_forked;  // and has not executed since
};
extern Own own;

// --- windows ---
// A window that may be used as said; nullptr: there is none.
Window* pick_window();
Window* pick_window_with(int prot);
Window* free_window();
unsigned index_of(const Window& w);
void say_window(const Window& w);
// Bytes from its begin that lie within the file; none behind may be touched.
uint64_t bytes_within(Window& w);
// The bytes that it must show from there on, as far as the page goes.
const uint8_t* expected_at(Window& w, uint64_t offset, uint64_t& count);
// REQUIRES: within the file, and that the protection lets.
void check_window(Window& w, uint64_t offset, uint64_t count);
void write_window(Window& w, uint64_t offset, const uint8_t* from, uint64_t count);
// What a write of others than the program's own instructions did (read(2) into it).
void note_written(Window& w, uint64_t offset, const uint8_t* from, uint64_t count);
// Makes a window of its own of what lies from this page on; nullptr: no room for one more.
Window* split(Window& w, uint64_t page);
void prepare_private(Window& w);

// --- descriptors ---
inline off_t as_off(uint64_t value) { return static_cast<off_t>(value); }
Descriptor* pick_descriptor(bool is_to_read, bool is_to_write);
Descriptor* free_descriptor();
// Opens one if none of this file is there that may do so.
Descriptor* descriptor_of(unsigned file, bool is_to_read, bool is_to_write);
unsigned index_of(const Descriptor& d);
unsigned pick_file();
void close_descriptor(Descriptor& d);

// Looks at some of a file by a descriptor of its own, and at some of each window and block.
void observe();
void check_file(unsigned file, uint64_t at, uint64_t count);
void check_all_of_mine();

// Memory beside, one for each thread.
inline constexpr uint64_t kScratchBytes = kFileBytesMax;
uint8_t* scratch();

}  // namespace storm
