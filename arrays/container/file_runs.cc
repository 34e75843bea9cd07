// How runs of bytes are transferred between memory and a file. See file_storage.h.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

#include "arrays/container/file_storage.h"
#include "arrays/container/workers.h"
#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/file_calls.h"
#include "core/os/transfer_buffer.h"

namespace outcore::arrays {
namespace {

// What is written past the page cache consists of whole folios. A part of one would have neighbours
// in the page cache, and a large folio written back later would overwrite our bytes with old ones.
constexpr uint64_t kFolioBytes = base::kHugePage;
constexpr uint64_t kLongBytes = 4 << 20;     // so long a run is written past the page cache
constexpr uint64_t kMemoryBytes = 64 << 10;  // shorter runs are written through a mapping
constexpr uint64_t kBlockBytes = 256 << 10;  // of short runs, read by one call
constexpr uint64_t kGapBytes = 16 << 10;     // to read such a gap costs less than another call
constexpr uint64_t kSparseness = 16;  // if a box has less of its span, it is touched by small pages

// Runs with only small gaps between them: as many of the innermost loops as have such gaps.
struct Group {
  uint64_t runs = 1, size_bytes = 0;
};

Group group_of(const Runs& all) {
  Group group{1, all.run_bytes};
  for (size_t d = all.loops.size(); d-- > 0;) {
    const Loop& loop = all.loops[d];
    if (loop.count == 1) continue;
    if (loop.there < group.size_bytes || loop.there - group.size_bytes > kGapBytes) break;
    group.size_bytes += (loop.count - 1) * loop.there;
    group.runs *= loop.count;
  }
  return group;
}

}  // namespace

// 0 or an errno. EIO: the file ends before; there are no short transfers.
int FileStorage::all_of(Way way, int fd, uint64_t offset, std::byte* bytes,
                        uint64_t size_bytes) const {
  OC_ASSERT(fd >= 0);
  return -(way == Way::kRead ? os::read_all(fd, offset, {bytes, size_bytes})
                             : os::write_all(fd, offset, {bytes, size_bytes}));
}

// REQUIRES: offset is a multiple of kFolioBytes. Reads go through the page cache: the kernel's
// readahead is as fast as the disk, and bytes in the page cache only have to be copied.
int FileStorage::piece(Way way, uint64_t offset, std::byte* bytes, uint64_t size_bytes,
                       std::byte* buffer) {
  OC_CHECK(offset % kFolioBytes == 0 && size_bytes <= kPieceBytes);
  if (way == Way::kRead) {
    static_cast<void>(
        ::readahead(fd_, static_cast<off_t>(offset), static_cast<size_t>(size_bytes)));
    return all_of(way, fd_, offset, bytes, size_bytes);
  }
  const uint64_t direct = direct_fd_ < 0 ? 0 : base::round_down(size_bytes, kFolioBytes);
  if (direct > 0) {
    std::memcpy(buffer, bytes, direct);
    const int error = all_of(way, direct_fd_, offset, buffer, direct);
    if (error != 0) return error;
  }
  if (direct == size_bytes) return 0;
  const int error = all_of(way, fd_, offset + direct, bytes + direct, size_bytes - direct);
  if (error == 0 && direct_fd_ < 0)  // so that the disk begins at once
    static_cast<void>(::sync_file_range(fd_, static_cast<off_t>(offset),
                                        static_cast<off_t>(size_bytes), SYNC_FILE_RANGE_WRITE));
  return error;
}

int FileStorage::long_run(Way way, uint64_t offset, std::byte* bytes, uint64_t size_bytes) {
  const uint64_t head = std::min(base::round_up(offset, kFolioBytes) - offset, size_bytes);
  if (head > 0)
    if (const int error = all_of(way, fd_, offset, bytes, head); error != 0) return error;
  offset += head, bytes += head, size_bytes -= head;
  const uint64_t pieces = (size_bytes + kPieceBytes - 1) / kPieceBytes;
  std::atomic<uint64_t> next{0};
  std::atomic<int> first_error{0};
  const auto work = [&] {
    os::TransferBuffer buffer;
    if (way == Way::kWrite && !buffer.allocate(kPieceBytes)) {
      first_error = ENOMEM;
      return;
    }
    for (uint64_t i = next++; i < pieces && first_error == 0; i = next++) {
      const uint64_t at = i * kPieceBytes, size = std::min(kPieceBytes, size_bytes - at);
      const int error = piece(way, offset + at, bytes + at, size, buffer.data());
      int none = 0;
      if (error != 0) first_error.compare_exchange_strong(none, error);
    }
  };
  run_by_workers(std::min<uint64_t>(pieces, kWorkersMax), work);
  return first_error;
}

// One call reads rows together with the small gaps between them, into a buffer that stays in the
// processor's cache, from which the rows are copied. (Through a mapping, whose faults bring huge
// pages, it would be as fast, or half as fast where a hypervisor provides the pages; and an error
// of the disk would raise SIGBUS.)
int FileStorage::read_short_runs(uint64_t first, const Runs& runs, std::byte* into) {
  const Group group = group_of(runs);
  if (group.runs == 1)
    return for_each_run(runs, [&](uint64_t there, uint64_t here) {
      return all_of(Way::kRead, fd_, first + there, into + here, runs.run_bytes);
    });
  const uint64_t block_bytes = std::min(kBlockBytes, group.size_bytes);
  const std::unique_ptr<std::byte[]> block(new (std::nothrow) std::byte[block_bytes]);
  if (block == nullptr) return ENOMEM;
  uint64_t begin = 0, end = 0, group_end = 0, count = 0;  // what the buffer contains
  return for_each_run(runs, [&](uint64_t there, uint64_t here) {
    uint64_t at = first + there, rest = runs.run_bytes;
    if (count++ % group.runs == 0) begin = end = at, group_end = at + group.size_bytes;
    while (rest > 0) {
      if (at >= end) {
        begin = at;
        end = std::min(at + block_bytes, group_end);
        const int error = all_of(Way::kRead, fd_, begin, block.get(), end - begin);
        if (error != 0) return error;
      }
      OC_CHECK(at >= begin && end - begin <= block_bytes);
      const uint64_t part = std::min(rest, end - at);
      OC_ASSERT(part != 0);
      std::memcpy(into + here, block.get() + (at - begin), part);
      at += part, here += part, rest -= part;
    }
    return 0;
  });
}

// Writes through a mapping, a window at a time: no system call for each run, and no byte is written
// that is not part of a run.
int FileStorage::write_short_runs(uint64_t first, const Runs& runs, const std::byte* from) {
  const bool is_dense = runs.bytes() >= runs.span_bytes() / kSparseness;
  FileWindow window(fd_, is_dense, size_bytes());
  return for_each_run(runs, [&](uint64_t there, uint64_t here) {
    std::byte* at = nullptr;
    if (const int error = window.reach(first + there, runs.run_bytes, &at); error != 0)
      return error;
    std::memcpy(at, from + here, runs.run_bytes);
    if (!is_dense) return 0;
    const int error = writeback_.note_written(fd_, first + there, window);
    if (error != 0) lost_sync_ = error;
    return error;
  });
}

int FileStorage::short_runs(Way way, uint64_t first, const Runs& runs, std::byte* bytes) {
  if (runs.run_bytes < kMemoryBytes) {
    if (way == Way::kRead) return read_short_runs(first, runs, bytes);
    if (has_room()) return write_short_runs(first, runs, bytes);
  }
  return for_each_run(runs, [&](uint64_t there, uint64_t here) {
    return all_of(way, fd_, first + there, bytes + here, runs.run_bytes);
  });
}

Status FileStorage::all_runs(Way way, uint64_t first, const Runs& runs, std::byte* bytes) {
  OC_ASSERT(runs.run_bytes != 0);
  if (memory_ != nullptr) return runs_of_memory(way, first, runs, bytes);
  const int error = runs.run_bytes < kLongBytes
                        ? short_runs(way, first, runs, bytes)
                        : for_each_run(runs, [&](uint64_t there, uint64_t here) {
                            return long_run(way, first + there, bytes + here, runs.run_bytes);
                          });
  if (error == 0) return {};
  return failed(error, way == Way::kRead ? "read" : "write", first + runs.there, runs.span_bytes());
}

Status FileStorage::read_runs(uint64_t first, const Runs& runs, std::byte* into) {
  return all_runs(Way::kRead, first, runs, into);
}

Status FileStorage::write_runs(uint64_t first, const Runs& runs, const std::byte* from) {
  return all_runs(Way::kWrite, first, runs, const_cast<std::byte*>(from));
}

}  // namespace outcore::arrays
