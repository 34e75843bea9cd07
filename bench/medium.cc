#include "bench/medium.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "bench/text.h"
#include "outcore/store.h"

namespace outcore::bench {
namespace {

class FileMedium : public Medium {
 public:
  FileMedium(int file, std::string path, uint64_t size_bytes)
      : file_(file), path_(std::move(path)), size_bytes_(size_bytes) {}
  ~FileMedium() override { close(file_); }

  Status read(uint64_t offset, std::span<std::byte> into) override {
    return move(offset, into.data(), into.size(),
                [this](auto* p, size_t n, off_t at) { return pread(file_, p, n, at); });
  }
  Status write(uint64_t offset, std::span<const std::byte> from) override {
    return move(offset, from.data(), from.size(),
                [this](auto* p, size_t n, off_t at) { return pwrite(file_, p, n, at); });
  }
  Status sync() override {
    return fdatasync(file_) == 0 ? Status() : Status(failure(errno, "sync " + path_));
  }
  uint64_t size_bytes() const override { return size_bytes_; }

 private:
  template <typename Byte, typename Call>
  Status move(uint64_t offset, Byte* bytes, size_t size, Call call) {
    while (size != 0) {
      const ssize_t n = call(bytes, size, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return failure(n < 0 ? errno : EIO, "read or write " + path_);
      bytes += n;
      offset += static_cast<uint64_t>(n);
      size -= static_cast<size_t>(n);
    }
    return {};
  }
  int file_;
  std::string path_;
  uint64_t size_bytes_;
};

class StoreMedium : public Medium {
 public:
  explicit StoreMedium(std::shared_ptr<Store> store) : store_(std::move(store)) {}
  Status read(uint64_t offset, std::span<std::byte> into) override {
    return told(store_->read(offset, into), "read ");
  }
  Status write(uint64_t offset, std::span<const std::byte> from) override {
    return told(store_->write(offset, from), "write ");
  }
  Status sync() override { return told(store_->sync(), "sync "); }
  uint64_t size_bytes() const override { return store_->size_bytes(); }

 private:
  Status told(int code, const char* verb) {
    return code == 0 ? Status() : Status(failure(code, verb + store_->uri()));
  }
  std::shared_ptr<Store> store_;
};

Result<std::unique_ptr<Medium>> open_file(const std::string& path, uint64_t size_bytes,
                                          bool may_create) {
  const int flags = (may_create ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC;
  const int file = open(path.c_str(), flags, 0644);
  if (file < 0) return failure(errno, "open " + path, may_create ? "name another with --dir" : "");
  auto medium = std::make_unique<FileMedium>(file, path, size_bytes);
  struct stat facts {};
  if (fstat(file, &facts) != 0) return failure(errno, "stat " + path);
  uint64_t present = static_cast<uint64_t>(facts.st_size);
  if (S_ISBLK(facts.st_mode)) present = static_cast<uint64_t>(lseek(file, 0, SEEK_END));
  if (size_bytes > present) {
    if (!may_create || S_ISBLK(facts.st_mode))
      return failure(EINVAL,
                     format("open %s: %s are asked for and it has %s", path.c_str(),
                            format_bytes(size_bytes).c_str(), format_bytes(present).c_str()));
    // Reserved, so that a full device is an error here and not a signal in a rival.
    if (const int code = posix_fallocate(file, 0, static_cast<off_t>(size_bytes)); code != 0)
      return failure(code, "reserve " + format_bytes(size_bytes) + " for " + path);
  }
  if (size_bytes == 0) return std::unique_ptr<Medium>(new FileMedium(dup(file), path, present));
  if (may_create && S_ISREG(facts.st_mode) && ftruncate(file, static_cast<off_t>(size_bytes)) != 0)
    return failure(errno, "resize " + path);
  return std::unique_ptr<Medium>(std::move(medium));
}

std::string scheme_of(const std::string& uri) {
  const size_t colon = uri.find(':');
  return colon == std::string::npos || uri.find('/') < colon ? "" : uri.substr(0, colon);
}

}  // namespace

Result<std::unique_ptr<Medium>> open_medium(const std::string& uri, uint64_t size_bytes,
                                            bool may_create) {
  if (const std::string path = plain_path(uri); !path.empty())
    return open_file(path, size_bytes, may_create);
  OpenOptions options;
  options.is_writable = may_create;
  options.may_create = may_create;
  options.size_bytes = size_bytes;
  Result<std::shared_ptr<Store>> store = open_store(uri, options);
  if (!store) return store.error();
  return std::unique_ptr<Medium>(new StoreMedium(std::move(store).value()));
}

std::string path_of(const std::string& uri) {
  const std::string scheme = scheme_of(uri);
  std::string rest = scheme.empty() ? uri : uri.substr(scheme.size() + 1);
  if (!scheme.empty()) rest = rest.substr(0, rest.find('?'));
  return rest;
}

std::string plain_path(const std::string& uri) {
  const std::string scheme = scheme_of(uri);
  return scheme.empty() || scheme == "file" ? path_of(uri) : "";
}

bool is_volatile(const std::string& uri) {
  const std::string scheme = scheme_of(uri);
  return scheme == "memory" || scheme == "scratch";
}

void forget(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    for (const auto& entry : std::filesystem::directory_iterator(path, ignored))
      if (entry.is_regular_file(ignored)) forget(entry.path());
    return;
  }
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  fdatasync(file);
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  close(file);
}

Device device_of(const std::string& path) {
  Device device;
  struct stat facts {};
  std::string at = path;
  while (stat(at.c_str(), &facts) != 0) {
    const std::string parent = std::filesystem::path(at).parent_path();
    if (parent.empty() || parent == at) return device;
    at = parent;
  }
  const dev_t id = S_ISBLK(facts.st_mode) ? facts.st_rdev : facts.st_dev;
  const std::string link = format("/sys/dev/block/%u:%u", major(id), minor(id));
  std::error_code code;
  const std::filesystem::path node = std::filesystem::canonical(link, code);
  if (code) {
    struct statfs system {};
    static constexpr long kTmpfs = 0x01021994;
    device.name = statfs(at.c_str(), &system) == 0 && static_cast<long>(system.f_type) == kTmpfs
                      ? "tmpfs"
                      : format("device %u:%u", major(id), minor(id));
    return device;
  }
  device.name = node.filename();
  for (const auto& queue : {node / "queue", node.parent_path() / "queue"})
    if (std::ifstream file(queue / "read_ahead_kb"); file >> device.read_ahead_kb) break;
  return device;
}

}  // namespace outcore::bench
