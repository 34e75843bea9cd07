// Catalog: which arrays a container has, where their bytes lie, and whether they are finished.
//
// The container begins with two header pages, each of which names a journal; the page with the
// higher generation is valid. The journal is a sequence of records. Each has a checksum over its
// bytes, its place and the generation, so a torn record, or one of an older generation, ends the
// journal. A full journal is written anew elsewhere, and then the other header page names that one.
// So a record is there as a whole or not at all, and all changes that it holds happen in one step.
// docs/reference/arrays-format.md.
//
// One thread at a time; between processes the caller holds Lease::kCatalog.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "arrays/container/container_storage.h"
#include "arrays/container/header_pages.h"
#include "outcore/arrays.h"

namespace outcore::arrays {

struct Entry {
  uint64_t id = 0;
  std::string name;
  ArrayType type;
  Dims dims;
  Order order = Order::kRow;
  Dims tiles;
  std::string compress;  // of its tiles, as packing::Packing::text(); empty: not compressed
  uint64_t offset = 0, size_bytes = 0;  // in the container
  std::vector<uint8_t> value;           // instead of them, if the content is small
  uint64_t session = 0;                 // the session that writes it; 0: it is finished
  uint64_t stamp = 0;                   // names its content: a copy has the same stamp
  uint64_t block_bytes = 0;    // the bytes that each of its checksums covers; 0: it has none
  bool are_sums_open = false;  // it is being changed in place: its checksums are not valid
  std::map<std::string, std::string> attributes;
  bool is_inline() const { return size_bytes == 0; }
};

// The bytes that it needs: of its tiles or their slots, or of all elements. More than kBytesMax if
// they are too many.
uint64_t bytes_of(const Entry& entry);
uint64_t bytes_of_tile(const Entry& entry);  // REQUIRES: it has tiles
// Whether so many dimensions may be of the type: a text or an object has one, its bytes.
bool has_right_rank(const ArrayType& type, const Dims& dims);

// A session: the processes that write together.
struct Session {
  uint64_t number = 0;  // 0: none
  unsigned size = 0, joined = 0, closed = 0;
  bool has_failed = false;
  bool is_in_place = false;  // finished arrays are changed in place: nobody else reads
};

// The content of one record.
struct Change {
  std::vector<Entry> put;        // new entries and changed ones, by id
  std::vector<uint64_t> remove;  // by id
  bool has_session = false;
  Session session;
  bool has_attributes = false;
  std::map<std::string, std::string> attributes;  // of the container
  bool is_empty() const { return put.empty() && remove.empty() && !has_session && !has_attributes; }
};

class Catalog {
 public:
  explicit Catalog(ContainerStorage& storage) : storage_(storage), pages_(storage) {}

  // Looks whether the storage holds a container. EINVAL: it holds something else; ENOENT: it is
  // empty.
  Status look() const;
  // Makes a new container without arrays, with its first record. Durable.
  Status create(const Change& first);
  // Reads the whole catalog. Errors: EINVAL (no container, or a newer format), EIO (damaged).
  Status load();
  // Makes sure that no record follows the last valid one: if a record never reached the disk, later
  // ones may have. Durable. Mends the spare header page. REQUIRES: nobody else writes.
  Status clean();
  // Reads the records that others have appended since.
  Status refresh();
  // Appends a record, and applies it here. If is_durable, the record and everything that was
  // written before it are durable when this returns. When it could not begin a new journal after
  // the new one may count already, it fails from then on.
  Status append(const Change& change, bool is_durable);

  // What is wrong with the header pages without keeping anything from being read; empty: nothing.
  Result<std::string> find_header_damage() const;

  // By name. Of arrays that are not finished, only those of the session are found.
  const Entry* find(const std::string& name, uint64_t session) const;
  const std::map<uint64_t, Entry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& attributes() const { return attributes_; }
  const Session& session() const { return session_; }
  uint64_t next_id() const { return next_id_; }

  // The offset of so many free bytes: in a gap, if may_reuse, or at the end.
  uint64_t find_room(uint64_t size_bytes, bool may_reuse) const;

 private:
  Result<JournalHeader> read_header() const;
  Status read_records();
  Status check_mark() const;
  Result<bool> has_bytes_behind() const;
  Status check_end();
  Status check_extents();
  void apply(const Change& change);
  Status write_anew(uint64_t more_bytes);
  Status seal();
  static std::vector<uint8_t> pack(uint64_t offset, const JournalHeader& header,
                                   const std::vector<uint8_t>& record, bool is_durable);
  Error damaged(const std::string& what) const;

  ContainerStorage& storage_;
  HeaderPages pages_;
  JournalHeader header_;
  uint64_t end_ = 0;         // where the records end
  Status lost_;              // an error: which journal counts is not known
  uint64_t high_water_ = 0;  // as far as is known here, nothing behind it was ever used
  std::map<uint64_t, Entry> entries_;
  std::map<std::string, std::string> attributes_;
  Session session_;
  uint64_t next_id_ = 1;
};

}  // namespace outcore::arrays
