// Program: a program as the kernel would start it: found in PATH, its #! lines followed. Any
// thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/commands/elf_file.h"

namespace outcore::cli {

// Why the preload library does not get into a program, or sees nothing there.
struct Obstacle {
  std::string about;  // "linking"
  std::string text;   // "is statically linked: …"
  std::string remedy;
  bool is_for_others = false;  // not for the user who asks, but for others
};

// One file on the way: the program, then what its #! line names, and so on.
struct ProgramFile {
  std::string path;
  std::optional<ElfFile> elf;  // nullopt: a script, or what cannot be read
  bool is_script = false;
  bool is_readable = false;
  std::vector<Obstacle> obstacles;
};

struct Program {
  std::vector<ProgramFile> files;  // the last is the one that is loaded
  // ENOENT, EACCES (also for a folder) or ENOEXEC (neither a program nor #!) of `missing`, which
  // may be an interpreter or a loader; 0: it would start.
  int error = 0;
  std::string missing;
};

// Reads headers only: some ten system calls. A word with a slash is a path.
Program find_program(const std::string& word);

// True if its loader is musl's, which a library for glibc keeps from starting the program.
bool is_musl(const ElfFile& elf);

}  // namespace outcore::cli
