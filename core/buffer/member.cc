#include "core/buffer/member.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/buffer/buffer_file.h"
#include "core/buffer/place.h"
#include "core/os/file_calls.h"
#include "core/os/file_lock.h"
#include "core/os/memory_file.h"
#include "core/os/wait.h"
#include "core/os/wait_limit.h"

namespace outcore::buffer {
namespace {

Status check_size(const std::string& name, uint64_t limit_bytes) {
  if (limit_bytes >= kLimitLeast) return {};
  return Error{EINVAL, "make the buffer " + name + ": a budget of " +
                           base::format_bytes(limit_bytes) + " is too small; the least is " +
                           base::format_bytes(kLimitLeast)};
}

// Tries until who has it must be stopped: as many as there may be hold it for some milliseconds
// each, and on a busy machine they wait for a processor, too. 0, -ETIMEDOUT or -errno.
int lock_soon(int fd, uint64_t byte) {
  os::WaitLimit limit(10'000'000'000);
  for (;;) {
    const int result = os::lock_bytes(fd, F_WRLCK, byte, 1);
    if (result != -EAGAIN) return result;
    if (limit.is_over()) return -ETIMEDOUT;
    os::pause(200'000);
  }
}

void unlock(int fd, uint64_t byte) { static_cast<void>(os::lock_bytes(fd, F_UNLCK, byte, 1)); }

// Whether anybody but this descriptor has a lock of the range; who cannot be asked has one.
bool is_locked(int fd, uint64_t first, uint64_t count) {
  struct flock found;
  return os::find_lock(fd, first, count, &found) != 0 || found.l_type != F_UNLCK;
}

// Whoever makes a file larger than he may is ended by a signal (SIGXFSZ).
Status can_have_size(uint64_t bytes) {
  struct rlimit most;
  if (::getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur == RLIM_INFINITY ||
      most.rlim_cur >= bytes)
    return {};
  return base::system_error(EFBIG, "make the memory file of a buffer",
                            "lift the file size limit (ulimit -f unlimited)");
}

// A lock of the buffer's file for the length of a scope.
class Scope {
 public:
  Scope(int fd, uint64_t byte) : fd_(fd), byte_(byte), result_(lock_soon(fd, byte)) {}
  ~Scope() {
    if (result_ == 0) unlock(fd_, byte_);
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  int result() const { return result_; }

 private:
  const int fd_;
  const uint64_t byte_;
  const int result_;
};

}  // namespace

Member::~Member() {
  // Without the lock, or with another member in its place, it is dead to others, who clear it.
  if (has_slot_) {
    const FilesLock lock(*this);
    if (lock.is_held() && record().generation.load() == generation_) clear(index_);
  }
  if (fd_ >= 0) {
    // A copy of the descriptor that somebody has would keep them.
    if (has_file()) unlock(fd_, kKeeping);
    if (has_file() && has_slot_) unlock(fd_, kSlots + index_);
    remove_file_if_last();
  }
  if (board_ != nullptr) ::munmap(board_, sizeof *board_);
  for (const int fd : {board_fd_, frames_fd_, marks_fd_, fd_})
    if (fd >= 0) os::close_locked(fd);
}

// Nobody joins while the lock is held, and who waits for it finds a file without a name, and makes
// another.
void Member::remove_file_if_last() const {
  if (!has_file() || os::lock_bytes(fd_, F_WRLCK, kMaking, 1) != 0) return;
  remove_if_empty(fd_, path_);
  unlock(fd_, kMaking);
}

Status Member::check_limit(const std::string& name, uint64_t limit_bytes) {
  return ::access(path_of(name).c_str(), F_OK) == 0 ? Status() : check_size(name, limit_bytes);
}

Result<std::unique_ptr<Member>> Member::join(const std::string& name, uint64_t limit_bytes) {
  if (Status s = check_name(name); !s) return s.error();
  Result<std::string> place = folder();
  if (!place) return place.error();
  if (Status s = can_have_size(slot_offset(kMembersMax)); !s) return s.error();
  for (;;) {
    std::unique_ptr<Member> member(new Member);
    member->name_ = name;
    if (Status s = member->open_file(place.value()); !s) return s.error();
    const Scope making(member->fd_, kMaking);
    if (making.result() != 0)
      return base::system_error(making.result(), "join the buffer " + name,
                                "a process that has it seems to be stopped");
    // Somebody has removed it meanwhile, as one that nobody is in, and perhaps made another.
    struct stat about;
    if (::fstat(member->fd_, &about) == 0 && about.st_nlink == 0) continue;
    if (Status s = member->find_or_make(limit_bytes); !s) return s.error();
    if (Status s = member->acquire_slot(); !s) return s.error();
    const Result<std::vector<std::string>> names =
        member->has_made_it_ ? names_in(place.value()) : std::vector<std::string>();
    for (size_t i = 0; names.ok() && i < names.value().size(); ++i)
      if (names.value()[i] != name) remove_if_left(file_of(place.value(), names.value()[i]));
    return member;
  }
}

Status Member::open_file(const std::string& folder) {
  path_ = file_of(folder, name_);
  fd_ = os::open_to_lock(AT_FDCWD, path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  if (fd_ < 0) return base::system_error(fd_, "open the buffer " + path_);
  struct stat about;
  if (::fstat(fd_, &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != ::geteuid())
    return Error{EPERM, "open the buffer " + path_ + ": it is no file of yours"};
  file_ = {about.st_dev, about.st_ino};
  Header header;
  if (about.st_size != 0 && (read_from(fd_, 0, &header) != 0 || !header.is_a_buffers()))
    return Error{EEXIST, "open the buffer " + path_ + ": it is the file of something else"};
  return {};
}

// The memory of a living member, or new memory if there is none.
Status Member::find_or_make(uint64_t limit_bytes) {
  // Members may end while they are asked.
  constexpr int kTriesMax = 100;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    Header header;
    const bool is_known = read_from(fd_, 0, &header) == 0;
    std::vector<uint64_t> living;
    if (const int result = os::find_locks(fd_, kSlots, kMembersMax, &living); result != 0)
      return base::system_error(result, "look for members of the buffer " + name_);
    if (living.empty()) return make(limit_bytes);
    if (!is_known || !header.is_ours())
      return Error{EPROTO, "join the buffer " + name_ +
                               ": another version of Outcore has it: take another name"};
    for (const uint64_t at : living) {
      Slot slot;
      if (read_from(fd_, slot_offset(at - kSlots), &slot) != 0) continue;
      const MemoryFiles files = open_memory_of(header, slot);
      if (!files.are_there()) continue;
      board_fd_ = files.board;
      frames_fd_ = files.frames;
      marks_fd_ = files.marks;
      return map_board();
    }
    os::pause(200'000);
  }
  return Error{EACCES, "join the buffer " + name_ +
                           ": the memory of its members cannot be had from here (another "
                           "container, or more rights than this process): take another name"};
}

Status Member::make(uint64_t limit_bytes) {
  if (Status s = check_size(name_, limit_bytes); !s) return s;
  if (Status s = can_have_size(kFramesBytes); !s) return s;
  for (const auto& [fd, bytes] :
       {std::pair{&board_fd_, uint64_t{sizeof(Board)}}, std::pair{&frames_fd_, kFramesBytes},
        std::pair{&marks_fd_, kMarksBytes}}) {
    Result<int> made = os::make_memory_file(bytes);
    if (!made) return made.error();
    *fd = made.value();
  }
  if (Status s = map_board(); !s) return s;
  board_->limit_bytes.store(limit_bytes);
  const Header header{Board::kMagic, kLayout, inode_of(board_fd_), inode_of(frames_fd_),
                      inode_of(marks_fd_)};
  if (const int result = write_to(fd_, 0, header); result != 0)
    return base::system_error(result, "write the file of the buffer " + name_);
  has_made_it_ = true;
  return {};
}

Status Member::map_board() {
  OC_CHECK(board_ == nullptr && board_fd_ >= 0 && frames_fd_ >= 0);
  void* const at = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, board_fd_, 0);
  if (at == MAP_FAILED) return base::system_error(errno, "map the board of the buffer " + name_);
  // A forked child is no member, and must not look like one.
  static_cast<void>(::madvise(at, sizeof(Board), MADV_DONTFORK));
  static_cast<void>(::madvise(at, sizeof(Board), MADV_DONTDUMP));
  board_ = static_cast<Board*>(at);
  struct stat about;
  if (::fstat(frames_fd_, &about) != 0)
    return base::system_error(errno, "look at the frames of the buffer " + name_);
  frames_ = {about.st_dev, about.st_ino};
  occupancy_.open(board_, frames_, frames_fd_, marks_fd_);
  return {};
}

// A place whose lock is held looks like that of who was in it, until all is cleared that one left:
// so it is cleared first, and its lock taken then. REQUIRES: the lock of kMaking.
Status Member::acquire_slot() {
  const Scope files(fd_, kFiles);
  if (files.result() != 0)
    return base::system_error(files.result(), "join the buffer " + name_,
                              "a process that has it seems to be stopped");
  for (uint32_t slot = 0; slot < kMembersMax; ++slot) {
    if (is_locked(fd_, kSlots + slot, 1)) continue;
    clear(slot);  // also what a member left that was cleared already, and lived on without its lock
    const int result = os::lock_bytes(fd_, F_WRLCK, kSlots + slot, 1);
    if (result == -EAGAIN) continue;
    if (result != 0) return base::system_error(result, "join the buffer " + name_);
    if (const int written =
            write_to(fd_, slot_offset(slot), Slot{::getpid(), board_fd_, frames_fd_, marks_fd_});
        written != 0)
      return base::system_error(written, "write the file of the buffer " + name_);
    generation_ = board_->members[slot].generation.fetch_add(1) + 1;
    index_ = slot;
    has_slot_ = true;
    record().process.store(0);
    OC_CHECK(index_ < kMembersMax && board_ != nullptr);
    uint32_t end = board_->members_end.load();
    while (end <= slot && !board_->members_end.compare_exchange_weak(end, slot + 1)) {
    }
    record().is_joined.store(1);
    return {};
  }
  return Error{EUSERS, "join the buffer " + name_ + ": it has " + std::to_string(kMembersMax) +
                           " members already"};
}

bool Member::is_alive(uint32_t member) const {
  OC_CHECK(member < kMembersMax);
  if (member == index_) return true;
  if (board_->members[member].is_joined.load() == 0) return false;
  return !has_file() || is_locked(fd_, kSlots + member, 1);
}

// Another may be in its place by the time that the lock is asked for: that one has written its
// number first, and joins then.
bool Member::is_alive(Writer writer) const {
  OC_CHECK(writer.is_any() && writer.index() < kMembersMax);
  const MemberRecord& m = board_->members[writer.index()];
  const auto is_its = [&] {
    return m.is_joined.load() != 0 && m.generation.load() == writer.generation();
  };
  return is_its() && is_alive(writer.index()) && is_its();
}

int32_t Member::process_of(uint32_t member) const {
  OC_CHECK(member < kMembersMax);
  Slot slot;
  return has_file() && read_from(fd_, slot_offset(member), &slot) == 0 ? slot.process : 0;
}

bool Member::is_found_by_name() const {
  const Result<std::string> place = folder();
  if (!place) return false;
  const std::string path = file_of(place.value(), name_);
  struct stat about;
  return path == path_ || (::lstat(path.c_str(), &about) == 0 && about.st_ino == file_.inode &&
                           about.st_dev == file_.device);
}

bool Member::has_file() const {
  struct stat about;
  return file_.is_named_by(fd_, &about);
}

bool Member::has_frames() const {
  struct stat about;
  return frames_.is_named_by(frames_fd_, &about);
}

void Member::stop_keeping() const {
  if (has_file()) unlock(fd_, kKeeping);
}

bool Member::try_to_keep() const {
  return has_file() && os::lock_bytes(fd_, F_WRLCK, kKeeping, 1) == 0;
}

void Member::clear(uint32_t member) const {
  OC_CHECK(member < kMembersMax);
  MemberRecord& m = board_->members[member];
  // It may have brought in what it could not tell any more.
  board_->has_unreported_pages.store(1);
  m.is_holding.store(0);
  m.opening.store(0);
  // What was under way may be in memory, and nobody tells it any more.
  const uint64_t under_way = m.reserved_pages.load();
  board_->filled_pages.fetch_add(under_way, std::memory_order_seq_cst);
  lower(m.reserved_pages, under_way);
  m.private_bytes.store(0);
  for (os::Word<uint64_t>& pin : m.pins) pin.store(0);
  m.pin_count.store(0);
  m.pinned_written.store(0);
  for (os::Word<uint64_t>& fill : m.fills) fill.store(0);
  m.victims_begin.store(m.victims_end.load());  // they are in memory
  if (m.punching.load() % 2 != 0) m.punching.fetch_add(1);
  for (FileRecord& file : board_->files) {
    file.members[member / 64].fetch_and(~(uint64_t{1} << (member % 64)));
    file.heirs[member / 64].fetch_and(~(uint64_t{1} << (member % 64)));
  }
  for (os::Word<uint64_t>& claim : board_->claims)
    if (uint64_t held = claim.load(); held != 0 && (held & 0xFFFF) == member + 1)
      claim.compare_exchange_strong(held, 0);
  m.is_leaving.store(0);
  m.heir_answer.store(HeirAnswer::kSoon);
  m.heir_requests_heard.store(board_->heir_requests.load() - 1);
  m.is_joined.store(0);
}

// It works for some microseconds, unless it dies or is stopped.
bool Member::wait_for_punchers(uint64_t first_page, uint64_t count) const {
  OC_CHECK(count != 0);
  os::WaitLimit limit(500'000'000);
  const uint32_t end = board_->members_end.load(std::memory_order_seq_cst);
  for (uint32_t i = 0; i < end; ++i) {
    MemberRecord& m = board_->members[i];
    os::Word<uint32_t>& punching = m.punching;
    const uint32_t seen = punching.load(std::memory_order_seq_cst);
    if (seen % 2 == 0) continue;
    // Of this time, if `punching` is still the same after they were read.
    const bool is_elsewhere =
        m.punched_first.load(std::memory_order_seq_cst) >= first_page + count ||
        m.punched_end.load(std::memory_order_seq_cst) <= first_page;
    while (punching.load(std::memory_order_seq_cst) == seen && !is_elsewhere && is_alive(i)) {
      if (limit.is_over()) return false;
      board_->punch_waiters.fetch_add(1, std::memory_order_seq_cst);
      if (punching.load(std::memory_order_seq_cst) == seen)
        os::wait_between_processes(&punching, seen, 1'000'000);
      board_->punch_waiters.fetch_sub(1);
    }
  }
  return true;
}

bool Member::clear_dead() const {
  bool is_any = false;
  for (uint32_t i = 0; i < board_->members_end.load(); ++i) {
    if (board_->members[i].is_joined.load() == 0 || is_alive(i)) continue;
    clear(i);
    is_any = true;
  }
  return is_any;
}

Member::OpeningLock::OpeningLock(Member& member) : member_(member) {
  member_.openings_.lock();
  is_held_ = member_.has_file() && lock_soon(member_.fd_, kOpening) == 0;
}
Member::OpeningLock::~OpeningLock() {
  if (is_held_) unlock(member_.fd_, kOpening);
  member_.openings_.unlock();
}

Member::FilesLock::FilesLock(Member& member, Patience patience) : member_(member) {
  if (patience == Patience::kNone) {
    is_ours_ = member_.files_.try_lock();
    is_held_ =
        is_ours_ && member_.has_file() && os::lock_bytes(member_.fd_, F_WRLCK, kFiles, 1) == 0;
    return;
  }
  member_.files_.lock();
  is_ours_ = true;
  is_held_ = member_.has_file() && lock_soon(member.fd_, kFiles) == 0;
}
Member::FilesLock::~FilesLock() {
  if (is_held_) unlock(member_.fd_, kFiles);
  if (is_ours_) member_.files_.unlock();
}

}  // namespace outcore::buffer
