// Journal: append-only files of records that say what a pool contains.
//
// JournalReader reads the records of one. It distinguishes a torn end (a record that was being
// written when the power failed: ignored) from damage (an intact record follows, so the bytes
// before it were durable once: refused, with file and offset). Journal appends records. One thread
// at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoints/pool/disk.h"
#include "checkpoints/pool/format.h"

namespace outcore::versioned {

// "journal.000007". The other function returns 0 for any other name.
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

  // After kDamage and kError, why() says what is wrong, and where.
  Next next(Record& into);
  // Of the record that next() returned: where it begins, where the next one begins, and its number.
  uint64_t record_offset() const { return record_offset_; }
  uint64_t offset() const { return offset_; }
  uint64_t sequence() const { return sequence_; }
  // After kEnd: whether bytes of an unfinished record follow.
  bool is_torn() const { return is_torn_; }
  const Error& why() const { return why_; }

 private:
  Next bad(const std::string& what);
  Next fail(int code, const std::string& what);
  // Whether a record that belongs after `offset_` lies there. -errno in `error`.
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
  // Commits leave so many bytes free at the end, so that a removal can be noted on a full disk.
  static constexpr uint64_t kReserveBytes = 16 << 10;

  // Continues a file at `end`, with the record number `sequence`.
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
  // 0: the record is appended, and durable if is_synced. -errno: it is not there and never will be,
  // unless is_broken(): then nobody can know, and nothing more can be appended.
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
  uint64_t room_end_;  // space is allocated up to here
  bool is_broken_ = false;
  std::vector<std::byte> bytes_;
};

}  // namespace outcore::versioned
