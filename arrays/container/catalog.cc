#include "arrays/container/catalog.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "arrays/container/catalog_text.h"
#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::arrays {
namespace {

constexpr uint64_t kPage = base::kSystemPage;
constexpr uint64_t kNewBytes = kFirstJournalAt + kFirstJournalBytes;  // of a new container
constexpr uint32_t kRecordMagic = 0x524a434f;                         // "OCJR"
constexpr uint32_t kDurableMagic = 0x444a434f;  // "OCJD": everything before it has reached the disk

struct RecordHead {
  uint32_t magic;
  uint32_t size_bytes;  // of the record without this header
  uint64_t sum;         // of the record, its place and the generation
};
static_assert(sizeof(RecordHead) == 16);

uint64_t record_sum(std::span<const uint8_t> record, uint64_t offset, uint64_t generation) {
  return XXH3_64bits_withSeed(record.data(), record.size(),
                              offset * 0x9e3779b97f4a7c15u + generation);
}

bool is_record(const RecordHead& head, uint64_t bytes_left) {
  return (head.magic == kRecordMagic || head.magic == kDurableMagic) &&
         head.size_bytes <= bytes_left - sizeof head;
}

uint64_t room_for(uint64_t record_bytes) {
  return base::round_up(sizeof(RecordHead) + record_bytes, 8);
}

// Other signs that this was a container: most letters of the magic number, or a record at the place
// of the first one.
bool is_nearly_ours(std::span<const char> first) {
  for (const uint64_t at : {uint64_t{0}, kPage}) {
    if (at + sizeof kContainerMagic > first.size()) continue;
    size_t same = 0;
    for (size_t i = 0; i < sizeof kContainerMagic; ++i) same += first[at + i] == kContainerMagic[i];
    if (same > sizeof kContainerMagic / 2) return true;
  }
  RecordHead head;
  if (first.size() < kFirstJournalAt + sizeof head) return false;
  std::memcpy(&head, &first[kFirstJournalAt], sizeof head);
  const uint64_t left = first.size() - kFirstJournalAt;
  if (!is_record(head, left)) return false;
  const auto* const record =
      reinterpret_cast<const uint8_t*>(&first[kFirstJournalAt + sizeof head]);
  return head.sum == record_sum({record, head.size_bytes}, kFirstJournalAt, 1);
}

}  // namespace

Error Catalog::damaged(const std::string& what) const {
  return {EIO, storage_.uri() + " is damaged: " + what + ": go back to a copy of it"};
}

Status Catalog::look() const {
  const uint64_t size = storage_.size_bytes();
  const Error nothing{ENOENT,
                      storage_.uri() + " is empty: store arrays in it first, or name another"};
  if (size == 0) return nothing;
  std::vector<char> first(std::min(size, kNewBytes));
  if (Status s = storage_.read(0, std::as_writable_bytes(std::span(first))); !s) return s;
  for (const uint64_t at : {uint64_t{0}, kPage})
    if (at + kPage <= first.size() &&
        std::memcmp(&first[at], kContainerMagic, sizeof kContainerMagic) == 0)
      return {};
  if (is_nearly_ours(first)) return damaged("its first bytes are not those of a container");
  // Zeros: a new store, or one whose creator died. A file of zeros belongs to somebody else.
  const bool is_zero = std::all_of(first.begin(), first.end(), [](char c) { return c == 0; });
  if (is_zero && size >= kNewBytes && (size == kNewBytes || !storage_.ends_where_used()))
    return nothing;
  return Error{EINVAL, storage_.uri() +
                           " is not a container of arrays: name another, or import it (outcore "
                           "arrays import)"};
}

Result<JournalHeader> Catalog::read_header() const {
  auto header = pages_.read();
  if (header.code() == ENODATA) return look().error();
  if (header.code() == EBADMSG) return damaged(header.message());
  return header;
}

Status Catalog::create(const Change& first) {
  entries_.clear();
  attributes_.clear();
  session_ = {};
  next_id_ = 1;
  if (storage_.size_bytes() != 0)
    if (Status s = storage_.clear(); !s) return s;
  if (Status s = storage_.grow(kFirstJournalAt + kFirstJournalBytes); !s) return s;
  const std::vector<std::byte> nothing(kPage);
  for (const uint64_t at : {uint64_t{0}, kPage, kFirstJournalAt})
    if (Status s = storage_.write(at, nothing); !s) return s;
  header_ = {1, kFirstJournalAt, kFirstJournalBytes};
  end_ = header_.offset;
  if (Status s = pages_.write(header_, {}); !s) return s;
  if (Status s = append(first, false); !s) return s;
  return storage_.sync();
}

Status Catalog::load() {
  const auto header = read_header();
  if (!header) return header.status();
  header_ = header.value();
  entries_.clear();
  attributes_.clear();
  session_ = {};
  next_id_ = 1;
  end_ = header_.offset;
  if (header_.offset % kPage != 0 || header_.offset < kFirstJournalAt ||
      header_.size_bytes > kBytesMax || header_.offset > kBytesMax ||
      header_.offset + header_.size_bytes > storage_.size_bytes())
    return damaged("it ends before its catalog does, at byte " +
                   std::to_string(storage_.size_bytes()));
  if (Status s = read_records(); !s) return s;
  if (Status s = check_mark(); !s) return s;
  if (Status s = check_end(); !s) return s;
  if (Status s = check_extents(); !s) return s;
  for (const auto& [id, entry] : entries_)
    if (!entry.is_inline() && entry.session == 0 &&
        entry.offset + entry.size_bytes > storage_.size_bytes())
      return damaged("it has " + std::to_string(storage_.size_bytes()) + " bytes, and '" +
                     entry.name + "' ends at " + std::to_string(entry.offset + entry.size_bytes));
  return {};
}

// Records that have reached the disk, by the mark of the header page, must be there. So must the
// first one if a byte behind the first journal was written. An earlier Outcore may have left a
// longer file without a record, but one of zeros.
Status Catalog::check_mark() const {
  const auto found = pages_.read_mark(header_);
  if (!found) return found.status();
  const std::optional<JournalMark>& mark = found->mark;
  if (found->is_lost) return damaged("the mark of its header page, which says where it ends");
  // Where a reader does not keep a writer from going on, it may have read the other page before.
  if (mark && mark->is_replaced) {
    const auto is_later = pages_.is_later_there(header_);
    if (!is_later) return is_later.status();
    if (!is_later.value()) return damaged("the header page of its last journal");
  }
  if (mark && end_ < header_.offset + mark->durable_bytes)
    return damaged("its record at " + std::to_string(end_));
  if (end_ != header_.offset) return {};
  const auto is_used = has_bytes_behind();
  if (!is_used) return is_used.status();
  if (found->has_traces || is_used.value())
    return damaged("its first record, at " + std::to_string(end_));
  return {};
}

// Whether a file has bytes but zeros where its arrays would be. Arrays lie there from the beginning
// on, and have their checksums at their end.
Result<bool> Catalog::has_bytes_behind() const {
  constexpr uint64_t kStep = 1 << 20, kReadMax = 64 << 20;
  const uint64_t size = storage_.size_bytes();
  if (!storage_.ends_where_used() || size <= kNewBytes) return false;
  std::vector<std::byte> bytes;
  for (uint64_t at = kNewBytes; at < size; at += bytes.size()) {
    if (at - kNewBytes >= kReadMax) at = std::max(at, size - std::min(size, kStep));
    bytes.resize(std::min(kStep, size - at));
    if (Status s = storage_.read(at, bytes); !s) return s.error();
    if (std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; }))
      return true;
  }
  return false;
}

// The last record may have been damaged on the disk. Then later records that were durable exist,
// which is not so after a record that never reached the disk.
Status Catalog::check_end() {
  if (header_.generation > 1 && end_ == header_.offset)  // a later journal begins with a record
    return damaged("its first record, at " + std::to_string(end_));
  const uint64_t limit = header_.offset + header_.size_bytes;
  RecordHead head;
  if (end_ + sizeof head > limit) return {};
  if (Status s = storage_.read(end_, std::as_writable_bytes(std::span(&head, 1))); !s) return s;
  if (head.magic == 0 && head.size_bytes == 0 && head.sum == 0) return {};
  std::vector<uint8_t> rest(limit - end_);
  if (Status s = storage_.read(end_, std::as_writable_bytes(std::span(rest))); !s) return s;
  for (uint64_t at = 8; at + sizeof head <= rest.size(); at += 8) {
    std::memcpy(&head, &rest[at], sizeof head);
    if (head.magic != kDurableMagic || !is_record(head, rest.size() - at)) continue;
    const std::span<const uint8_t> record(&rest[at + sizeof head], head.size_bytes);
    if (head.sum == record_sum(record, end_ + at, header_.generation))
      return damaged("its record at " + std::to_string(end_) + ", of which later ones are whole");
  }
  return {};
}

// Overlapping extents, if somebody forged them, would let a writer destroy other arrays or the
// catalog.
Status Catalog::check_extents() {
  std::vector<std::pair<uint64_t, uint64_t>> used = {
      {header_.offset, header_.offset + header_.size_bytes}};
  for (const auto& [id, entry] : entries_)
    if (!entry.is_inline()) used.emplace_back(entry.offset, entry.offset + entry.size_bytes);
  std::sort(used.begin(), used.end());
  const uint64_t least =
      header_.offset == kFirstJournalAt ? kFirstJournalAt : kFirstJournalAt + kFirstJournalBytes;
  uint64_t end = least;
  for (const auto& [from, to] : used) {
    if (from < end) return damaged("two of its arrays lie in one place");
    end = to;
  }
  high_water_ = std::max(high_water_, end);
  return {};
}

Status Catalog::clean() {
  constexpr uint64_t kStep = 64 << 10;
  const uint64_t limit = header_.offset + header_.size_bytes;
  std::vector<std::byte> bytes;
  bool is_dirty = false;
  for (uint64_t at = end_; at < limit; at += bytes.size()) {
    bytes.resize(std::min(kStep, limit - at));
    if (Status s = storage_.read(at, bytes); !s) return s;
    if (std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; }))
      continue;
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    if (Status s = storage_.write(at, bytes); !s) return s;
    is_dirty = true;
  }
  static_cast<void>(pages_.mend(header_));  // no array needs it
  return is_dirty ? storage_.sync() : Status();
}

Result<std::string> Catalog::find_header_damage() const {
  const auto header = read_header();  // a reader's own may be of an earlier journal by now
  if (!header) return header.error();
  return pages_.find_damage(header.value());
}

Status Catalog::refresh() {
  const auto header = read_header();
  if (!header) return header.status();
  if (header->generation != header_.generation) return load();
  return read_records();
}

// Reads records from end_ on, until one is not intact.
Status Catalog::read_records() {
  const uint64_t limit = header_.offset + header_.size_bytes;
  std::vector<uint8_t> record;
  while (end_ + sizeof(RecordHead) <= limit) {
    RecordHead head;
    if (Status s = storage_.read(end_, std::as_writable_bytes(std::span(&head, 1))); !s) return s;
    if (!is_record(head, limit - end_)) return {};
    record.resize(head.size_bytes);
    if (Status s = storage_.read(end_ + sizeof head, std::as_writable_bytes(std::span(record))); !s)
      return s;
    if (head.sum != record_sum(record, end_, header_.generation)) return {};
    auto change = decode(record);
    if (!change) return damaged("its record at " + std::to_string(end_) + ": " + change.message());
    apply(change.value());
    end_ += room_for(record.size());
  }
  return {};
}

void Catalog::apply(const Change& change) {
  for (const uint64_t id : change.remove) entries_.erase(id);
  for (const Entry& entry : change.put) {
    high_water_ = std::max(high_water_, entry.offset + entry.size_bytes);
    next_id_ = std::max(next_id_, entry.id + 1);
    entries_[entry.id] = entry;
  }
  if (change.has_session) session_ = change.session;
  if (change.has_attributes) attributes_ = change.attributes;
}

std::vector<uint8_t> Catalog::pack(uint64_t offset, const JournalHeader& header,
                                   const std::vector<uint8_t>& record, bool is_durable) {
  std::vector<uint8_t> bytes(room_for(record.size()));
  const RecordHead head = {is_durable ? kDurableMagic : kRecordMagic,
                           static_cast<uint32_t>(record.size()),
                           record_sum(record, offset, header.generation)};
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, record.data(), record.size());
  return bytes;
}

Status Catalog::append(const Change& change, bool is_durable) {
  if (!lost_.ok()) return lost_;
  const std::vector<uint8_t> record = encode(change);
  if (record.size() > UINT32_MAX / 2)
    return Error{ENOSPC, storage_.uri() + ": what is to be noted of its arrays is more than 2 GiB"};
  if (is_durable)  // first the bytes that the record is about
    if (Status s = storage_.sync(); !s) return s;
  for (const Entry& entry : change.put)  // a new journal must not overlap them
    high_water_ = std::max(high_water_, entry.offset + entry.size_bytes);
  if (end_ + room_for(record.size()) > header_.offset + header_.size_bytes)
    if (Status s = write_anew(room_for(record.size())); !s) return s;
  const auto bytes = pack(end_, header_, record, is_durable);
  if (Status s = storage_.write(end_, std::as_bytes(std::span(bytes))); !s) return s;
  if (is_durable)
    if (Status s = storage_.sync(); !s) return s;
  end_ += bytes.size();
  apply(change);
  if (!is_durable) return {};
  // The record is durable. These only protect it, and so does one of them.
  const JournalMark mark = {end_ - header_.offset, false};
  static_cast<void>(seal());
  static_cast<void>(pages_.write_mark(header_, mark));
  return {};
}

// Appends an empty record behind one that has reached the disk: if that one is damaged later,
// check_end() finds this one behind it. This one need not reach the disk.
Status Catalog::seal() {
  const auto bytes = pack(end_, header_, encode({}), true);
  if (end_ + bytes.size() > header_.offset + header_.size_bytes) return {};
  if (Status s = storage_.write(end_, std::as_bytes(std::span(bytes))); !s) return s;
  end_ += bytes.size();
  return {};
}

// Writes all entries as one record of a new journal, with room for as much again; then the header.
Status Catalog::write_anew(uint64_t more_bytes) {
  Change all;
  for (const auto& [id, entry] : entries_) all.put.push_back(entry);
  all.has_session = session_.number != 0;
  all.session = session_;
  all.has_attributes = true;
  all.attributes = attributes_;
  const std::vector<uint8_t> record = encode(all);
  if (record.size() > UINT32_MAX / 2)
    return Error{ENOSPC, storage_.uri() + ": what is known of its arrays is more than 2 GiB"};
  JournalHeader next;
  next.generation = header_.generation + 1;
  next.size_bytes = base::round_up(
      std::max(2 * (room_for(record.size()) + more_bytes), header_.size_bytes), kPage);
  next.offset = find_room(next.size_bytes, false);
  high_water_ = std::max(high_water_, next.offset + next.size_bytes);
  if (Status s = storage_.provide(next.offset, next.size_bytes); !s) return s;
  const auto bytes = pack(next.offset, next, record, true);
  if (Status s = storage_.write(next.offset, std::as_bytes(std::span(bytes))); !s) return s;
  if (Status s = storage_.sync(); !s) return s;
  // If these fail, it is not known which journal counts from now on: no record may follow.
  lost_ = pages_.write(next, JournalMark{bytes.size(), false});
  if (lost_.ok()) lost_ = storage_.sync();
  if (!lost_.ok()) return lost_;
  const JournalHeader before = header_;
  const JournalMark replaced = {end_ - before.offset, true};
  header_ = next;
  end_ = next.offset + bytes.size();
  static_cast<void>(pages_.write_mark(before, replaced));  // it only protects
  return {};
}

const Entry* Catalog::find(const std::string& name, uint64_t session) const {
  const Entry* found = nullptr;
  for (const auto& [id, entry] : entries_)
    if (entry.name == name && (entry.session == 0 || entry.session == session)) {
      // What this session writes replaces a finished array of the name.
      if (found == nullptr || entry.session != 0) found = &entry;
    }
  return found;
}

uint64_t Catalog::find_room(uint64_t size_bytes, bool may_reuse) const {
  const uint64_t align = size_bytes >= base::kHugePage ? base::kHugePage : kPage;
  std::vector<std::pair<uint64_t, uint64_t>> used = {
      {0, kFirstJournalAt + kFirstJournalBytes},
      {header_.offset, header_.offset + header_.size_bytes}};
  for (const auto& [id, entry] : entries_)
    if (!entry.is_inline()) used.emplace_back(entry.offset, entry.offset + entry.size_bytes);
  std::sort(used.begin(), used.end());
  uint64_t end = 0;
  for (const auto& [from, to] : used) {
    const uint64_t at = base::round_up(end, align);
    if (may_reuse && end != 0 && at < from && from - at >= size_bytes) return at;
    end = std::max(end, to);
  }
  if (!may_reuse) end = std::max(end, high_water_);
  if (!may_reuse && storage_.ends_where_used()) end = std::max(end, storage_.size_bytes());
  return base::round_up(end, align);
}

}  // namespace outcore::arrays
