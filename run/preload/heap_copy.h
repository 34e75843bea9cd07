// HeapCopy: the copy of its parent's heap that a forked child gets: a file of its own, to which the
// parent copies the heap when the child touches it, and which the child maps privately.
//
// In the parent, fork() returns when the child has become another program or has ended, when the
// child has got its copy, or when the child has done neither for as long as copying takes: then it
// gets a copy. So a fork followed by exec copies nothing. For what is written meanwhile see
// Heap::before_fork.
//
// Parent and child share one page, in which each holds a robust lock. By it the kernel tells the
// other of an exec or an end, whatever descriptors are closed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace outcore::preload {

class HeapCopy {
 public:
  // Called before fork(), by the thread that forks. nullptr: there is no memory or no file (errno).
  static std::unique_ptr<HeapCopy> prepare(const std::string& folder);
  // Allocates what so many bytes of addresses need, also before fork(). False: errno.
  bool reserve(uint64_t size_bytes);
  ~HeapCopy();
  HeapCopy(const HeapCopy&) = delete;
  HeapCopy& operator=(const HeapCopy&) = delete;

  // -- in the parent --
  // Waits until the child needs the copy. False: it does not, because it is another program by now,
  // or has ended. `may_have_failed`: perhaps there is no child.
  bool is_wanted(uint64_t wait_ns_max, bool may_have_failed);
  int file() const { return file_; }
  uint64_t size_bytes() const { return size_bytes_; }
  // The copy is complete, or there will never be one: an errno. Must be called, or a child would
  // wait for ever.
  void finish(int error);

  // -- in the child --
  // The first call in the child, within fork(). There is no copy yet.
  void become_childs();
  // Maps the file over the addresses, inaccessible. 0 or an errno.
  int lay_over(std::byte* address, uint64_t size_bytes, uint64_t offset);
  void close_file();  // its mappings stay
  // Asks for the copy and waits for it. 0 or an errno (ESRCH: the parent has ended).
  int fetch();

 private:
  struct Shared;
  HeapCopy() = default;
  long threads_of_child() const;

  Shared* shared_ = nullptr;
  int file_ = -1;
  uint64_t size_bytes_ = 0;
  bool is_ours_ = false;          // the parent's lock is held, by the thread that forks
  bool has_childs_life_ = false;  // by the same thread: the child's first thread is no more
};

}  // namespace outcore::preload
