#include "checkpoints/pool/journal.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"

namespace outcore::versioned {
namespace {

constexpr uint64_t kRoomStepMin = 16 << 10;
constexpr uint64_t kRoomStepMax = 4 << 20;
constexpr size_t kSearchBytes = 16 << 10;

uint64_t padded(uint64_t payload_bytes) {
  return base::round_up(sizeof(RecordHeader) + payload_bytes, kRecordAlignment);
}

}  // namespace

std::string journal_name(uint32_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "journal.%06u", number);
  return name;
}

uint32_t journal_number(const std::string& name) {
  constexpr std::string_view kPrefix = "journal.";
  if (!name.starts_with(kPrefix) || name.size() < kPrefix.size() + 6 || name.size() > 18) return 0;
  uint64_t number = 0;
  for (const char c : name.substr(kPrefix.size())) {
    if (c < '0' || c > '9') return 0;
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  return number <= UINT32_MAX && journal_name(static_cast<uint32_t>(number)) == name
             ? static_cast<uint32_t>(number)
             : 0;
}

JournalReader::Next JournalReader::fail(int code, const std::string& what) {
  why_ = base::system_error(
      code, "read " + name_ + " at " + std::to_string(offset_) + (what.empty() ? "" : ": " + what));
  return Next::kError;
}

JournalReader::Next JournalReader::bad(const std::string& what) {
  int error = 0;
  const bool is_damage = finds_later(error);
  if (error != 0) return fail(error, "");
  if (!is_damage) return Next::kEnd;
  why_ = {EIO, name_ + " is damaged at offset " + std::to_string(offset_) + ": " + what +
                   ", and there are whole records after it"};
  return Next::kDamage;
}

JournalReader::Next JournalReader::next(Record& into) {
  const uint64_t size = file_.size_bytes();
  record_offset_ = offset_;
  RecordHeader& header = into.header;
  if (size < sizeof header || offset_ > size - sizeof header) {
    is_torn_ = offset_ < size;
    return Next::kEnd;
  }
  const auto bytes = std::as_writable_bytes(std::span(&header, 1));
  if (const int error = file_.read(offset_, bytes); error != 0) return fail(error, "");
  if (!is_whole(header)) {
    is_torn_ =
        std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{}; });
    return bad("no header of a record");
  }
  if (header.format > kFormat) {
    why_ = {EINVAL, name_ + " has format " + std::to_string(header.format) +
                        ", this program knows " + std::to_string(kFormat) +
                        ": use a newer Outcore"};
    return Next::kError;
  }
  is_torn_ = true;
  if (header.payload_bytes > size - offset_ - sizeof header) return bad("a record is cut short");
  if (is_begun_ && (header.sequence != sequence_ || header.pool_id != pool_id_)) {
    why_ = {EIO, name_ + " is damaged at offset " + std::to_string(offset_) + ": record " +
                     std::to_string(header.sequence) + " stands where record " +
                     std::to_string(sequence_) + " must be"};
    return Next::kDamage;
  }
  try {
    into.payload.resize(header.payload_bytes);
  } catch (const std::exception&) {  // bad_alloc, or length_error
    return fail(ENOMEM, "a record of " + base::format_bytes(header.payload_bytes));
  }
  if (const int error = file_.read(offset_ + sizeof header, into.payload); error != 0)
    return fail(error, "");
  if (checksum_of(into.payload) != header.payload_sum) return bad("a record's checksum is wrong");
  pool_id_ = header.pool_id;
  sequence_ = header.sequence + 1;
  offset_ += padded(header.payload_bytes);
  is_begun_ = true;
  is_torn_ = false;
  OC_ASSERT(offset_ > record_offset_ && offset_ % kRecordAlignment == 0);
  return Next::kRecord;
}

bool JournalReader::finds_later(int& error) {
  const uint64_t size = file_.size_bytes();
  std::vector<std::byte> bytes(kSearchBytes);
  for (uint64_t at = offset_ + kRecordAlignment; at + sizeof(RecordHeader) <= size;) {
    const size_t count = std::min<uint64_t>(kSearchBytes, size - at);
    error = file_.read(at, std::span(bytes).first(count));
    if (error != 0) return false;
    size_t i = 0;
    for (; i + sizeof(RecordHeader) <= count; i += kRecordAlignment) {
      uint32_t magic = 0;
      std::memcpy(&magic, bytes.data() + i, sizeof magic);
      if (magic != kRecordMagic) continue;
      RecordHeader header;
      std::memcpy(&header, bytes.data() + i, sizeof header);
      if (is_whole(header) &&
          (!is_begun_ || (header.pool_id == pool_id_ && header.sequence >= sequence_)))
        return true;
    }
    at += i;
  }
  return false;
}

int Journal::make_room(uint64_t need, bool may_use_reserve) {
  OC_ASSERT(need % kRecordAlignment == 0);
  const uint64_t wanted = end_ + need + kReserveBytes;
  if (wanted <= room_end_) return 0;
  const uint64_t step = std::clamp(end_ / 4, kRoomStepMin, kRoomStepMax);
  int error = file_->allocate(end_, need + kReserveBytes + step);
  if (error == 0) {
    room_end_ = wanted + step;
    return 0;
  }
  error = file_->allocate(end_, need + kReserveBytes);
  if (error == 0) room_end_ = wanted;
  return may_use_reserve && end_ + need <= room_end_ ? 0 : error;
}

int Journal::append(RecordType type, uint32_t commit, std::span<const std::byte> payload, How how) {
  if (is_broken_) return -EIO;
  OC_CHECK(end_ % kRecordAlignment == 0);
  RecordHeader header;
  header.type = static_cast<uint16_t>(type);
  header.sequence = sequence_;
  header.payload_bytes = payload.size();
  header.payload_sum = checksum_of(payload);
  header.pool_id = pool_id_;
  header.commit = commit;
  header = sealed(header);
  bytes_.assign(padded(payload.size()), std::byte{});
  OC_ASSERT(bytes_.size() >= sizeof header + payload.size());
  std::memcpy(bytes_.data(), &header, sizeof header);
  std::copy(payload.begin(), payload.end(), bytes_.begin() + sizeof header);
  if (const int error = make_room(bytes_.size(), how.may_use_reserve); error != 0) return error;
  OC_CHECK(end_ + bytes_.size() <= room_end_);
  int error = file_->write(end_, bytes_);
  if (error != 0) {
    // A part of the record may have been written. It is overwritten durably first, so that it can
    // never be taken for a record.
    constexpr std::array<std::byte, sizeof(RecordHeader)> kNone{};
    if (file_->write(end_, kNone) != 0 || file_->sync() != 0) is_broken_ = true;
    return error;
  }
  if (how.is_synced) error = file_->sync();
  if (error != 0) {
    is_broken_ = true;
    return error;
  }
  end_ += bytes_.size();
  ++sequence_;
  if (bytes_.capacity() > (size_t{4} << 20)) std::vector<std::byte>().swap(bytes_);
  return 0;
}

int Journal::sync() {
  if (is_broken_) return -EIO;
  const int error = file_->sync();
  is_broken_ = error != 0;
  return error;
}

}  // namespace outcore::versioned
