// Listener: leases and marks on taken files, in the descriptor table of the one thread that uses
// it. See watch.h.
//
// The kernel reports a broken lease by a signal, for which a second thread waits. A signalfd in
// poll() would be simpler; but the kernel wakes a thread that polls one at every signal of the
// process, and with in-thread delivery every fault is a signal: two context switches for each
// fault, which made random reads a fifth slower.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/buffer/board.h"
#include "run/preload/change_group.h"
#include "run/preload/identity.h"

namespace outcore::preload {

class Listener {
 public:
  // `event` wakes wait(); it is open in this thread's table, too.
  explicit Listener(int event) : event_(event) {}
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  static void close_all_but(int a, int b);

  // Takes a read lease on the file. `fd` is the process's descriptor. 0 or -errno.
  int lease(const Identity& identity, int fd);
  // Makes other processes that open the file wait for us, and those that shorten it by its name, if
  // the kernel can ask us (Linux 6.14: ext4, xfs, btrfs). Other changes are reported. 1: openers do
  // not wait either, but are reported. With `members` only strangers are asked, and only when they
  // open it: see Watch.
  int mark_opens(const Identity& identity, int fd, const buffer::Board* members);
  // Has changes of the file by other processes reported.
  int mark_changes(const Identity& identity, int fd);
  // Stops asking before accesses, or begins again. Descriptors that are opened while it does not
  // ask are never asked about.
  void ask_access(const Identity& identity, int fd, bool is_asking);
  // `fd` as above.
  void end(const Identity& identity, int fd);

  // Waits until there is something to report. True: the event was signalled.
  bool wait();
  // A file that was heard of, and for which lease or mark: it may have another by the time it is
  // handed back, of which nothing was heard.
  struct Heard {
    Identity identity;
    uint64_t number = 0;
  };
  // Returns files that others open or change, or whose lease is broken. Opens by this process
  // itself are answered at once; others who can be made to wait do so until settle() or end().
  std::vector<Heard> drain_events();
  size_t files_max() const { return entries_.size(); }  // how many drain_events() may return
  void settle(uint64_t number);

 private:
  struct Entry {
    Identity identity;
    int fd = -1;
    uint64_t number = 0;  // of no other entry, ever
    bool is_lease = false;
    bool has_permission = false;             // openers wait for our answer
    const buffer::Board* members = nullptr;  // who may open and change it
    bool asks_access = false;  // as do later accesses by what is opened, and truncations
    int quiet_count = 0;
    bool is_changed = false;   // by others, as the changes say
    bool is_reported = false;  // it was reported, and is being handed back
    std::vector<int> waiting;  // events that must be answered
  };
  void add(Entry entry);
  void allow(const Entry& entry, int fd);
  static bool may_open(const Entry& entry, int process);
  void let_wait(Entry& entry, int fd);
  bool read_events(Entry& entry);
  void read_changes();

  // Starts the thread to which the kernel reports broken leases, with the first lease. 0 or -errno.
  int start_of_breaks();

  const int event_;
  int told_of_breaks_ = 0;  // the number of that thread
  std::vector<Entry> entries_;
  uint64_t entries_made_ = 0;
  ChangeGroup changes_;  // of files whose openers wait
};

}  // namespace outcore::preload
