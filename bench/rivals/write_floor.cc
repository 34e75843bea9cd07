// The floor: a file for each process, by write(2) and read(2), which only that process can read.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "bench/rivals/rival.h"

namespace outcore::rivals {
namespace {

class WriteFloor final : public Rival {
 public:
  std::string name() const override { return "write(2)"; }
  std::string version() const override { return ""; }
  std::vector<std::string> files(const Work& work, unsigned rank) const override {
    return {work.path("part" + std::to_string(rank))};
  }
  bool reads_planes() const override { return false; }

  void write(const Work& work, const Data& data) override {
    const int fd = open(work, O_WRONLY | O_CREAT | O_TRUNC);
    for (const std::vector<double>& values : data) {
      const auto* at = reinterpret_cast<const char*>(values.data());
      for (uint64_t rest = values.size() * 8; rest > 0;) {
        const ssize_t n = ::write(fd, at, rest);
        if (n <= 0) fail(std::string("write a process' file: ") + std::strerror(errno));
        at += n;
        rest -= static_cast<uint64_t>(n);
      }
    }
    ::close(fd);
  }
  void read(const Work& work, Division, Data* data) override {
    const int fd = open(work, O_RDONLY);
    for (std::vector<double>& values : *data) {
      auto* at = reinterpret_cast<char*>(values.data());
      for (uint64_t rest = values.size() * 8; rest > 0;) {
        const ssize_t n = ::read(fd, at, rest);
        if (n <= 0) fail(std::string("read a process' file: ") + std::strerror(errno));
        at += n;
        rest -= static_cast<uint64_t>(n);
      }
    }
    ::close(fd);
  }

 private:
  int open(const Work& work, int flags) const {
    const std::string path = files(work, work.rank)[0];
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
    if (fd < 0) fail("open " + path + ": " + std::strerror(errno));
    return fd;
  }
};

}  // namespace

std::unique_ptr<Rival> make_rival() { return std::make_unique<WriteFloor>(); }

}  // namespace outcore::rivals
