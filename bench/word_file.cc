#include "bench/word_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "bench/check.h"
#include "bench/medium.h"
#include "bench/options.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kTransferBytesMax = uint64_t{8} << 20;
constexpr const char* kDirectRemedy = "use a file system that takes it, or leave out two-pass";

// `move(memory, bytes, offset)` is pread or pwrite. 0 or what the system said.
template <typename Byte, typename Move>
int move_all(Byte* memory, uint64_t size_bytes, uint64_t offset, const Move& move) {
  for (uint64_t at = 0; at < size_bytes;) {
    const ssize_t n = move(memory + at, std::min(size_bytes - at, kTransferBytesMax),
                           static_cast<off_t>(offset + at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    // What O_DIRECT leaves off in a unit is the end of the file.
    if (n == 0 || static_cast<uint64_t>(n) % kUnitBytes != 0) return EIO;
    at += static_cast<uint64_t>(n);
  }
  return 0;
}

void check_units(uint64_t first, std::span<const uint64_t> words) {
  BENCH_CHECK(first % kUnitWords == 0 && words.size() % kUnitWords == 0);
  BENCH_CHECK(reinterpret_cast<uintptr_t>(words.data()) % kUnitBytes == 0);
}

}  // namespace

Result<std::unique_ptr<WordFile>> WordFile::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
  if (file < 0) return cli::failure(errno, "open " + path + " with O_DIRECT", kDirectRemedy);
  return std::unique_ptr<WordFile>(new WordFile(file, path));
}

Result<std::unique_ptr<WordFile>> WordFile::make_unnamed(const std::string& folder,
                                                         uint64_t size_bytes) {
  std::string path = folder + "/outcore-bench-runs-XXXXXX";
  const int file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) return cli::failure(errno, "make a file for sorted runs in " + folder);
  ::unlink(path.c_str());
  std::unique_ptr<WordFile> runs(new WordFile(file, "the sorted runs in " + folder));
  if (::fcntl(file, F_SETFL, O_DIRECT) != 0)
    return cli::failure(errno, "use O_DIRECT in " + folder, kDirectRemedy);
  // Reserved, so that those who write side by side do not wait for the end of the file to move.
  const auto size = static_cast<off_t>(size_bytes);
  if (::fallocate(file, 0, 0, size) != 0 && (errno != EOPNOTSUPP || ::ftruncate(file, size) != 0))
    return cli::failure(
        errno, "reserve " + cli::format_bytes(size_bytes) + " for sorted runs in " + folder,
        kRoomRemedy);
  return runs;
}

WordFile::~WordFile() { ::close(file_); }

Status WordFile::read(uint64_t first, std::span<uint64_t> into) {
  check_units(first, into);
  units_read_ += into.size() / kUnitWords;
  const auto bytes = std::as_writable_bytes(into);
  const int code =
      move_all(bytes.data(), bytes.size(), first * sizeof(uint64_t),
               [this](auto* p, size_t n, off_t at) { return ::pread(file_, p, n, at); });
  return code == 0 ? Status() : cli::failure(code, "read " + name_);
}

Status WordFile::write(uint64_t first, std::span<const uint64_t> from) {
  check_units(first, from);
  const auto bytes = std::as_bytes(from);
  const int code =
      move_all(bytes.data(), bytes.size(), first * sizeof(uint64_t),
               [this](auto* p, size_t n, off_t at) { return ::pwrite(file_, p, n, at); });
  return code == 0 ? Status() : cli::failure(code, "write " + name_);
}

}  // namespace outcore::bench
