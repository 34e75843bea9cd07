// ParentsDescriptors: descriptors that a forked child must not keep. A userfaultfd acts on the
// parent's memory; a memfd keeps the parent's pages alive.
#pragma once

namespace outcore::os {

class ParentsDescriptors {
 public:
  static void add(int fd);
  // Closes one that was added.
  static void close(int fd);
  // Of one that was added: its number is another's by now, who keeps it.
  static void forget(int fd);

  // Before any fork: what a child does first makes no lock any more.
  static void prepare();
  // In the child, first of all: closes all of them and forgets them. What is added later is its
  // own.
  static void close_in_child();
};

}  // namespace outcore::os
