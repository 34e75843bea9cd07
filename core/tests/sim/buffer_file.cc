#include "core/tests/sim/buffer_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/os/file_calls.h"

namespace outcore::sim {

using buffer::kPage;

BufferFile::BufferFile(Fibers& fibers, uint64_t pages, Random& random)
    : fibers_(fibers),
      pages_(pages),
      cut_(random.chance(500) ? random.below(2000) : 0),
      cells_(pages * kCellsOfPage) {
  fd_ = ::open(path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd_ < 0 || ::ftruncate(fd_, static_cast<off_t>(bytes())) != 0) std::abort();
  for (uint64_t i = 0; i < cells_.size(); ++i) {
    if (i / 16 % 4 == 0) continue;  // holes
    cells_[i].value = random.next();
    if (os::write_all(fd_, offset_of(i), std::as_bytes(std::span(&cells_[i].value, 1))) != 0)
      std::abort();
  }
}

BufferFile::~BufferFile() { ::close(fd_); }

void BufferFile::check_read(uint64_t cell, const std::byte* page, uint32_t process) {
  uint64_t seen = 0;
  std::memcpy(&seen, page + offset_in_page(cell), sizeof seen);
  if (seen == cells_[cell].value) return;
  fibers_.fail("process " + std::to_string(process) + " reads " + std::to_string(seen) +
               " in cell " + std::to_string(cell) + " of page " + std::to_string(page_of(cell)) +
               ", but " + std::to_string(cells_[cell].value) + " was written");
}

void BufferFile::write(uint64_t cell, std::byte* page, uint64_t value) {
  cells_[cell] = {value, ++events_};
  std::memcpy(page + offset_in_page(cell), &value, sizeof value);
}

void BufferFile::check_stored(uint64_t first_page, uint64_t end_page, uint64_t before_event,
                              const char* after) {
  fibers_.without_points([&] {
    for (uint64_t i = first_page * kCellsOfPage; i < end_page * kCellsOfPage; ++i) {
      if (cells_[i].changed_at > before_event) continue;
      uint64_t stored = 0;
      const int result =
          os::read_all(fd_, offset_of(i), std::as_writable_bytes(std::span(&stored, 1)));
      if (result == 0 && stored == cells_[i].value) continue;
      fibers_.fail(std::string("after ") + after + " the file has " + std::to_string(stored) +
                   " in cell " + std::to_string(i) + " of page " + std::to_string(page_of(i)) +
                   ", but " + std::to_string(cells_[i].value) + " was written");
    }
  });
}

int BufferStore::read(uint64_t offset, std::span<std::byte> into) {
  for (uint64_t at = 0; at < into.size();) {
    const uint64_t size = std::min<uint64_t>(kPage, into.size() - at);
    fibers_.step("reads the file", (offset + at) / kPage);
    if (fibers_.random().chance(behaviour_.read_failures)) return -EIO;
    if (const int result = os::read_all(fd_, offset + at, into.subspan(at, size)); result != 0)
      return result;
    at += size;
  }
  return 0;
}

int BufferStore::write(uint64_t offset, std::span<const std::byte> from) {
  for (uint64_t at = 0; at < from.size();) {
    const uint64_t size = std::min<uint64_t>(kPage / 2, from.size() - at);
    fibers_.step("writes the file", (offset + at) / kPage);
    if (fibers_.random().chance(behaviour_.write_failures)) return -EIO;
    if (const int result = os::write_all(fd_, offset + at, from.subspan(at, size)); result != 0)
      return result;
    at += size;
  }
  return 0;
}

StoreTraits BufferStore::traits() const {
  StoreTraits traits;
  traits.is_fault_safe = true;
  traits.can_read_while_written = true;
  return traits;
}

}  // namespace outcore::sim
