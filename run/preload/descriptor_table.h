// DescriptorTable: which of the program's descriptors are of taken files, and which have a FILE on
// them. Readers take no lock: every read(2) of the program passes here.
#pragma once

#include "run/preload/taken_file.h"

namespace outcore::preload {

class DescriptorTable {
 public:
  static constexpr int kDescriptorsMax = 1 << 16;

  // The taken file of a descriptor, for a call that is about to use it; nullptr if it is of none.
  // A TakenFile is never freed; it may have no mapping any more. In a process that only shares our
  // memory (a child of vfork) it is nullptr, too: a file that is written has then been handed back.
  static TakenFile* file_of(int fd);
  // The entry as it is.
  static TakenFile* entry_of(int fd);
  // Something is noted of the descriptor, which closing it would change.
  static bool is_marked(int fd) { return entry_of(fd) != nullptr || is_stdio(fd); }
  // The lowest descriptor at or above `from` that is of a taken file; -1 if there is none.
  static int next(int from);
  static void set_file(int fd, TakenFile* file);
  static void forget_file(const TakenFile* file);
  // The program has a descriptor of it.
  static bool has(const TakenFile* file);

  static bool is_stdio(int fd);
  static void set_stdio(int fd, bool is);

  static void copied(int from, int to);  // dup
  static void closed(int fd);
};

}  // namespace outcore::preload
