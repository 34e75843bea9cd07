#include "core/buffer/shared_file.h"

#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/buffer/buffer_file.h"
#include "core/os/wait.h"

namespace outcore::buffer {
namespace {

// Files begin at such pages: their neighbours in the memory file are others'.
constexpr uint64_t kAlignPages = 512;

// Whether some member that has the file lives; who joins it shares what that one knows.
bool is_lived_in(const Member& member, const FileRecord& file) {
  for (uint32_t i = 0; i < kMembersMax; ++i)
    if ((file.members[i / 64].load() >> (i % 64) & 1) != 0 && member.is_alive(i)) return true;
  return false;
}

// REQUIRES: the lock of files.
FileRecord* find(const Member& member, const store::FileVersion& version) {
  for (FileRecord& file : member.board().files)
    if (file.state.load() == FileState::kOpen && file.version == version &&
        is_lived_in(member, file))
      return &file;
  return nullptr;
}

FileRecord* make(const Member& member, const store::FileVersion& version) {
  Board& board = member.board();
  for (FileRecord& file : board.files) {
    if (file.state.load() != FileState::kFree) continue;
    file.pages = base::round_up(version.size_bytes, kPage) / kPage;
    const uint64_t place = base::round_up(file.pages + 1, kAlignPages);
    if (board.next_page.load() + place > kFramesBytes / kPage) return nullptr;
    file.version = version;
    file.first_page = board.next_page.fetch_add(place);
    for (std::atomic<uint64_t>& bits : file.members) bits.store(0);
    file.state.store(FileState::kOpen);
    return &file;
  }
  return nullptr;
}

uint64_t bit_of(uint32_t member) { return uint64_t{1} << (member % 64); }

}  // namespace

Result<std::unique_ptr<SharedFile>> SharedFile::open(std::shared_ptr<Buffer> buffer,
                                                     const store::FileVersion& version) {
  OC_CHECK(version.size_bytes != 0);
  Member& member = buffer->member();
  const Member::FilesLock lock(member);
  if (!lock.is_held())
    return base::system_error(ETIMEDOUT, "put a file into the buffer " + member.name(),
                              "a member of it seems to stand still");
  FileRecord* file = find(member, version);
  if (file == nullptr) file = make(member, version);
  if (file == nullptr)
    return base::system_error(ENFILE, "put a file into the buffer " + member.name(),
                              "it has had too many files, or too large ones");
  const uint32_t own = member.index();
  if ((file->members[own / 64].fetch_or(bit_of(own)) & bit_of(own)) != 0)
    return Error{EBUSY, "put a file into the buffer " + member.name() +
                            ": another runtime of this process has it there"};
  const auto index = static_cast<uint32_t>(file - member.board().files.data());
  OC_CHECK(index < kFilesMax);
  OC_CHECK(file->first_page % kAlignPages == 0 && file->pages != 0);
  return std::unique_ptr<SharedFile>(
      new SharedFile(std::move(buffer), version, index, file->first_page, file->pages));
}

SharedFile::~SharedFile() {
  OC_CHECK(inside_.load() == 0);
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
  OC_ASSERT(page < pages_);
  return first_page_ + page;
}

void SharedFile::close_to_others() {
  FileState open = FileState::kOpen;
  buffer_->member().board().files[index_].state.compare_exchange_strong(open, FileState::kClosed);
}

bool SharedFile::block(uint64_t wait_ns) {
  const uint64_t start_ns = os::now_ns();
  blocks_.fetch_add(1, std::memory_order_seq_cst);
  while (inside_.load(std::memory_order_seq_cst) != 0) {
    if (os::now_ns() - start_ns > wait_ns) {
      unblock();
      return false;
    }
    os::yield();
  }
  return true;
}

}  // namespace outcore::buffer
