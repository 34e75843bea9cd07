// HeaderPages: the first two pages of a container. Each names a journal, and says how much of it
// has reached the disk.
//
// A page has a header and, in two other sectors, a mark and a copy of it. A mark is written after
// what it says is durable: no crash makes it untrue. So a journal that ends before its mark does is
// damaged, and not one that was never written. A container of an earlier Outcore has no marks.
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
  bool has_traces = false;          // of a mark that is not whole
  bool is_lost = false;             // both are not whole, which no crash does
};

class HeaderPages {
 public:
  explicit HeaderPages(ContainerStorage& storage) : storage_(storage) {}

  // That of the higher generation whose checksum is right. ENODATA: neither page has the magic
  // number; EBADMSG: none is whole; EINVAL: a newer format.
  Result<JournalHeader> read() const;
  // Writes the whole page of its generation: the header, with a mark if there is one.
  Status write(const JournalHeader& header, const std::optional<JournalMark>& mark);

  // Whether a page is there now that names a later journal. It is read past what this process keeps
  // of it: where a reader does not keep a writer from going on, it may have the page of before.
  Result<bool> is_later_there(const JournalHeader& header) const;

  Result<FoundMark> read_mark(const JournalHeader& header) const;  // of the page of this header
  // REQUIRES: what it says is durable.
  Status write_mark(const JournalHeader& header, const JournalMark& mark);

  // What is wrong with the page that does not count, or with the mark of the one that does; empty:
  // nothing but what a writer may have left that ended while it wrote there.
  Result<std::string> find_damage(const JournalHeader& header) const;
  // Writes the page that does not count anew if it is not what it should be.
  Status mend(const JournalHeader& header);

 private:
  enum class Spare : uint8_t { kWhole, kBegun, kDamaged };  // kBegun: a writer ended meanwhile
  Result<Spare> look_at_spare(const JournalHeader& header) const;

  ContainerStorage& storage_;
};

}  // namespace outcore::arrays
