// TakenFile: a file of the program with mappings that go through Outcore. Mapping: one of these, as
// the program made it. Plain data, guarded by the door's lock except for atomics.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/os/wait.h"
#include "core/runtime/runtime_impl.h"
#include "core/store/file_store.h"
#include "core/store/file_version.h"
#include "outcore/metrics.h"
#include "run/preload/identity.h"

namespace outcore::preload {

struct TakenFile;

// The advice for Outcore that corresponds to a pattern for madvise(). Programs give RANDOM to turn
// off the kernel's readahead, which brings in neighbours whether or not they are used. Outcore's
// readahead learns what is used, also where such a program scans (RocksDB: decision 0067), and
// ignores it.
inline Advice advice_of(int pattern) {
  return pattern == MADV_SEQUENTIAL ? Advice::kSequential : Advice::kNormal;
}

struct Mapping {
  std::byte* address = nullptr;
  uint64_t size_bytes = 0;  // as the program asked, in whole system pages; may reach past the end
  uint64_t offset = 0;      // in the file
  int protection = 0;
  int flags = 0;
  bool may_write = false;  // the descriptor was open for writing, and the mapping is shared
  // MADV_NORMAL, RANDOM or SEQUENTIAL: the program's last advice for any part. The kernel gets it
  // if the mapping goes back to the kernel.
  int pattern = MADV_NORMAL;
  // It is ours, and not the program's: so this process is among those who write the file together
  // for as long as the program has a descriptor of it, or the pages of an idle file stay.
  bool is_face = false;
  TakenFile* file = nullptr;
  // Shows the bytes that the file has. Behind them the kernel's mapping is left, which raises
  // SIGBUS until the file is that long.
  std::unique_ptr<Region::Impl> region;
  struct Lock {
    uint64_t from, to;  // in the mapping; pinned
  };
  std::vector<Lock> locks;

  std::byte* end() const { return address + size_bytes; }
};

struct TakenFile {
  Identity identity;
  std::string path;  // for messages
  std::shared_ptr<store::FileStore> store;
  int fd = -1;       // our own descriptor, as writable as the program's
  int read_fd = -1;  // our own, for reading only
  // Whether the program may change it, through mappings or system calls.
  std::atomic<bool> is_writable{false};
  // No process can write it before we get notice and have given it up: a lease, or a read-only
  // mount.
  bool is_unchanging = false;
  bool is_leased = false;            // unchanging by a lease
  bool is_open_for_writing = false;  // `fd` and `store` are
  bool is_named = false;             // by --map
  std::atomic<bool> is_watched{false};
  // It may be written together with other processes (buffer::HandingBack); which do so already.
  bool may_be_together = false, is_joining = false;
  const buffer::Board* board = nullptr;  // of these processes, if it may
  std::string remark;                    // how it is kept coherent, for --explain
  std::map<std::byte*, std::unique_ptr<Mapping>> mappings;
  bool is_counted = false;           // it counts as taken
  bool is_written_by_calls = false;  // while it was mapped
  // The attempt to end the process (LastStore::attempt()) in which it was reported that what was
  // written cannot be stored; 0: none.
  uint32_t loss_told_in = 0;
  // Kept open while the program has the file open, because closing a descriptor of a file drops the
  // POSIX locks that the process holds on it.
  std::vector<std::pair<int, std::shared_ptr<store::FileStore>>> old;

  // The descriptor for a mapping as the kernel would make it.
  int fd_of(const Mapping& m) const { return m.may_write || read_fd < 0 ? fd : read_fd; }

  // How often the last mapping of the program ended. Idle: since when it has none, while one of
  // ours keeps the pages (0: not idle), and calls on it since.
  uint32_t ends = 0, idle_calls = 0;
  uint64_t idle_since_ns = 0;
  store::FileVersion idle_version;  // when it became so, and after each change that we saw since

  os::Lock position;          // HeldPosition
  int owner = 0;              // the process whose runtime has it; in a forked child, the parent
  std::atomic<int> link{-1};  // how to ask the owner: ReleaseLink
  uint64_t file_bytes = 0;
  Counters ended;  // of mappings that no longer exist

  paging::PageCache* cache() const {
    return mappings.empty() ? nullptr : mappings.begin()->second->region->cache;
  }
  // Written together with other processes.
  bool is_together() const { return cache() != nullptr && cache()->writes != nullptr; }
};

}  // namespace outcore::preload
