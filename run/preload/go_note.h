// GoNote: the mark by which Go tells its programs apart. Their code makes its system calls itself,
// past every library: nobody sees what it hands to the kernel, nor that the process ends.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <span>

namespace outcore::preload {

// Whether it is among these notes, the bytes of a segment PT_NOTE of a file, or of a process.
inline bool has_go_note(std::span<const char> notes) {
  for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof note);
    at += sizeof note;
    if (note.n_namesz == 4 && at + 4 <= notes.size() && std::memcmp(&notes[at], "Go\0", 4) == 0)
      return true;
    const uint64_t rest =
        (uint64_t{note.n_namesz} + 3) / 4 * 4 + (uint64_t{note.n_descsz} + 3) / 4 * 4;
    if (rest > notes.size()) break;
    at += rest;
  }
  return false;
}

}  // namespace outcore::preload
