// SharedWriter: permits writes to pages of a buffer, and stores what was written.
//
// Before this process may write a page it marks it, visibly to all processes (buffer::Marks). The
// page stays in memory until it is clean: its bytes are in the file, and no process can write it
// without another fault. Each process stores what it has written itself, because only it can
// write-protect its own mappings: in the background, and when the keeping process asks for it.
// Pages that others have marked as well it leaves to them. What ended processes have written the
// remaining ones store.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "core/buffer/leaving_pages.h"
#include "core/os/wait.h"
#include "core/os/word.h"
#include "core/paging/pager.h"
#include "core/paging/shared_filler.h"
#include "core/paging/shared_write_back.h"
#include "core/paging/shared_writes.h"
#include "outcore/result.h"

namespace outcore::paging {

class SharedWriter {
 public:
  SharedWriter(Pager& pager, SharedFiller& filler)
      : pager_(pager), filler_(filler), write_back_(filler) {}
  ~SharedWriter();  // ends the thread
  SharedWriter(const SharedWriter&) = delete;
  SharedWriter& operator=(const SharedWriter&) = delete;

  // What the thread does, until it is told to end: for a simulation, which has no threads.
  // REQUIRES: a cache was added.
  void run();
  void tell_to_end();

  // From now on the cache's written pages are stored; the first call starts the thread. Errors:
  // EAGAIN. REQUIRES: cache->writes.
  Status add(PageCache* cache);
  // Ends that; bytes that are not stored are given up. REQUIRES: nothing writes through a view any
  // more. Not the fault path.
  void remove(PageCache* cache);

  // The fault path: permits writes to the page, and to its neighbours in the run as far as that
  // needs no waiting. The page may have left memory meanwhile: then the thread faults again. 0;
  // -ENOMEM, or the store's error: too much is written, and cannot be stored; -ETIMEDOUT: a member
  // is stopped; -EAGAIN: try again, views are being changed. REQUIRES: the run lies within the
  // file.
  int allow(PageCache& cache, const region::View& view, uint64_t page, TouchRuns::Run run);
  // Stores what any process wrote to [first, end); this process's pages are clean afterwards. For
  // calls of the program.
  Status flush(PageCache& cache, uint64_t first, uint64_t end);
  // Hands the cache back together with all who write it; each stores what it wrote
  // (SharedFile::hand_back). After an error nothing has changed. REQUIRES: the cache is frozen, so
  // that no thread of this process can write it.
  Status hand_back(PageCache& cache);
  // Stores what ended processes wrote, which this one has adopted (Marks::adopt()).
  // 0 or -errno. Not the fault path.
  int store_adopted(PageCache& cache);

 private:
  using Whose = SharedWriteBack::Whose;

  int store_mine(PageCache& cache);
  int mark(PageCache& cache, const region::View& view, uint64_t page, TouchRuns::Run run);
  bool pass(PageCache& cache, std::span<const uint64_t> leaving, bool is_asked);
  void count_pinned(PageCache& cache);
  void store_leaving(PageCache& cache, std::span<const uint64_t> leaving);
  bool is_any_over_share();
  // How much of the memory for pages all processes together have written: more than which level?
  enum class Written : uint8_t { kLittle, kMuch, kNearlyMost, kMost };
  bool is_above(const PageCache& cache, Written written, uint64_t* fair_pages = nullptr) const;
  // The same, and this process has written more than its fair share.
  bool is_over_share(const PageCache& cache, Written written) const;
  int wait_for_share(PageCache& cache);
  void free_marks(PageCache& cache);

  Pager& pager_;
  SharedFiller& filler_;
  SharedWriteBack write_back_;
  buffer::LeavingPages leaving_;  // the thread
  os::Lock list_lock_;
  std::vector<PageCache*> caches_;               // with the lock
  std::atomic<PageCache*> at_work_on_{nullptr};  // the thread
  os::Word<uint32_t> shares_{1};                 // writers of all files, some time ago
  os::Word<uint64_t> marks_bytes_{0};            // likewise: of the marks themselves
  os::Word<uint32_t> is_ending_{0};
  buffer::Buffer* buffer_ = nullptr;  // of all of them
  std::thread thread_;
};

}  // namespace outcore::paging
