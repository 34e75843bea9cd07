// DescriptorTable: which of the program's descriptors are of taken files, and which have a FILE on
// them. Readers take no lock: every read(2) of the program passes here.
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/taken_file.h"

namespace outcore::preload {

class DescriptorTable {
 public:
  static constexpr int kDescriptorsMax = 1 << 16;

  // The taken file of a descriptor; nullptr if it is of none. Descriptors past the table are asked
  // of the system each time. A TakenFile is never freed; it may have no mapping any more.
  static TakenFile* file_of(int fd);
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
