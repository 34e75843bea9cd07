#include "bench/direct.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "bench/check.h"
#include "cli/text.h"

namespace outcore::bench {

Result<std::unique_ptr<DirectFile>> DirectFile::open(const std::string& path, bool is_writable,
                                                     unsigned depth, uint64_t unit_bytes) {
  BENCH_CHECK(depth != 0 && unit_bytes != 0);
  std::unique_ptr<DirectFile> direct(new DirectFile);
  direct->depth_ = depth;
  direct->unit_bytes_ = unit_bytes;
  const int flags = (is_writable ? O_RDWR : O_RDONLY) | O_DIRECT | O_CLOEXEC;
  direct->file_ = ::open(path.c_str(), flags);
  if (direct->file_ < 0)
    return cli::failure(errno, "open " + path + " with O_DIRECT",
                        "use a file system that takes it");
  direct->buffer_ = cli::TransferMemory(depth * unit_bytes);
  if (direct->buffer_.data() == nullptr)
    return cli::failure(ENOMEM, "allocate " + cli::format_bytes(depth * unit_bytes));
  if (const int code = io_uring_queue_init(depth, &direct->ring_, 0); code < 0)
    return cli::failure(code, "start io_uring", "leave out --memory direct where it is blocked");
  direct->has_ring_ = true;
  return direct;
}

DirectFile::~DirectFile() {
  if (has_ring_) io_uring_queue_exit(&ring_);
  if (file_ >= 0) close(file_);
}

int DirectFile::read(uint64_t offset, uint64_t size_bytes) {
  return transfer(offset, size_bytes, false);
}

int DirectFile::write(uint64_t offset, uint64_t size_bytes) {
  return transfer(offset, size_bytes, true);
}

int DirectFile::transfer(uint64_t offset, uint64_t size_bytes, bool is_write) {
  BENCH_CHECK(size_bytes != 0 && size_bytes <= unit_bytes_);
  io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
  BENCH_CHECK(entry != nullptr);
  const auto size = static_cast<unsigned>(size_bytes);
  if (is_write)
    io_uring_prep_write(entry, file_, buffer_.data(), size, offset);
  else
    io_uring_prep_read(entry, file_, buffer_.data(), size, offset);
  int code = io_uring_submit_and_wait(&ring_, 1);
  io_uring_cqe* done = nullptr;
  while ((code = io_uring_wait_cqe(&ring_, &done)) == -EINTR) continue;
  if (code < 0) return code;
  const int result = done->res;
  io_uring_cqe_seen(&ring_, done);
  if (result < 0) return result;
  return static_cast<unsigned>(result) == size ? 0 : -EIO;
}

int DirectFile::read_all(uint64_t count, uint64_t size_bytes,
                         const std::function<uint64_t(uint64_t)>& offset_of,
                         const std::function<void(uint64_t, std::span<const std::byte>)>& see) {
  BENCH_CHECK(size_bytes != 0 && size_bytes <= unit_bytes_);
  std::vector<uint64_t> index_of(depth_);  // of the transfer in each part of the buffer
  uint64_t next = 0, seen = 0;
  int first_error = 0;
  const auto begin = [&](unsigned part) {
    index_of[part] = next;
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    BENCH_CHECK(entry != nullptr);
    io_uring_prep_read(entry, file_, buffer_.data() + part * unit_bytes_,
                       static_cast<unsigned>(size_bytes), offset_of(next++));
    io_uring_sqe_set_data64(entry, part);
  };
  for (unsigned part = 0; part < depth_ && next < count; ++part) begin(part);
  while (seen < next) {
    int code = io_uring_submit_and_wait(&ring_, 1);
    if (code < 0 && code != -EINTR) return code;
    io_uring_cqe* done = nullptr;
    while (io_uring_peek_cqe(&ring_, &done) == 0) {
      const auto part = static_cast<unsigned>(io_uring_cqe_get_data64(done));
      BENCH_CHECK(part < depth_);
      const int result = done->res;
      io_uring_cqe_seen(&ring_, done);
      ++seen;
      if (result != static_cast<int>(size_bytes)) first_error = result < 0 ? result : -EIO;
      if (first_error == 0) see(index_of[part], {buffer_.data() + part * unit_bytes_, size_bytes});
      if (first_error == 0 && next < count) begin(part);
    }
  }
  return first_error;
}

}  // namespace outcore::bench
