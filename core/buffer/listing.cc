// The buffers of this user, seen without joining them: include/outcore/buffers.h.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/buffer/buffer_file.h"
#include "core/buffer/place.h"
#include "core/os/file_lock.h"
#include "core/os/wait.h"
#include "outcore/buffers.h"

namespace outcore {
namespace {

using buffer::Board;
using buffer::kMembersMax;
using buffer::kPage;
using buffer::kSlots;

uint64_t bytes_in_memory(int fd) {
  struct stat about;
  return ::fstat(fd, &about) == 0 ? static_cast<uint64_t>(about.st_blocks) * 512 : 0;
}

class Glance {
 public:
  Glance(const std::string& folder, const std::string& name)
      : path_(buffer::file_of(folder, name)),
        fd_(os::open_to_lock(AT_FDCWD, path_.c_str(), O_RDWR | O_NOFOLLOW)) {
    facts_.name = name;
    if (fd_ >= 0) look_for_members();
  }
  ~Glance() {
    if (board_ != nullptr) ::munmap(board_, sizeof *board_);
    if (fd_ >= 0) os::close_locked(fd_);
  }
  Glance(const Glance&) = delete;
  Glance& operator=(const Glance&) = delete;

  // nullptr: its members' memory cannot be had from here, or there are none.
  Board* board() const { return board_; }
  BufferFacts facts() const {
    BufferFacts facts = facts_;
    if (board_ == nullptr) return facts;
    facts.limit_bytes = board_->limit_bytes.load();
    facts.used_bytes_max = board_->used_bytes_max.load();
    facts.takeovers = board_->takeovers.load();
    if (board_->written_files.load() != 0)
      facts.written_bytes = std::min(board_->written_pages.load() * kPage, facts.resident_bytes);
    for (const buffer::MemberRecord& m : board_->members) {
      facts.filled_pages += m.filled_pages.load();
      facts.evicted_pages += m.evicted_pages.load();
      facts.used_bytes += m.private_bytes.load();
      facts.coming_bytes += m.reserved_pages.load() * kPage;
    }
    for (const buffer::FileRecord& file : board_->files)
      if (file.state.load() == buffer::FileState::kOpen && file.has_members()) ++facts.files;
    return facts;
  }

 private:
  void look_for_members() {
    buffer::Header header;
    const bool is_readable = buffer::read_from(fd_, 0, &header) == 0 && header.is_ours();
    std::vector<uint64_t> living;
    static_cast<void>(os::find_locks(fd_, kSlots, kMembersMax, &living));
    for (const uint64_t at : living) {
      buffer::Slot slot;
      if (buffer::read_from(fd_, buffer::slot_offset(at - kSlots), &slot) != 0) continue;
      const buffer::MemoryFiles files =
          is_readable ? buffer::open_memory_of(header, slot) : buffer::MemoryFiles();
      facts_.members.push_back(files.are_there() ? slot.process : 0);
      if (!files.are_there()) continue;
      if (board_ == nullptr) map(files);
      if (board_ != nullptr && board_->members[at - kSlots].is_holding.load() != 0)
        facts_.holders.push_back(slot.process);
      if (board_ != nullptr && board_->keeping_member.load() == at - kSlots + 1)
        facts_.keeping = slot.process;
      files.close();
    }
  }
  void map(const buffer::MemoryFiles& files) {
    void* const at =
        ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, files.board, 0);
    if (at != MAP_FAILED) board_ = static_cast<Board*>(at);
    facts_.resident_bytes = bytes_in_memory(files.frames);
    facts_.used_bytes = facts_.resident_bytes + bytes_in_memory(files.marks);
  }

  const std::string path_;
  const int fd_;
  Board* board_ = nullptr;
  BufferFacts facts_;
};

}  // namespace

Result<std::vector<BufferFacts>> list_buffers() {
  Result<std::string> folder = buffer::folder();
  if (!folder) return folder.error();
  Result<std::vector<std::string>> names = buffer::names_in(folder.value());
  if (!names) return names.error();
  std::vector<BufferFacts> all;
  for (const std::string& name : names.value()) {
    BufferFacts facts = Glance(folder.value(), name).facts();
    if (facts.members.empty())
      buffer::remove_if_left(buffer::file_of(folder.value(), name));
    else
      all.push_back(std::move(facts));
  }
  return all;
}

Status resize_buffer(const std::string& name, uint64_t limit_bytes) {
  if (Status s = buffer::check_name(name); !s) return s;
  const std::string attempt = "resize the buffer " + name;
  if (limit_bytes < buffer::kLimitLeast)
    return Error{EINVAL, attempt + ": the least is " + base::format_bytes(buffer::kLimitLeast)};
  Result<std::string> folder = buffer::folder();
  if (!folder) return folder.error();
  const Glance glance(folder.value(), name);
  Board* const board = glance.board();
  if (board == nullptr)
    return Error{ENOENT,
                 attempt + ": nobody is in it (`outcore buffers ls` lists those there are)"};
  const buffer::Kept kept = buffer::kept_by_members(*board);
  const uint64_t beside = kept.private_bytes, pinned = kept.pinned_bytes;
  if (pinned > (limit_bytes - std::min(limit_bytes, beside)) / 2)
    return Error{EBUSY, attempt + " to " + base::format_bytes(limit_bytes) + ": " +
                            base::format_bytes(pinned) + " of it are pinned; unpin some first"};
  if (beside > buffer::most_beside(limit_bytes))
    return Error{EBUSY, attempt + " to " + base::format_bytes(limit_bytes) + ": its members have " +
                            base::format_bytes(beside) + " for themselves, which stay theirs"};
  board->limit_bytes.store(limit_bytes);
  board->bell.fetch_add(1);
  os::wake_between_processes(&board->bell);
  return {};
}

Result<size_t> end_buffer(const std::string& name) {
  if (Status s = buffer::check_name(name); !s) return s.error();
  const std::string attempt = "end the buffer " + name;
  Result<std::string> folder = buffer::folder();
  if (!folder) return folder.error();
  const BufferFacts facts = Glance(folder.value(), name).facts();
  if (facts.members.empty())
    return Error{ENOENT,
                 attempt + ": nobody is in it (`outcore buffers ls` lists those there are)"};
  if (facts.holders.empty())
    return Error{ESRCH, attempt + ": no `outcore serve` holds it; it ends with the last of its " +
                            std::to_string(facts.members.size()) + " processes"};
  size_t asked = 0;
  for (const pid_t holder : facts.holders) asked += ::kill(holder, SIGTERM) == 0 ? 1 : 0;
  return asked;
}

}  // namespace outcore
