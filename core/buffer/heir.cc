#include "core/buffer/heir.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/buffer/buffer.h"
#include "core/buffer/buffer_file.h"
#include "core/buffer/heirs.h"
#include "core/buffer/shared_file.h"
#include "core/os/file_calls.h"
#include "core/os/file_lock.h"
#include "core/os/wait.h"

namespace outcore::buffer {
namespace {

constexpr uint64_t kPeriodNs = 100'000'000, kIdlePeriodNs = 1'000'000'000;
constexpr uint64_t kAgainNs = 1'000'000'000;  // after a store that failed
constexpr size_t kHeldMax = 64;               // descriptors

int open_of(int32_t process, int fd, const store::FileVersion& version, int flags) {
  return open_of_process(process, fd, flags, [&](const struct stat& about) {
    return about.st_ino == version.inode && about.st_dev == version.device;
  });
}

std::string path_of(int fd) {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), unknown).string();
}

}  // namespace

Status Heir::start() {
  try {
    const os::SignalBlock block;
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& e) {
    return base::system_error(e.code().value(), "start the thread that stores for others",
                              "raise ulimit -u");
  }
  return {};
}

Heir::~Heir() {
  if (!thread_.joinable()) return;
  is_ending_.store(1);
  std::atomic<uint32_t>& requests = buffer_.member().board().heir_requests;
  requests.fetch_add(1, std::memory_order_seq_cst);
  os::wake_between_processes(&requests);
  thread_.join();
  while (!held_.empty()) let_go(held_.begin()->first);
}

void Heir::run() {
  Board& board = buffer_.member().board();
  for (bool is_last = false; !is_last;) {
    const uint32_t heard = board.heir_requests.load(std::memory_order_seq_cst);
    is_last = is_ending_.load() != 0;
    const bool is_any = board.written_files.load(std::memory_order_seq_cst) != 0;
    if (is_any || !held_.empty()) look();
    if (!is_last)
      os::wait_between_processes(&board.heir_requests, heard, is_any ? kPeriodNs : kIdlePeriodNs);
  }
}

void Heir::look() {
  const Member& member = buffer_.member();
  for (uint32_t i = 0; i < kFilesMax; ++i) {
    const FileRecord& file = member.board().files[i];
    const auto known = held_.find(i);
    const bool is_written = file.state.load() != FileState::kFree && file.is_written.load() != 0;
    if (known != held_.end() && (!is_written || known->second.first_page != file.first_page)) {
      let_go(i);
      continue;
    }
    if (!is_written || (known == held_.end() && !hold(i))) continue;
    Held& held = held_.at(i);
    if (Marks::has_writer(member, file)) continue;
    if (held.failed_ns == 0 || is_ending_.load() != 0 || os::now_ns() - held.failed_ns > kAgainNs)
      inherit(i, held);
  }
}

void Heir::let_go(uint32_t index) {
  const auto known = held_.find(index);
  OC_CHECK(known != held_.end());
  FileRecord& file = buffer_.member().board().files[index];
  if (file.first_page == known->second.first_page) Heirs::remove(file, buffer_.member().index());
  os::close_locked(known->second.fd);
  held_.erase(known);
}

// False: it cannot be had just now. A process that has been killed has no descriptors any more.
bool Heir::hold(uint32_t index) {
  const Member& member = buffer_.member();
  FileRecord& file = member.board().files[index];
  for (uint32_t slot = 0; slot < kWritersMax && held_.size() < kHeldMax; ++slot) {
    const Writer writer(file.writers[slot].load());
    const int fd = file.writer_fds[slot].load() - 1;
    if (!writer.is_any() || fd < 0 || writer.index() >= kMembersMax || writer == member.as_writer())
      continue;
    const Held held{file.first_page,
                    open_of(member.process_of(writer.index()), fd, file.version, O_RDONLY)};
    if (held.fd < 0) continue;
    held_[index] = held;
    Heirs::add(file, member.index());
    // Or the record may be another file's by now.
    if (file.first_page == held.first_page && file.is_written.load() != 0) return true;
    Heirs::remove(file, member.index());
    let_go(index);
    return false;
  }
  return false;
}

void Heir::inherit(uint32_t index, Held& held) {
  // The buffer owns this thread, and must not end in it.
  const std::shared_ptr<Buffer> buffer(std::shared_ptr<Buffer>(), &buffer_);
  const std::unique_ptr<SharedFile> file = SharedFile::inherit(buffer, index);
  if (file == nullptr) return;
  const int fd = open_of(::getpid(), held.fd, file->version(), O_RDWR);
  int result = fd < 0 ? -EACCES : 0;
  file->end_writing(held.fd, [&] {
    if (result == 0) result = store(*file, fd);
    return result == 0;
  });
  if (fd >= 0) os::close_locked(fd);
  held.failed_ns = result == 0 || result == -EINTR ? 0 : os::now_ns();
  if (held.failed_ns != 0 && !held.is_told)
    std::fprintf(
        stderr, "outcore: %s\n",
        base::system_error(
            result, "store what a process wrote to " + path_of(held.fd) + " that was killed",
            "it stays in the buffer " + buffer_.member().name() + ", and is tried again")
            .message.c_str());
  held.is_told = held.failed_ns != 0;
}

// 0; -errno; -EINTR: this process ends, and others go on with it.
int Heir::store(SharedFile& file, int fd) {
  Marks& marks = *file.marks();
  uint64_t group = 0, group_end = 0;
  for (uint64_t from = 0; marks.next_group(from, &group, &group_end); from = group_end)
    for (uint64_t page = group; page < group_end; ++page) {
      if (!marks.is_mine(page)) continue;
      if (is_ending_.load() != 0 && !Heirs::is_alone(buffer_.member())) return -EINTR;
      if (!marks.begin_storing(page)) continue;  // a writer that has come stores it
      const uint64_t bits = marks.own_bits();
      // As SharedWriter has it, but that nobody can write under these bits any more.
      int result = buffer_.member().wait_for_punchers() ? 0 : -ETIMEDOUT;
      if (result == 0 && marks.is_storing(page)) result = store_page(file, fd, page);
      marks.end_storing(page, result == 0 ? bits : 0);
      if (result != 0) return result;
    }
  marks.forget(marks.begin_to_forget());
  return 0;
}

// What is not in memory was marked, and not written.
int Heir::store_page(const SharedFile& file, int fd, uint64_t page) {
  const int frames = buffer_.member().frames_fd();
  const uint64_t at = file.frame_page(page) * kPage, offset = page * kPage;
  if (!buffer_.member().has_frames()) return -EBADF;
  const off_t data = ::lseek(frames, static_cast<off_t>(at), SEEK_DATA);
  if (data < 0 && errno != ENXIO) return -errno;
  if (data != static_cast<off_t>(at)) return 0;
  const uint64_t size = file.version().size_bytes;
  OC_CHECK(offset < size);
  const std::span<std::byte> bytes(bytes_.data(), std::min(size - offset, kPage));
  const int result = os::read_all(frames, at, bytes);
  return result != 0 ? result : os::write_all(fd, offset, bytes);
}

}  // namespace outcore::buffer
