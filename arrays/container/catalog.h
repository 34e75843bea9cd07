// Catalog: which arrays a container has, where their bytes lie, and whether they are finished.
//
// Two header pages name a journal; the one with the higher generation counts. The journal is a row
// of records, each with a checksum over its bytes, its place and the generation: what is torn, or
// left of an older generation, ends it. A full journal is written anew elsewhere, and then the
// other header page. So a record is there as a whole, or not; what is in it happens at once.
// docs/reference/arrays-format.md. Not for several threads; between processes the caller holds
// Lease::kCatalog.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "arrays/container/container_storage.h"
#include "outcore/arrays.h"

namespace outcore::arrays {

struct Entry {
  uint64_t id = 0;
  std::string name;
  ArrayType type;
  Dims dims;
  Order order = Order::kRow;
  Dims tiles;
  std::string compress;                 // of its tiles, as packing::Packing::text(); empty: none
  uint64_t offset = 0, size_bytes = 0;  // in the container
  std::vector<uint8_t> value;           // in place of them, where it is little
  uint64_t session = 0;                 // who writes it; 0: it is finished
  uint64_t stamp = 0;                   // of its content: a copy has the same
  uint64_t block_bytes = 0;             // that each of its checksums is of; 0: it has none
  bool are_sums_open = false;           // it is changed in place: its checksums say nothing
  std::map<std::string, std::string> attributes;
  bool is_inline() const { return size_bytes == 0; }
};

// Of its tiles, or slots of tiles, or of all of it; more than kBytesMax if they are too many.
uint64_t bytes_of(const Entry& entry);
uint64_t bytes_of_tile(const Entry& entry);  // the same; REQUIRES: it has tiles

// Those who write together.
struct Session {
  uint64_t number = 0;  // 0: none
  unsigned size = 0, joined = 0, closed = 0;
  bool has_failed = false;
  bool is_in_place = false;  // finished arrays are changed where they are: nobody else reads
};

// What a record says.
struct Change {
  std::vector<Entry> put;        // new ones, and what has changed, by id
  std::vector<uint64_t> remove;  // by id
  bool has_session = false;
  Session session;
  bool has_attributes = false;
  std::map<std::string, std::string> attributes;  // of the container
  bool is_empty() const { return put.empty() && remove.empty() && !has_session && !has_attributes; }
};

class Catalog {
 public:
  explicit Catalog(ContainerStorage& storage) : storage_(storage) {}

  // Whether the storage holds a container: EINVAL (something else is there), ENOENT (nothing).
  Status look() const;
  // A new one, with nothing in it. Durable.
  Status create();
  // Everything that there is by now. Errors: EINVAL (no container, a newer format), EIO (damaged).
  Status load();
  // No record is behind the last: of one that never came to the disk, those behind it may have.
  // Durable. REQUIRES: nobody else writes.
  Status clean();
  // What others have appended since.
  Status refresh();
  // To the journal and to what is known here. Durable, with everything that was written before, if
  // is_durable.
  Status append(const Change& change, bool is_durable);

  // By name; of what is not finished only that of the session.
  const Entry* find(const std::string& name, uint64_t session) const;
  const std::map<uint64_t, Entry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& attributes() const { return attributes_; }
  const Session& session() const { return session_; }
  uint64_t next_id() const { return next_id_; }

  // Where so many bytes are free: a gap, if may_reuse, or the end.
  uint64_t find_room(uint64_t size_bytes, bool may_reuse) const;

 private:
  struct Header {
    uint64_t generation = 0, offset = 0, size_bytes = 0;
  };
  Result<Header> read_header() const;
  Status write_header(const Header& header);
  Status read_records();
  Status check_end();
  Status check_extents();
  void apply(const Change& change);
  Status write_anew(uint64_t more_bytes);
  Status seal();
  static std::vector<uint8_t> pack(uint64_t offset, const Header& header,
                                   const std::vector<uint8_t>& record, bool is_durable);
  Error damaged(const std::string& what) const;

  ContainerStorage& storage_;
  Header header_;
  uint64_t end_ = 0;         // of the records
  uint64_t high_water_ = 0;  // nothing behind it was ever used, as far as we know
  std::map<uint64_t, Entry> entries_;
  std::map<std::string, std::string> attributes_;
  Session session_;
  uint64_t next_id_ = 1;
};

}  // namespace outcore::arrays
