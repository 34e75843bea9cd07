// Store catalog: the stores that servers keep under names: which there are, and their removal.
//
// Of redis:// and rbd:// (images of a Ceph pool). Files are seen and removed by the system's own
// commands. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore {

// A store's URI as it may be shown: the password of scheme://user:password@host reads ***. What is
// no such URI stays as it is.
std::string without_password(const std::string& uri);

struct StoreInfo {
  std::string name;
  uint64_t size_bytes = 0;
  uint64_t booked_bytes = 0;  // of the servers' memory; 0: they have no limit
  std::string owner;          // who writes it; empty: nobody
  uint64_t lifetime_ms = 0;   // how long it is kept after its last use; 0: for ever
  bool is_expired = false;    // its space goes to whoever needs it
  std::string checksum;       // as note_checksum() was told; empty: it was written since, or never
  std::string damage;         // what is wrong with what the servers noted of it; empty: nothing
};

// The stores that the servers of the URI keep, by name. A name in the URI is not looked at.
// Errors: ENOTSUP (a scheme without a catalog), and those of open_store().
Result<std::vector<StoreInfo>> list_stores(const std::string& uri);

// Bytes that the servers hold of the store, in whole values, without replicas.
// Errors: as list_stores(), ENOENT.
Result<uint64_t> stored_bytes(const std::string& uri);

// Keeps a checksum of all its bytes with the store, in whatever form, until somebody opens it for
// writing. Of the process that has it open for writing, when all is written.
// Errors: as list_stores(), ENOENT.
Status note_checksum(const std::string& uri, const std::string& checksum);

// Removes the store with all its bytes; if is_expired_only, ENOENT unless its time is over. Errors:
// as list_stores(), ENOENT, EBUSY (somebody writes it, of rbd:// also reads it), ENOTEMPTY (rbd://:
// it has snapshots).
Status remove_store(const std::string& uri, bool is_expired_only = false);

}  // namespace outcore
