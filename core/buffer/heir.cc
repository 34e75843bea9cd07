#include "core/buffer/heir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/buffer/buffer.h"
#include "core/buffer/heirs.h"
#include "core/buffer/shared_file.h"
#include "core/os/descriptor_place.h"
#include "core/os/file_calls.h"
#include "core/os/wait.h"

namespace outcore::buffer {
namespace {

constexpr uint64_t kPeriodNs = 100'000'000, kIdlePeriodNs = 1'000'000'000;
constexpr uint64_t kAgainNs = 1'000'000'000;   // after a store that failed
constexpr uint64_t kOthersNs = 5'000'000'000;  // for others who are just storing, at the end
constexpr size_t kHeldMax = 64;

// To write, from the first moment on: nobody may have a lease of it until all is stored. Not before
// it is known what it is: to open a terminal or a pipe has effects.
int open_of(int32_t process, int fd, const store::FileVersion& version) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(fd);
  struct stat about;
  const auto is_it = [&] {
    return S_ISREG(about.st_mode) && about.st_ino == version.inode &&
           about.st_dev == version.device;
  };
  if (::stat(path.c_str(), &about) != 0 || !is_it()) return -1;
  const int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (opened < 0 || (::fstat(opened, &about) == 0 && is_it())) return opened;
  ::close(opened);
  return -1;
}

}  // namespace

Status Heir::start() {
  try {
    const os::SignalBlock block;  // inherited: no signal of the program runs on our thread
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& e) {
    return base::system_error(e.code().value(), "start the thread that stores for others",
                              "raise ulimit -u");
  }
  return {};
}

Heir::~Heir() {
  if (thread_.joinable()) {
    tell_to_end();
    thread_.join();
  }
  OC_CHECK(held_.empty());
}

void Heir::tell_to_end() {
  buffer_.member().record().is_leaving.store(1, std::memory_order_seq_cst);
  is_ending_.store(1);
  Heirs::ring(buffer_.member());
}

// By the numbers that the process has them by: the member uses them.
bool Heir::fetch(const os::OwnTable& table) const {
  const Member& member = buffer_.member();
  return table.is_own() && table.fetch_as_it_is(member.file_fd()) &&
         table.fetch_as_it_is(member.frames_fd()) && table.fetch_as_it_is(member.marks_fd());
}

void Heir::run() {
  // Under `outcore run` one table of numbers is kept for the process, which a thread with a table
  // of its own would spoil.
  if (os::place_descriptor == nullptr) {
    const os::OwnTable table;
    table_ = &table;
    if (fetch(table)) return work();  // else the kernel, or a filter, refuses
  }
  buffer_.member().record().heir_answer.store(HeirAnswer::kNever);
}

void Heir::work() {
  Board& board = buffer_.member().board();
  for (bool is_last = false; !is_last;) {
    heard_ = board.heir_requests.load(std::memory_order_seq_cst);
    is_last = is_ending_.load() != 0;
    const bool is_any = board.written_files.load(std::memory_order_seq_cst) != 0;
    if (is_any || !held_.empty())
      look(is_last);
    else
      Heirs::note_heard(buffer_.member(), heard_);
    if (!is_last)
      os::wait_between_processes(&board.heir_requests, heard_, is_any ? kPeriodNs : kIdlePeriodNs);
  }
  while (!held_.empty()) release_descriptor(held_.begin()->first);
}

void Heir::look(bool is_last) {
  const Member& member = buffer_.member();
  acquire_descriptors();
  std::vector<uint32_t> indices;
  for (const auto& [index, held] : held_) indices.push_back(index);
  for (const uint32_t index : indices) {
    if (is_last && is_others_to_store(index)) continue;
    if (is_last) wait_for_others(index);
    const auto known = held_.find(index);  // while another is stored, files come and go
    const FileRecord& file = member.board().files[index];
    if (known == held_.end() || known->second.first_page != file.first_page ||
        file.is_written.load() == 0 || Marks::has_writer(member, file))
      continue;
    Held& held = known->second;
    if (held.failed_ns == 0 || is_last || os::now_ns() - held.failed_ns > kAgainNs)
      inherit(index, held);
    // A stopped member may have been in the way; there is no other time.
    constexpr int kTriesMax = 3;
    for (int tries = 1; is_last && tries < kTriesMax && file.is_written.load() != 0; ++tries)
      if (!Marks::has_writer(member, file)) inherit(index, held);
  }
}

void Heir::acquire_descriptors() {
  for (uint32_t i = 0; i < kFilesMax; ++i) {
    const FileRecord& file = buffer_.member().board().files[i];
    // Once nobody writes it together any more, anybody may change the file.
    const bool is_written = file.state.load() != FileState::kFree && file.is_written.load() != 0 &&
                            file.is_together.load() == 0;
    const auto known = held_.find(i);
    const bool is_held = known != held_.end();
    if (is_held && is_written && known->second.first_page == file.first_page) continue;
    if (is_held) release_descriptor(i);
    if (is_written) acquire_descriptor(i);
  }
  Heirs::note_heard(buffer_.member(), heard_);
}

void Heir::release_descriptor(uint32_t index) {
  const auto known = held_.find(index);
  OC_CHECK(known != held_.end());
  FileRecord& file = buffer_.member().board().files[index];
  if (file.first_page == known->second.first_page) Heirs::remove(file, buffer_.member().index());
  ::close(known->second.fd);
  held_.erase(known);
}

// A process that has been killed has no descriptors any more: then it cannot be had.
void Heir::acquire_descriptor(uint32_t index) {
  const Member& member = buffer_.member();
  FileRecord& file = member.board().files[index];
  for (uint32_t slot = 0; slot < kWritersMax && held_.size() < kHeldMax; ++slot) {
    const Writer writer(file.writers[slot].load());
    const int fd = file.writer_fds[slot].load() - 1;
    if (!writer.is_any() || fd < 0 || writer.index() >= kMembersMax || writer == member.as_writer())
      continue;
    Held held;
    held.first_page = file.first_page;
    held.fd = open_of(member.process_of(writer.index()), fd, file.version);
    if (held.fd < 0) continue;
    held_[index] = held;
    Heirs::add(file, member.index());
    // Or the record may be another file's by now.
    if (file.first_page == held.first_page && file.is_written.load() != 0) return;
    Heirs::remove(file, member.index());
    release_descriptor(index);
    return;
  }
}

// This process ends: those stay who have not said that they do not (~Heir), so one of two does it.
bool Heir::is_others_to_store(uint32_t index) const {
  const Member& member = buffer_.member();
  return Heirs::has_staying(member, member.board().files[index], member.index());
}

// One that ends, too, may be at it, and not come to its end.
void Heir::wait_for_others(uint32_t index) const {
  const Member& member = buffer_.member();
  const FileRecord& file = member.board().files[index];
  const uint64_t start_ns = os::now_ns();
  while (Marks::has_inheriting(member, file) && os::now_ns() - start_ns < kOthersNs) {
    os::pause(500'000);
  }
}

void Heir::inherit(uint32_t index, Held& held) {
  // The buffer owns this thread, and must not end in it.
  const std::shared_ptr<Buffer> buffer(std::shared_ptr<Buffer>(), &buffer_);
  const std::unique_ptr<SharedFile> file = SharedFile::inherit(buffer, index);
  if (file == nullptr) return;
  const int fd = held.fd;
  int result = 0;
  file->end_writing(fd, [&] {
    result = store(*file, index, fd);
    if (result == 0) file->marks()->note_all_stored();
    return result == 0;
  });
  const auto known = held_.find(index);
  if (known == held_.end()) return;
  const bool is_failed = result != 0 && result != -EINTR;
  if (is_failed && !known->second.is_reported) report_failure(known->second, result);
  known->second.failed_ns = is_failed ? os::now_ns() : 0;
  known->second.is_reported = is_failed;
}

// 0; -errno; -EINTR: this process ends, and others go on with it.
int Heir::store(SharedFile& file, uint32_t index, int fd) {
  Marks& marks = *file.marks();
  const Member& member = buffer_.member();
  const Marks::InHand in_hand(buffer_.member());
  Marks::Look look(marks, in_hand);
  uint64_t group = 0, group_end = 0;
  for (uint64_t from = 0; marks.next_group(from, &group, &group_end); from = group_end)
    for (uint64_t page = group; page < group_end; ++page) {
      if (!look.is_mine(page)) continue;
      if (is_ending_.load() != 0 && is_others_to_store(index)) return -EINTR;
      if (const uint32_t now = member.board().heir_requests.load(); now != heard_) {
        heard_ = now;  // somebody waits until its file is held
        acquire_descriptors();
      }
      if (!marks.begin_storing(page)) continue;  // a writer that has come stores it
      const uint64_t bits = marks.own_bits();
      // As SharedWriter has it, but that nobody can write under these bits any more.
      int result = member.wait_for_punchers(file.frame_page(page), 1) ? 0 : -ETIMEDOUT;
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
  const off_t data = ::lseek(frames, static_cast<off_t>(at), SEEK_DATA);
  if (data < 0 && errno != ENXIO) return -errno;
  if (data != static_cast<off_t>(at)) return 0;
  const uint64_t size = file.version().size_bytes;
  OC_CHECK(offset < size);
  const std::span<std::byte> bytes(bytes_.data(), std::min(size - offset, kPage));
  const int result = os::read_all(frames, at, bytes);
  return result != 0 ? result : os::write_all(fd, offset, bytes);
}

// On the process's standard error, which this thread does not have.
void Heir::report_failure(const Held& held, int error) const {
  std::error_code unknown;
  const std::string path =
      std::filesystem::read_symlink("/proc/thread-self/fd/" + std::to_string(held.fd), unknown);
  const std::string line =
      "outcore: " +
      base::system_error(error, "store what a process wrote to " + path + " that was killed",
                         "it stays in the buffer " + buffer_.member().name() +
                             " as long as that has members, and is tried again")
          .message +
      "\n";
  const int to = table_ == nullptr ? -1 : table_->fetch(STDERR_FILENO);
  if (to < 0) return;
  const ssize_t ignored = ::write(to, line.data(), line.size());
  static_cast<void>(ignored);
  ::close(to);
}

}  // namespace outcore::buffer
