// OwnTable: a table of descriptors that is the calling thread's alone, as long as the thread lives.
//
// What is open in it the program cannot close, not even by calls that nobody sees; no forked child
// inherits it; it does not count against what the process may open; and closing a file in it does
// not end locks that the process has of that file (fcntl's locks belong to a table). Not the fault
// path.
#pragma once

namespace outcore::os {

class OwnTable {
 public:
  // The thread's table is its own from now on, and empty: nothing of the program's stays open in
  // it, not for a moment. Once a thread.
  OwnTable();
  OwnTable(const OwnTable&) = delete;
  OwnTable& operator=(const OwnTable&) = delete;

  bool is_own() const { return process_ >= 0; }  // false: the kernel refuses (Linux 5.9 has it)
  // What the process has open as `fd`, by the lowest number that is free here. -1: it cannot be
  // had. REQUIRES: is_own().
  int fetch(int fd) const;
  // By the same number. False: it cannot be had. REQUIRES: likewise; nothing has the number.
  bool fetch_as_it_is(int fd) const;

 private:
  int process_ = -1;
};

}  // namespace outcore::os
