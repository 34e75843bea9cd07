// BufferFile: the file that simulated processes share through a buffer, and the oracle that knows
// what each of its cells must hold. BufferStore: the store of one process on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/buffer/board.h"
#include "core/tests/sim/fibers.h"
#include "outcore/store.h"
#include "tests/folder.h"

namespace outcore::sim {

class BufferFile {
 public:
  static constexpr uint64_t kCellsOfPage = 2;
  struct Cell {
    uint64_t value = 0, changed_at = 0;  // number of the event
  };

  BufferFile(Fibers& fibers, uint64_t pages, Random& random);
  ~BufferFile();
  BufferFile(const BufferFile&) = delete;
  BufferFile& operator=(const BufferFile&) = delete;

  std::string path() const { return folder_ / "data"; }
  std::string folder() const { return folder_ / "buffers"; }
  uint64_t pages() const { return pages_; }
  uint64_t bytes() const { return pages_ * buffer::kPage - cut_; }
  uint64_t cells() const { return cells_.size(); }
  static uint64_t page_of(uint64_t cell) { return cell / kCellsOfPage; }
  static uint64_t offset_in_page(uint64_t cell) { return cell % kCellsOfPage == 0 ? 8 : 2056; }

  // A process reads these bytes of the cell, or writes it.
  void check_read(uint64_t cell, const std::byte* page, uint32_t process);
  void write(uint64_t cell, std::byte* page, uint64_t value);
  // What was written before the event is in the file.
  uint64_t events() const { return events_; }
  void check_stored(uint64_t first_page, uint64_t end_page, uint64_t before_event,
                    const char* after);

 private:
  static uint64_t offset_of(uint64_t cell) {
    return page_of(cell) * buffer::kPage + offset_in_page(cell);
  }
  Fibers& fibers_;
  const scene::Folder folder_;
  const uint64_t pages_, cut_;  // bytes that the last page lacks
  int fd_ = -1;
  uint64_t events_ = 0;
  std::vector<Cell> cells_;
};

class BufferStore final : public Store {
 public:
  struct Behaviour {
    uint64_t read_failures = 0, write_failures = 0;  // in thousandths
  };
  BufferStore(Fibers& fibers, int fd, uint64_t bytes, const Behaviour& behaviour)
      : fibers_(fibers), fd_(fd), bytes_(bytes), behaviour_(behaviour) {}

  uint64_t size_bytes() const override { return bytes_; }
  int read(uint64_t offset, std::span<std::byte> into) override;
  // Half a page at a time: who is killed meanwhile leaves some of it as it was.
  int write(uint64_t offset, std::span<const std::byte> from) override;
  StoreTraits traits() const override;
  std::string uri() const override { return "simulated:"; }

 private:
  Fibers& fibers_;
  const int fd_;
  const uint64_t bytes_;
  const Behaviour behaviour_;
};

}  // namespace outcore::sim
