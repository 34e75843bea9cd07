// Listener: leases and marks on taken files, in the table of descriptors of the one thread that
// calls it. See watch.h.
//
// That a lease is broken is told by a signal, for which a thread waits. A signalfd in poll() would
// be simpler; but the kernel wakes whoever polls one at every signal of the process, and in-thread
// every fault is a signal: two switches a fault, which cost random reads a fifth.
#pragma once

#include <cstddef>
#include <vector>

#include "run/preload/identity.h"

namespace outcore::preload {

class Listener {
 public:
  // `event` wakes wait(); it is in this thread's table, too.
  explicit Listener(int event) : event_(event) {}
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  static void close_all_but(int a, int b);

  // `fd` is the process's. 0 or -errno.
  int lease(const Identity& identity, int fd);
  // Who opens the file waits, or makes it shorter by its name where the kernel lets us ask (Linux
  // 6.14: ext4, xfs, btrfs). Who changes it otherwise is heard of. 1: so are openers, who do not
  // wait.
  int mark_opens(const Identity& identity, int fd);
  // Who changes the file is heard of.
  int mark_changes(const Identity& identity, int fd);
  // Stops asking before accesses, and begins again: descriptors that are opened in between are
  // never asked about.
  void ask_access(const Identity& identity, int fd, bool is_asking);
  void end(const Identity& identity);

  // Waits until something is to be heard; true if the event rings.
  bool wait();
  // Files that others open or change, or whose lease is broken. The process's own opens are
  // answered; others who can be made to wait do so until settle() or end().
  std::vector<Identity> hear();
  size_t files_max() const { return entries_.size(); }  // that hear() may name
  void settle(const Identity& identity);

 private:
  struct Entry {
    Identity identity;
    int fd = -1;
    bool is_lease = false;
    bool has_permission = false;  // openers wait for our answer
    bool asks_access = false;     // so do accesses by what is opened later, and truncations
    int quiet_count = 0;
    bool is_told = false;      // somebody is handing it back
    std::vector<int> waiting;  // events to be answered
  };
  void allow(const Entry& entry, int fd);
  void let_wait(Entry& entry, int fd);
  bool read_events(Entry& entry);

  // Whom the kernel tells of breaks; started with the first lease. 0 or -errno.
  int start_of_breaks();

  const int event_;
  int told_of_breaks_ = 0;  // a thread
  std::vector<Entry> entries_;
};

}  // namespace outcore::preload
