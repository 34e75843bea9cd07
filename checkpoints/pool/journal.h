// Journal: the append-only files of records that say what a pool holds.
//
// JournalReader takes records out of one and tells a torn end (a record that was being written
// when the power went: ignored) from damage (something after it is whole, so it was once durable:
// refused, with file and offset). Journal appends. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoints/pool/disk.h"
#include "checkpoints/pool/format.h"

namespace outcore::versioned {

// "journal.000007"; 0 of any other name.
std::string journal_name(uint32_t number);
uint32_t journal_number(const std::string& name);
inline constexpr const char* kUnfinishedJournal = "journal.new";

struct Record {
  RecordHeader header;
  std::vector<std::byte> payload;
  RecordType type() const { return static_cast<RecordType>(header.type); }
};

class JournalReader {
 public:
  enum class Next : uint8_t { kRecord, kEnd, kDamage, kError };

  JournalReader(File& file, const std::string& name) : file_(file), name_(name) {}

  // kDamage, kError: why() says what, and where.
  Next next(Record& into);
  // Where the record that next() gave begins; where the next one does; its number.
  uint64_t record_offset() const { return record_offset_; }
  uint64_t offset() const { return offset_; }
  uint64_t sequence() const { return sequence_; }
  // After kEnd: there are bytes of a record that was not finished.
  bool is_torn() const { return is_torn_; }
  const Error& why() const { return why_; }

 private:
  Next bad(const std::string& what);
  Next fail(int code, const std::string& what);
  // True if a record that belongs after `offset_` lies there. -errno in `error`.
  bool finds_later(int& error);

  File& file_;
  const std::string name_;
  uint64_t offset_ = 0, record_offset_ = 0;
  uint64_t sequence_ = 0;
  uint64_t pool_id_ = 0;
  bool is_begun_ = false, is_torn_ = false;
  Error why_;
};

class Journal {
 public:
  // What commits leave free at the end, so that a removal can be noted on a disk that is full.
  static constexpr uint64_t kReserveBytes = 16 << 10;

  // Goes on in a file at `end`, with record `sequence`.
  Journal(std::unique_ptr<File> file, uint64_t pool_id, uint64_t end, uint64_t sequence)
      : file_(std::move(file)),
        pool_id_(pool_id),
        end_(end),
        sequence_(sequence),
        room_end_(file_->size_bytes()) {}

  struct How {
    bool may_use_reserve = false;
    bool is_synced = true;
  };
  // 0: the record is durable (is_synced). -errno: it is not there, and never will be; but if
  // is_broken(), nobody can know, and nothing more is appended.
  int append(RecordType type, uint32_t commit, std::span<const std::byte> payload, How how);
  int sync();
  bool is_broken() const { return is_broken_; }
  uint64_t end() const { return end_; }
  uint64_t sequence() const { return sequence_; }

 private:
  int make_room(uint64_t need, bool may_use_reserve);

  std::unique_ptr<File> file_;
  const uint64_t pool_id_;
  uint64_t end_;
  uint64_t sequence_;
  uint64_t room_end_;  // up to here there is space: a journal grows by that alone
  bool is_broken_ = false;
  std::vector<std::byte> bytes_;
};

}  // namespace outcore::versioned
