// HeapCopy: what a forked child gets of its parent's heap: a file of its own, to which the parent
// copies the heap when the child touches it, and which the child maps privately.
//
// fork() returns in the parent when the child has become another program or has ended, when it has
// got its copy, or when it has done neither for as long as copying takes: then it gets one. So fork
// followed by exec copies nothing. What is written meanwhile: see Heap::before_fork.
//
// Parent and child share one page, in which each holds a robust lock: the kernel tells the other of
// its exec or end, whatever descriptors are closed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace outcore::preload {

class HeapCopy {
 public:
  // Before fork(), by the thread that forks. nullptr: there is no memory, or no file (errno).
  static std::unique_ptr<HeapCopy> prepare(const std::string& folder);
  // Room for so many bytes of addresses, before fork(), too. False: errno.
  bool reserve(uint64_t size_bytes);
  ~HeapCopy();
  HeapCopy(const HeapCopy&) = delete;
  HeapCopy& operator=(const HeapCopy&) = delete;

  // -- in the parent --
  // Waits. False: the child needs none, for it is another program by now, or has ended.
  // `may_have_failed`: there may be no child at all.
  bool is_wanted(uint64_t wait_ns_max, bool may_have_failed);
  int file() const { return file_; }
  uint64_t size_bytes() const { return size_bytes_; }
  // The copy is made, or will never be: an errno. Called in any case, or a child would wait.
  void finish(int error);

  // -- in the child --
  // First, and within fork(). The copy is not there yet.
  void become_childs();
  // Lays the file over addresses, inaccessible. 0 or an errno.
  int lay_over(std::byte* address, uint64_t size_bytes, uint64_t offset);
  void close_file();  // what was laid over stays
  // Asks for the copy and waits for it. 0 or an errno (ESRCH: the parent is gone).
  int fetch();

 private:
  struct Shared;
  HeapCopy() = default;
  long threads_of_child() const;

  Shared* shared_ = nullptr;
  int file_ = -1;
  uint64_t size_bytes_ = 0;
  bool is_ours_ = false;          // the parent's lock, taken by the thread that forks
  bool has_childs_life_ = false;  // by the same thread: the child's first thread is no more
};

}  // namespace outcore::preload
