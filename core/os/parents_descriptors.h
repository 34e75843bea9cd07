// ParentsDescriptors: descriptors that fork() closes in the child, as exec() does with O_CLOEXEC. A
// userfaultfd acts on the parent's memory, a memfd keeps the parent's pages alive, and a lock on a
// file would outlive the parent. Any thread but the fault path.
//
// Of our handlers only that of ForkOrder::kOwnMemory runs in the child before they are closed: what
// the others open there and list is the child's own.
#pragma once

#include <functional>

namespace outcore::os {

class ParentsDescriptors {
 public:
  // Calls `make`, lists the descriptor that it returns, and returns it; or its error (below 0). No
  // fork() comes in between.
  static int open(const std::function<int()>& make);
  // Lists one that is open already. A child of a fork() shortly before this call keeps it.
  static void add(int fd);
  // Closes a listed one. Nothing happens to one that is not listed: in a child it is closed
  // already, and its number may be another's.
  static void close(int fd);
  // Takes one off the list without closing it: its number is another's by now, who keeps it.
  static void forget(int fd);
};

}  // namespace outcore::os
