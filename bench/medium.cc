#include "bench/medium.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "bench/clock.h"
#include "cli/text.h"
#include "outcore/store.h"
#include "outcore/store_catalog.h"
#include "outcore/store_kind.h"

namespace outcore::bench {
namespace {

class FileMedium : public Medium {
 public:
  FileMedium(int file, std::string path) : file_(file), path_(std::move(path)) {}
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
    return fdatasync(file_) == 0 ? Status() : Status(cli::failure(errno, "sync " + path_));
  }
  uint64_t size_bytes() const override { return size_bytes_; }
  void set_size(uint64_t size_bytes) { size_bytes_ = size_bytes; }

 private:
  template <typename Byte, typename Call>
  Status move(uint64_t offset, Byte* bytes, size_t size, Call call) {
    while (size != 0) {
      const ssize_t n = call(bytes, size, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return cli::failure(n < 0 ? errno : EIO, "read or write " + path_);
      bytes += n;
      offset += static_cast<uint64_t>(n);
      size -= static_cast<size_t>(n);
    }
    return {};
  }
  int file_;
  std::string path_;
  uint64_t size_bytes_ = 0;
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
    return code == 0 ? Status() : Status(cli::failure(code, verb + store_->uri()));
  }
  std::shared_ptr<Store> store_;
};

// Reserves all bytes, so that a full device is an error here and not a signal in a rival. What was
// had of them is given back if it is not all.
Status reserve(int file, const struct stat& before, uint64_t size_bytes, const std::string& path,
               const std::string& remedy) {
  const int code = posix_fallocate(file, 0, static_cast<off_t>(size_bytes));
  if (code == 0) return {};
  const timespec times[2] = {before.st_atim, before.st_mtim};
  if (ftruncate(file, before.st_size) == 0) (void)futimens(file, times);
  struct statvfs system {};
  const bool is_full = (code == ENOSPC || code == EDQUOT) && fstatvfs(file, &system) == 0;
  const uint64_t free_bytes = uint64_t{system.f_bavail} * system.f_frsize;
  return cli::failure(code, "reserve " + cli::format_bytes(size_bytes) + " for " + path,
                      (is_full ? cli::format_bytes(free_bytes) + " are free: " : "") + remedy);
}

// The descriptor, or -1 and errno. `is_new`: this call made it.
int open_or_make(const std::string& path, bool may_create, bool& is_new) {
  const int flags = (may_create ? O_RDWR : O_RDONLY) | O_CLOEXEC;
  const int file = open(path.c_str(), flags);
  if (file >= 0 || errno != ENOENT || !may_create) return file;
  is_new = true;
  return open(path.c_str(), flags | O_CREAT, 0644);
}

Result<std::unique_ptr<Medium>> open_file(const std::string& path, uint64_t size_bytes,
                                          bool may_create, const std::string& room_remedy) {
  bool is_new = false;
  const int file = open_or_make(path, may_create, is_new);
  if (file < 0)
    return cli::failure(errno, "open " + path,
                        may_create ? "name a place that can be written" : "check the name");
  auto medium = std::make_unique<FileMedium>(file, path);
  struct stat before {};
  if (fstat(file, &before) != 0) return cli::failure(errno, "look at " + path);
  uint64_t present = static_cast<uint64_t>(before.st_size);
  if (S_ISBLK(before.st_mode)) present = static_cast<uint64_t>(lseek(file, 0, SEEK_END));
  if (size_bytes > present) {
    if (!may_create || S_ISBLK(before.st_mode))
      return Error{EINVAL, cli::format("open %s: it has %s, and %s are asked for: ask for less",
                                       path.c_str(), cli::format_bytes(present).c_str(),
                                       cli::format_bytes(size_bytes).c_str())};
    if (Status s = reserve(file, before, size_bytes, path, room_remedy); !s) {
      if (is_new) unlink(path.c_str());
      return s.error();
    }
  }
  if (size_bytes != 0 && may_create && S_ISREG(before.st_mode) &&
      ftruncate(file, static_cast<off_t>(size_bytes)) != 0)
    return cli::failure(errno, "resize " + path);
  medium->set_size(size_bytes == 0 ? present : size_bytes);
  return std::unique_ptr<Medium>(std::move(medium));
}

// In lower case; empty if the text is a path. As Outcore tells them apart: letters, and then also
// digits and + - ., before the first colon.
std::string scheme_of(const std::string& uri) {
  std::string scheme;
  for (const char c : uri) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == ':') return scheme;
    const bool is_later = std::isdigit(byte) != 0 || c == '+' || c == '-' || c == '.';
    if (std::isalpha(byte) == 0 && (scheme.empty() || !is_later)) return {};
    scheme += static_cast<char>(std::tolower(byte));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Medium>> open_medium(const std::string& uri, uint64_t size_bytes,
                                            bool may_create, const std::string& room_remedy) {
  if (const std::string path = plain_path(uri); !path.empty())
    return open_file(path, size_bytes, may_create, room_remedy);
  OpenOptions options;
  options.is_writable = may_create;
  options.may_create = may_create;
  options.size_bytes = size_bytes;
  Result<std::shared_ptr<Store>> store = open_store(uri, options);
  if (!store) return store.error();
  return std::unique_ptr<Medium>(new StoreMedium(std::move(store).value()));
}

namespace {

constexpr uint64_t kMediumStepBytes = uint64_t{8} << 20;

}  // namespace

Status read_all(Medium& medium, std::span<std::byte> into) {
  for (uint64_t at = 0; at < into.size(); at += kMediumStepBytes) {
    const auto step = into.subspan(at, std::min(kMediumStepBytes, into.size() - at));
    if (Status s = medium.read(at, step); !s) return s;
  }
  return {};
}

Status write_all(Medium& medium, std::span<const std::byte> from) {
  for (uint64_t at = 0; at < from.size(); at += kMediumStepBytes) {
    const auto step = from.subspan(at, std::min(kMediumStepBytes, from.size() - at));
    if (Status s = medium.write(at, step); !s) return s;
  }
  return {};
}

Status check_store(const std::string& uri) {
  static constexpr std::string_view kSchemes[] = {"",       "file",  "sparse", "scratch",
                                                  "memory", "redis", "rbd"};
  const std::string scheme = scheme_of(uri);
  if (std::find(std::begin(kSchemes), std::end(kSchemes), scheme) == std::end(kSchemes))
    return Error{EINVAL, "store '" + without_password(uri) + "': scheme '" + scheme +
                             "' is unknown: use a path, file:PATH, sparse:DIR, "
                             "redis://HOST:PORT/NAME or rbd://POOL/IMAGE"};
  if (is_volatile(uri))
    return Error{EINVAL, "store " + uri +
                             " dies with its process: use one that stays, as file:PATH or "
                             "sparse:DIR"};
  // An empty folder becomes a store when it is opened for writing.
  std::error_code ignored;
  if (scheme == "sparse" &&  // banned-ok: of folders this one alone is a benchmark's
      std::filesystem::is_empty(path_of(uri), ignored))
    return {};
  // Opened for reading, which makes nothing: EINVAL is what is wrong with the text, or is no store
  // of the kind; what is not there yet has another number.
  const Result<std::shared_ptr<Store>> store = open_store(uri);
  return store || store.code() != EINVAL ? Status() : store.status();
}

std::string path_of(const std::string& uri) {
  const std::string scheme = scheme_of(uri);
  if (scheme.empty()) return uri;
  std::string rest = uri.substr(scheme.size() + 1);
  rest = rest.substr(0, rest.rfind('?'));
  return rest.starts_with("///") ? rest.substr(2) : rest;
}

std::string plain_path(const std::string& uri) {
  return without_file_scheme(uri) != uri || scheme_of(uri).empty() ? path_of(uri) : "";
}

bool is_volatile(const std::string& uri) {
  const StoreKind* const kind = kind_of_scheme(uri);
  return kind != nullptr && kind->dies_with_process;
}

bool is_scratch(const std::string& uri) {
  return is_volatile(uri) && kind_of_scheme(uri)->place == StoreKind::Place::kFolder;
}

bool is_remote(const std::string& uri) {
  const StoreKind* const kind = kind_of_scheme(uri);
  return kind != nullptr && kind->has_authority;
}

Result<bool> is_there(const std::string& uri) {
  const auto store = open_store(uri);
  if (!store && store.code() != ENOENT) return store.error();
  return store.ok();
}

namespace {

// Somebody who runs writes it: it is not one that a run of ours left behind when it was killed.
bool is_anothers(const std::string& uri) {
  const auto stores = list_stores(uri);
  if (!stores) return false;
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  for (const StoreInfo& store : stores.value()) {
    int process = 0;
    char where[256] = {};
    const std::string end = "/" + store.name;
    if (!uri.substr(0, uri.find('?')).ends_with(end) ||
        std::sscanf(store.owner.c_str(), "process %d on %255s", &process, where) != 2)
      continue;
    return std::string(where) != host || kill(process, 0) == 0 || errno != ESRCH;
  }
  return false;
}

}  // namespace

Status remove_remote(const std::string& uri) {
  static constexpr uint64_t kWaitNsMax = 40'000'000'000;  // leases of killed writers end before
  static constexpr useconds_t kStepUs = 200'000;
  const uint64_t start_ns = now_ns();
  while (true) {
    Status removed = remove_store(uri);
    if (removed || removed.code() == ENOENT) return {};
    if (removed.code() != EBUSY || now_ns() - start_ns > kWaitNsMax || is_anothers(uri))
      return removed;
    usleep(kStepUs);
  }
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

Device device_of(const std::string& uri) {
  Device device;
  if (is_remote(uri)) {
    device.name = "network";
    return device;
  }
  struct stat facts {};
  std::string at = path_of(uri);
  while (stat(at.c_str(), &facts) != 0) {
    const std::string parent = std::filesystem::path(at).parent_path();
    if (parent.empty() || parent == at) return device;
    at = parent;
  }
  const dev_t id = S_ISBLK(facts.st_mode) ? facts.st_rdev : facts.st_dev;
  const std::string link = cli::format("/sys/dev/block/%u:%u", major(id), minor(id));
  std::error_code code;
  const std::filesystem::path node = std::filesystem::canonical(link, code);
  if (code) {
    struct statfs system {};
    static constexpr long kTmpfs = 0x01021994;
    device.name = statfs(at.c_str(), &system) == 0 && static_cast<long>(system.f_type) == kTmpfs
                      ? "tmpfs"
                      : cli::format("device %u:%u", major(id), minor(id));
    return device;
  }
  device.name = node.filename();
  for (const auto& queue : {node / "queue", node.parent_path() / "queue"})
    if (std::ifstream file(queue / "read_ahead_kb"); file >> device.read_ahead_kb) break;
  return device;
}

}  // namespace outcore::bench
