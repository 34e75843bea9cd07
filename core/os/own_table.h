// OwnTable: a table of descriptors that is the calling thread's alone, as long as the thread lives.
//
// The program cannot close its descriptors, not even by raw system calls; a forked child does not
// inherit them; they do not count against the limit of the process; and closing one does not end
// the process's locks on that file (fcntl's locks belong to a table). Not the fault path.
#pragma once

namespace outcore::os {

class OwnTable {
 public:
  // From now on the calling thread has a table of its own, which is empty: no descriptor of the
  // program is open in it, not for a moment. Once a thread.
  OwnTable();
  OwnTable(const OwnTable&) = delete;
  OwnTable& operator=(const OwnTable&) = delete;

  bool is_own() const { return process_ >= 0; }  // false: the kernel refused (it needs Linux 5.9)
  // Opens here what the process has open as `fd`, under the lowest free number. -1: the kernel
  // refused. REQUIRES: is_own().
  int fetch(int fd) const;
  // As fetch(), under the same number. REQUIRES: is_own(), and the number is free.
  bool fetch_as_it_is(int fd) const;

 private:
  int process_ = -1;
};

}  // namespace outcore::os
