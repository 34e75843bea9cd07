// HeaderPages: the first two pages of a container. Each names a journal, and says how much of it
// has reached the disk.
//
// A page has a header and, in two other sectors, a mark and a copy of it. A mark says how much of
// the journal is durable, and is written after that is true: no crash makes it untrue. So a journal
// that is shorter than its mark says is damaged, and not merely unfinished. A container of an
// earlier Outcore has no marks.
//
// One thread at a time; between processes the caller holds Lease::kCatalog.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "arrays/container/container_storage.h"
#include "core/base/units.h"

namespace outcore::arrays {

constexpr uint64_t kFirstJournalAt = 2 * base::kSystemPage;
constexpr uint64_t kFirstJournalBytes = 62 * base::kSystemPage;  // to 256 KiB
constexpr char kContainerMagic[8] = {'O', 'U', 'T', 'C', 'A', 'R', 'R', '\n'};

struct JournalHeader {
  uint64_t generation = 0, offset = 0, size_bytes = 0;
};

struct JournalMark {
  uint64_t durable_bytes = 0;  // so many bytes of the journal are whole records
  bool is_replaced = false;    // a later journal counts
};

struct FoundMark {
  std::optional<JournalMark> mark;  // of the mark and its copy, the one that says more
  bool has_traces = false;          // there are parts of an incomplete mark
  bool is_lost = false;             // neither is complete, which a crash cannot cause
};

class HeaderPages {
 public:
  explicit HeaderPages(ContainerStorage& storage) : storage_(storage) {}

  // The valid header with the higher generation. ENODATA: neither page has the magic number;
  // EBADMSG: neither is valid; EINVAL: a newer format.
  Result<JournalHeader> read() const;
  // Writes the whole page of its generation: the header, with a mark if there is one.
  Status write(const JournalHeader& header, const std::optional<JournalMark>& mark);

  // Whether a page names a later journal now. Reads the pages from the file, not from this
  // process's copy, which may be older where readers do not block writers.
  Result<bool> is_later_there(const JournalHeader& header) const;

  Result<FoundMark> read_mark(const JournalHeader& header) const;  // in the page of this header
  // REQUIRES: the records that it counts are durable.
  Status write_mark(const JournalHeader& header, const JournalMark& mark);

  // Describes damage of the spare page, or of the mark of the one in use; empty: there is none, or
  // only what a writer may have left that ended while it wrote there.
  Result<std::string> find_damage(const JournalHeader& header) const;
  // Writes the spare page again if it is damaged.
  Status mend(const JournalHeader& header);

 private:
  enum class Spare : uint8_t { kWhole, kBegun, kDamaged };  // kBegun: a writer ended meanwhile
  Result<Spare> look_at_spare(const JournalHeader& header) const;

  ContainerStorage& storage_;
};

}  // namespace outcore::arrays
