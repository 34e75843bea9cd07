// DirectFile: O_DIRECT reads and writes through io_uring: the device's own limit. One thread each.
#pragma once

#include <liburing.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "cli/transfer_memory.h"
#include "outcore/result.h"

namespace outcore::bench {

class DirectFile {
 public:
  // `depth` transfers of at most `unit_bytes` (a multiple of 4096) in flight.
  static Result<std::unique_ptr<DirectFile>> open(const std::string& path, bool is_writable,
                                                  unsigned depth, uint64_t unit_bytes);
  ~DirectFile();
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;

  // Reads one unit, or writes back the bytes read last, and waits. 0 or -errno.
  int read(uint64_t offset, uint64_t size_bytes);
  int write(uint64_t offset, uint64_t size_bytes);
  std::span<std::byte> bytes() { return {buffer_.data(), unit_bytes_}; }

  // Reads the units at offset_of(0 … count - 1), `depth` at a time; see(index, bytes) in any order.
  int read_all(uint64_t count, uint64_t size_bytes,
               const std::function<uint64_t(uint64_t)>& offset_of,
               const std::function<void(uint64_t, std::span<const std::byte>)>& see);

 private:
  DirectFile() = default;
  int transfer(uint64_t offset, uint64_t size_bytes, bool is_write);
  int file_ = -1;
  unsigned depth_ = 1;
  uint64_t unit_bytes_ = 0;
  cli::TransferMemory buffer_;
  io_uring ring_{};
  bool has_ring_ = false;
};

}  // namespace outcore::bench
