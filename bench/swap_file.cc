#include "bench/swap_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/swap.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr std::string_view kPrefix = "outcore-bench-swap-";
constexpr uint64_t kPageBytes = 4096;

void take_away(const std::string& path) {
  ::swapoff(path.c_str());
  ::unlink(path.c_str());
}

// Swap files in force whose benchmark is gone.
void sweep() {
  std::ifstream swaps("/proc/swaps");
  for (std::string line; std::getline(swaps, line);) {
    const std::string path = line.substr(0, line.find_first_of(" \t"));
    const std::string name = std::filesystem::path(path).filename();
    if (!name.starts_with(kPrefix)) continue;
    const long id = std::strtol(name.c_str() + kPrefix.size(), nullptr, 10);
    if (id > 0 && ::kill(static_cast<pid_t>(id), 0) != 0 && errno == ESRCH) take_away(path);
  }
}

// What swapon(2) looks for in the first page (linux/swap.h, version 1).
std::array<char, kPageBytes> header(uint64_t size_bytes) {
  std::array<char, kPageBytes> page{};
  const uint32_t version = 1, last_page = static_cast<uint32_t>(size_bytes / kPageBytes - 1);
  std::memcpy(page.data() + 1024, &version, sizeof version);
  std::memcpy(page.data() + 1028, &last_page, sizeof last_page);
  static constexpr std::string_view kMagic = "SWAPSPACE2";
  std::memcpy(page.data() + kPageBytes - kMagic.size(), kMagic.data(), kMagic.size());
  return page;
}

Status write_file(const std::string& path, uint64_t size_bytes) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return cli::failure(errno, "make " + path);
  const auto page = header(size_bytes);
  Status status;
  if (const int code = ::posix_fallocate(file, 0, static_cast<off_t>(size_bytes)); code != 0)
    status = cli::failure(code, "reserve " + cli::format_bytes(size_bytes) + " of swap at " + path,
                          "use a --dir with more room");
  else if (::pwrite(file, page.data(), page.size(), 0) != static_cast<ssize_t>(page.size()) ||
           ::fsync(file) != 0)
    status = cli::failure(errno, "write " + path);
  ::close(file);
  return status;
}

}  // namespace

Result<SwapFile> SwapFile::make(const std::string& dir, uint64_t size_bytes) {
  if (::geteuid() != 0)
    return cli::failure(EPERM, "switch on swap in " + dir,
                        "run as root, or leave out --memory swap");
  sweep();
  size_bytes = (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes + kPageBytes;
  const std::string path = dir + "/" + std::string(kPrefix) + std::to_string(::getpid());
  SwapFile swap(path);  // goes with its file whatever happens
  if (Status s = write_file(path, size_bytes); !s) return s.error();
  constexpr int kBeforeAllOthers = SWAP_FLAG_PREFER | 32767;
  if (::swapon(path.c_str(), kBeforeAllOthers) != 0)
    return cli::failure(errno, "switch on swap at " + path,
                        "use a --dir on ext4 or xfs, or leave out --memory swap");
  return swap;
}

SwapFile::SwapFile(SwapFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}

SwapFile& SwapFile::operator=(SwapFile&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

SwapFile::~SwapFile() {
  if (!path_.empty()) take_away(path_);
}

}  // namespace outcore::bench
