// DescriptorTable: which of the program's descriptors belong to taken files, and which have a FILE.
// Readers take no lock: every read(2) of the program looks here.
#pragma once

#include "run/preload/taken_file.h"

namespace outcore::preload {

class DescriptorTable {
 public:
  static constexpr int kDescriptorsMax = 1 << 16;

  // The taken file of a descriptor, for a call that is about to use it; nullptr: it belongs to
  // none. A TakenFile is never freed; it may no longer have a mapping. nullptr also in a process
  // that shares our memory (a child of vfork), where a file that is written has been handed back
  // first.
  static TakenFile* file_of(int fd);
  // The entry of the descriptor, without these checks.
  static TakenFile* entry_of(int fd);
  // Whether something is noted about the descriptor that closing it would change.
  static bool is_marked(int fd) { return entry_of(fd) != nullptr || is_stdio(fd); }
  // The lowest descriptor at or above `from` that belongs to a taken file; -1: there is none.
  static int next(int from);
  static void set_file(int fd, TakenFile* file);
  static void forget_file(const TakenFile* file);
  // Whether the program has a descriptor of the file.
  static bool has(const TakenFile* file);

  static bool is_stdio(int fd);
  static void set_stdio(int fd, bool is);

  static void copied(int from, int to);  // dup
  static void closed(int fd);
};

}  // namespace outcore::preload
