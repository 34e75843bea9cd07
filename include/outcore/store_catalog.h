// Store catalog: lists and removes the stores that servers keep by name.
//
// For redis:// and rbd:// (images of a Ceph pool); files are listed and removed with the system's
// own commands. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore {

// The URI as it may be shown: the password of scheme://user:password@host reads ***. Text that is
// no such URI is returned unchanged.
std::string without_password(const std::string& uri);

struct StoreInfo {
  std::string name;
  uint64_t size_bytes = 0;
  uint64_t booked_bytes = 0;   // bytes booked in the servers' memory; 0: no limit
  std::string owner;           // the process that writes it; empty: none
  uint64_t lifetime_ms = 0;    // how long it is kept after its last use; 0: forever
  bool is_expired = false;     // its lifetime is over: its space is given to whoever needs it
  std::string checksum;        // from note_checksum(); empty: none, or written since
  std::string damage;          // what is wrong with the servers' notes about it; empty: nothing
  bool is_incomplete = false;  // a copy into it is under way, or did not end (OpenOptions)
};

// The stores on the servers of the URI, by name. A store name in the URI is ignored. Errors:
// ENOTSUP (a scheme without a catalog), and those of open_store().
Result<std::vector<StoreInfo>> list_stores(const std::string& uri);

// Bytes that the servers hold for the store, in whole values, without replicas. Errors: as
// list_stores(), ENOENT.
Result<uint64_t> stored_bytes(const std::string& uri);

// Keeps a checksum of all bytes of the store, in any format, until a process opens the store for
// writing. Call it in the process that has the store open for writing, after all writes. Errors: as
// list_stores(), ENOENT. A store that is written anew (OpenOptions::is_rewritten) is complete then.
Status note_checksum(const std::string& uri, const std::string& checksum);

// Removes the store and all its bytes. With is_expired_only: ENOENT, unless its lifetime is over.
// Errors: as list_stores(), ENOENT, EBUSY (a process writes it; for rbd:// also: reads it),
// ENOTEMPTY (rbd://: it has snapshots).
Status remove_store(const std::string& uri, bool is_expired_only = false);

}  // namespace outcore
