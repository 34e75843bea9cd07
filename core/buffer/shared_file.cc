#include "core/buffer/shared_file.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/buffer/buffer_file.h"
#include "core/buffer/fills.h"
#include "core/buffer/handing_back.h"
#include "core/buffer/heirs.h"
#include "core/os/wait.h"
#include "core/os/wait_limit.h"

namespace outcore::buffer {
namespace {

// Files begin at such pages: their neighbours in the memory file are others'.
constexpr uint64_t kAlignPages = 512;

// Whether some member that has the file lives, or will store what was written; who joins it shares
// what that one knows.
bool is_lived_in(const Member& member, const FileRecord& file) {
  for (uint32_t i = 0; i < kMembersMax; ++i)
    if ((file.members[i / 64].load() >> (i % 64) & 1) != 0 && member.is_alive(i)) return true;
  return file.is_written.load() != 0 && Heirs::has_living(member, file);
}

bool is_same_file(const store::FileVersion& a, const store::FileVersion& b) {
  return a.device == b.device && a.inode == b.inode;
}

// The file as members have it: as it is now, or as they write it. REQUIRES: the lock of files.
FileRecord* find(const Member& member, const store::FileVersion& version) {
  for (FileRecord& file : member.board().files) {
    if (file.state.load() != FileState::kOpen || !is_same_file(file.version, version)) continue;
    const bool is_it = file.is_written.load() != 0 ? file.version.size_bytes == version.size_bytes
                                                   : file.version == version;
    if (is_it && is_lived_in(member, file)) return &file;
  }
  return nullptr;
}

// Members have it in another state, also if nobody new may join them: what they see and what a
// writer sees would differ, or what they write and what anybody sees.
bool has_another(const Member& member, const store::FileVersion& version, SharedFile::Use use,
                 const FileRecord* but) {
  return std::any_of(member.board().files.begin(), member.board().files.end(),
                     [&](const FileRecord& file) {
                       return &file != but && file.state.load() != FileState::kFree &&
                              is_same_file(file.version, version) &&
                              (use != SharedFile::Use::kRead || file.is_written.load() != 0) &&
                              is_lived_in(member, file);
                     });
}

FileRecord* make(const Member& member, const store::FileVersion& version, uint64_t pages_least) {
  Board& board = member.board();
  for (FileRecord& file : board.files) {
    if (file.state.load() != FileState::kFree) continue;
    file.pages = std::max(base::round_up(version.size_bytes, kPage) / kPage, pages_least);
    const uint64_t place = base::round_up(file.pages + 1, kAlignPages);
    if (board.next_page.load() + place > kFramesBytes / kPage) return nullptr;
    file.version = version;
    file.first_page = board.next_page.fetch_add(place);
    for (os::Word<uint64_t>& bits : file.members) bits.store(0);
    for (os::Word<uint32_t>& attempt : file.halted) attempt.store(0);
    file.is_together.store(0);
    file.handing_back.store(0);
    file.ending.store(0);
    file.state.store(FileState::kOpen);
    return &file;
  }
  return nullptr;
}

// Since it was changed last; a tenth of a second at most.
void wait_until_old(int fd) {
  store::FileVersion now;
  for (int i = 0; store::FileVersion::of(fd, &now) == 0 && now.is_fresh() && i < 20; ++i)
    os::pause(5'000'000);
}

uint64_t bit_of(uint32_t member) { return uint64_t{1} << (member % 64); }

}  // namespace

bool SharedFile::has_writers(Buffer& buffer, const store::FileVersion& version) {
  const Member& member = buffer.member();
  return std::any_of(member.board().files.begin(), member.board().files.end(),
                     [&](const FileRecord& file) {
                       return file.state.load() != FileState::kFree &&
                              is_same_file(file.version, version) && Marks::is_anybodys(file);
                     });
}

bool SharedFile::is_anybodys(Buffer& buffer, const store::FileVersion& version) {
  const Member& member = buffer.member();
  return std::any_of(
      member.board().files.begin(), member.board().files.end(), [&](const FileRecord& file) {
        return file.state.load() != FileState::kFree && is_same_file(file.version, version) &&
               (is_lived_in(member, file) || Marks::is_anybodys(file));
      });
}

Result<std::unique_ptr<SharedFile>> SharedFile::open(std::shared_ptr<Buffer> buffer,
                                                     const store::FileVersion& version, Use use,
                                                     int fd, uint64_t pages_least) {
  OC_CHECK(version.size_bytes != 0);
  OC_CHECK(use == Use::kRead || fd >= 0);
  const std::string attempt = "put a file into the buffer " + buffer->member().name();
  Result<std::unique_ptr<SharedFile>> opened =
      join(std::move(buffer), version, use, fd, pages_least);
  if (!opened) return Error{opened.code(), attempt + ": " + opened.message()};
  if (use == Use::kRead) return opened;
  SharedFile& file = *opened.value();
  Member& member = file.buffer_->member();
  // Without the lock: others may come and go. Who began to read a page before does not know that it
  // may change.
  constexpr uint64_t kNsMax = 10'000'000'000;
  if (!Fills::wait_for_all(member, file.first_page_, file.pages_, kNsMax))
    return base::system_error(ETIMEDOUT, attempt, "a page of it is being read for very long");
  if (file.is_together()) return opened;  // which has no heirs
  Heirs::wait_for_one(member, member.board().files[file.index_]);
  return opened;
}

namespace {

// Programs under `outcore run` hand back what they write when others open it; those that use the
// library do not, and so the two do not share. REQUIRES: the lock of files.
Status may_join(const FileRecord* file, SharedFile::Use use) {
  using Use = SharedFile::Use;
  const bool is_together = use == Use::kTogether || use == Use::kJoined;
  if (file == nullptr)
    return use == Use::kJoined ? Error{ENOENT, "nobody writes it any more"} : Status();
  if (HandingBack::is_under_way(*file) || HandingBack::is_released(*file))
    return Error{EAGAIN, "it is just handed to the kernel"};
  if (file->is_together.load() != 0 && !is_together)
    return Error{EBUSY, "programs under `outcore run` write it: let them end first"};
  if (file->is_together.load() == 0 && is_together)
    return Error{EBUSY, "other processes have it there: let them unmap it first"};
  return {};
}

}  // namespace

Result<std::unique_ptr<SharedFile>> SharedFile::join(std::shared_ptr<Buffer> buffer,
                                                     const store::FileVersion& version, Use use,
                                                     int fd, uint64_t pages_least) {
  Member& member = buffer->member();
  const Member::FilesLock lock(member);
  if (!lock.is_held()) return Error{ETIMEDOUT, "a member of it seems to be stopped"};
  FileRecord* file = find(member, version);
  const bool is_together = use == Use::kTogether || use == Use::kJoined;
  if (Status s = may_join(file, use); !s) return s.error();
  if ((file == nullptr || use != Use::kRead) && has_another(member, version, use, file))
    return Error{EBUSY,
                 "other processes have it there as it was, with another size or time of change: "
                 "let them unmap it first"};
  if (file == nullptr && use == Use::kRead && version.is_fresh())
    return Error{EBUSY, "it has changed just now"};
  // Behind its last page lie others' pages.
  if (file != nullptr && file->pages < pages_least)
    return Error{EBUSY, "other processes have it there with less room behind its end"};
  if (file == nullptr) file = make(member, version, pages_least);
  if (file == nullptr) return Error{ENFILE, "it has had too many files, or too large ones"};
  if (is_together) file->is_together.store(1);
  const uint32_t own = member.index();
  if ((file->members[own / 64].fetch_or(bit_of(own)) & bit_of(own)) != 0)
    return Error{EBUSY, "another runtime of this process has it there"};
  const auto index = static_cast<uint32_t>(file - member.board().files.data());
  OC_CHECK(index < kFilesMax);
  OC_CHECK(file->first_page % kAlignPages == 0 && file->pages != 0);
  std::unique_ptr<SharedFile> shared(
      new SharedFile(std::move(buffer), version, index, file->first_page, file->pages));
  if (use == Use::kRead) return shared;
  Result<std::unique_ptr<Marks>> marks = Marks::open(member, *file, fd);
  if (!marks) {
    file->members[own / 64].fetch_and(~bit_of(own));
    shared->is_left_ = true;
    return Error{marks.code(), marks.message()};
  }
  shared->marks_ = std::move(marks).value();
  return shared;
}

std::unique_ptr<SharedFile> SharedFile::inherit(std::shared_ptr<Buffer> buffer, uint32_t index) {
  OC_CHECK(index < kFilesMax);
  Member& member = buffer->member();
  FileRecord& file = member.board().files[index];
  const Member::FilesLock lock(member);
  if (!lock.is_held() || file.state.load() == FileState::kFree || file.is_written.load() == 0 ||
      Marks::has_writer(member, file))
    return nullptr;
  std::unique_ptr<SharedFile> shared(
      new SharedFile(std::move(buffer), file.version, index, file.first_page, file.pages));
  shared->is_left_ = true;  // what this member has of it otherwise stays as it is
  Result<std::unique_ptr<Marks>> marks = Marks::open_to_inherit(member, file);
  if (!marks) return nullptr;
  shared->marks_ = std::move(marks).value();
  return shared;
}

namespace {

// Of those who write it together, or have just handed it back; nullptr: there are none.
FileRecord* find_together(const Member& member, uint64_t device, uint64_t inode) {
  for (FileRecord& file : member.board().files)
    if (file.state.load() != FileState::kFree && file.is_together.load() != 0 &&
        file.version.device == device && file.version.inode == inode &&
        Marks::has_writer(member, file))
      return &file;
  return nullptr;
}

}  // namespace

bool SharedFile::is_together(Buffer& buffer, uint64_t device, uint64_t inode) {
  return find_together(buffer.member(), device, inode) != nullptr;
}

Status SharedFile::ask_back(Buffer& buffer, uint64_t device, uint64_t inode, uint64_t ns_max) {
  Member& member = buffer.member();
  FileRecord* const file = find_together(member, device, inode);
  return file == nullptr ? Status() : HandingBack(member, *file).ask(ns_max);
}

bool SharedFile::is_together() const {
  return buffer_->member().board().files[index_].is_together.load() != 0;
}

bool SharedFile::is_wanted_back() const {
  return HandingBack::is_under_way(buffer_->member().board().files[index_]);
}

Status SharedFile::hand_back(const std::function<int()>& store_own, uint64_t ns_max) {
  OC_CHECK(is_together() && marks_ != nullptr);
  HandingBack all(buffer_->member(), buffer_->member().board().files[index_]);
  if (Status s = all.begin(); !s) return s;
  return all.take_part(*marks_, store_own, ns_max);
}

// Each says so first, and then looks at the others: so of two at least one stays for the other.
bool SharedFile::leaves_others() {
  OC_CHECK(is_together() && marks_ != nullptr);
  const Member& member = buffer_->member();
  FileRecord& file = member.board().files[index_];
  file.ending.fetch_or(uint64_t{1} << marks_->slot(), std::memory_order_seq_cst);
  for (uint32_t slot = 0; slot < kWritersMax; ++slot) {
    const Writer writer(file.writers[slot].load());
    if ((file.ending.load(std::memory_order_seq_cst) >> slot & 1) == 0 && writer.is_any() &&
        writer.index() < kMembersMax && writer != member.as_writer() && member.is_alive(writer))
      return true;
  }
  return false;
}

// The last one that writes it says how the file is now: whoever comes finds what is in memory, if
// nobody has changed the file since. A further change within the same tick would not be noticed.
void SharedFile::end_writing(int fd, const std::function<bool()>& store_adopted) {
  if (marks_ == nullptr) return;
  Member& member = buffer_->member();
  constexpr int kRoundsMax = 8;
  constexpr uint64_t kNsMax = 2'000'000'000;
  bool can_store = store_adopted != nullptr;
  for (int rounds = 0;; ++rounds) {
    // Those who wrote it and were killed meanwhile have nobody else, perhaps.
    if (can_store && marks_->adopt()) can_store = store_adopted() && rounds < kRoundsMax;
    wait_until_old(fd);
    // Who reads what was stored before must not bring it in once pages leave as of a file that
    // nobody writes.
    const bool is_read_by_none = Fills::wait_for_all(member, first_page_, pages_, kNsMax);
    const Member::FilesLock lock(member);
    if (can_store && marks_->adopt()) continue;
    close_marks(fd, lock.is_held(), is_read_by_none);
    return;
  }
}

// Without the lock, and where somebody else changes the file, nobody may believe that it is as we
// know it.
void SharedFile::close_marks(int fd, bool is_locked, bool is_read_by_none) {
  store::FileVersion now;
  FileRecord& file = buffer_->member().board().files[index_];
  const bool is_known = store::FileVersion::of(fd, &now) == 0 && !now.is_fresh();
  if (marks_->close(is_locked && is_read_by_none)) {
    if (is_known && is_same_file(now, file.version) && now.size_bytes == file.version.size_bytes)
      file.version = now;
    else
      close_to_others();
    Heirs::ring(buffer_->member());  // it may be executed, or leased, from now on
  }
  marks_.reset();
}

SharedFile::~SharedFile() {
  OC_CHECK(inside_.load() == 0);
  if (marks_ != nullptr) {  // it was never mapped
    marks_->drop_all();
    end_writing(-1, {});
  }
  if (is_left_) return;
  buffer_->pins().drop_all(first_page_, pages_);
  Member& member = buffer_->member();
  const Member::FilesLock lock(member);
  // Without the lock the bit stays until this process ends; and it must not say that the file is
  // looked after.
  if (!lock.is_held()) {
    close_to_others();
    return;
  }
  const uint32_t own = member.index();
  member.board().files[index_].members[own / 64].fetch_and(~bit_of(own));
}

uint64_t SharedFile::frame_page(uint64_t page) const {
  OC_CHECK(page < pages_);
  return first_page_ + page;
}

// Who comes to a file that is written must find what the others write.
void SharedFile::close_to_others() {
  FileRecord& file = buffer_->member().board().files[index_];
  if (file.is_written.load() != 0) return;
  FileState open = FileState::kOpen, closed = FileState::kClosed;
  if (file.state.compare_exchange_strong(open, closed) && file.is_written.load() != 0)
    file.state.compare_exchange_strong(closed, FileState::kOpen);  // one has come just now
}

bool SharedFile::block(uint64_t wait_ns) {
  os::WaitLimit limit(wait_ns);
  blocks_.fetch_add(1, std::memory_order_seq_cst);
  while (inside_.load(std::memory_order_seq_cst) != 0) {
    if (limit.is_over()) {
      unblock();
      return false;
    }
    os::yield();
  }
  return true;
}

}  // namespace outcore::buffer
