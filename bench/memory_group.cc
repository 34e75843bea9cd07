#include "bench/memory_group.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "cli/text.h"

namespace outcore::bench {
namespace {

Status write_text(const std::string& path, const std::string& text) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return cli::failure(errno, "open " + path);
  const ssize_t n = write(file, text.data(), text.size());
  const int code = errno;
  close(file);
  return n < 0 ? Status(cli::failure(code, "write " + text + " to " + path)) : Status();
}

uint64_t read_number(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? number : 0;
}

// The value after `key` in a file of "key value" lines.
uint64_t read_entry(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string name;
  uint64_t value = 0;
  while (file >> name >> value)
    if (name == key) return value;
  return 0;
}

// Groups of benchmarks that were killed: their process is gone, and so is what they held.
void sweep(const std::string& root) {
  static constexpr std::string_view kPrefix = "outcore-";
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(root, ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    const long id = std::strtol(name.c_str() + kPrefix.size(), nullptr, 10);
    if (id > 0 && kill(static_cast<pid_t>(id), 0) != 0 && errno == ESRCH)
      rmdir(entry.path().c_str());  // fails if somebody is still in it
  }
}

}  // namespace

Result<MemoryGroup> MemoryGroup::make() {
  static std::atomic<unsigned> next{0};
  const bool is_v2 = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
  const std::string root = is_v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
  const std::string path = cli::format("%s/outcore-%d-%u", root.c_str(), getpid(), next++);
  // The root may hand memory down already, or may not: the files below tell.
  if (is_v2) (void)write_text(root + "/cgroup.subtree_control", "+memory");
  sweep(root);
  if (mkdir(path.c_str(), 0755) != 0)
    return cli::failure(errno, "make the memory cgroup " + path,
                        "run as root to give all the same memory");
  MemoryGroup group(path, is_v2);
  if (access((path + (is_v2 ? "/memory.max" : "/memory.limit_in_bytes")).c_str(), W_OK) != 0)
    return cli::failure(errno, "limit the memory cgroup " + path,
                        "give the memory controller to " + root);
  // Without this a rival could escape into swap.
  if (is_v2) (void)write_text(path + "/memory.swap.max", "0");
  return group;
}

MemoryGroup::MemoryGroup(MemoryGroup&& other) noexcept
    : path_(std::exchange(other.path_, {})), is_v2_(other.is_v2_) {}

MemoryGroup& MemoryGroup::operator=(MemoryGroup&& other) noexcept {
  if (this == &other) return *this;
  destroy();
  path_ = std::exchange(other.path_, {});
  is_v2_ = other.is_v2_;
  return *this;
}

MemoryGroup::~MemoryGroup() { destroy(); }

Status MemoryGroup::join() const {
  return is_real() ? write_text(path_ + "/cgroup.procs", std::to_string(getpid())) : Status();
}

Status MemoryGroup::limit(uint64_t bytes) const {
  if (!is_real()) return {};
  return write_text(path_ + (is_v2_ ? "/memory.max" : "/memory.limit_in_bytes"),
                    std::to_string(bytes));
}

Status MemoryGroup::allow_swap() const {
  if (!is_real() || !is_v2_) return {};
  return write_text(path_ + "/memory.swap.max", "max");
}

uint64_t MemoryGroup::usage_bytes() const {
  return is_real() ? read_number(path_ + (is_v2_ ? "/memory.current" : "/memory.usage_in_bytes"))
                   : 0;
}

uint64_t MemoryGroup::peak_bytes() const {
  return is_real() ? read_number(path_ + (is_v2_ ? "/memory.peak" : "/memory.max_usage_in_bytes"))
                   : 0;
}

uint64_t MemoryGroup::limit_bytes() const {
  return is_real() ? read_number(path_ + (is_v2_ ? "/memory.max" : "/memory.limit_in_bytes")) : 0;
}

uint64_t MemoryGroup::kills() const {
  return is_real()
             ? read_entry(path_ + (is_v2_ ? "/memory.events" : "/memory.oom_control"), "oom_kill")
             : 0;
}

void MemoryGroup::destroy() {
  if (!is_real()) return;
  if (!is_v2_) (void)write_text(path_ + "/memory.force_empty", "1");
  rmdir(path_.c_str());
  path_.clear();
}

}  // namespace outcore::bench
