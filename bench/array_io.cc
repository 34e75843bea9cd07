#include "bench/array_io.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <thread>

#include "bench/clock.h"
#include "bench/random.h"
#include "cli/text.h"
#include "outcore/arrays.h"

namespace outcore::bench {
namespace {

constexpr unsigned kProcessesMax = 4;
constexpr auto kPoll = std::chrono::microseconds(50);

// What the processes share.
struct Shared {
  std::atomic<unsigned> come{0};
  std::atomic<uint64_t> start_ns[kProcessesMax], end_ns[kProcessesMax], first_ns[kProcessesMax];
  std::atomic<int> error{0};
  char message[512] = {};
};

// A box of each variable, and where it lies.
struct Part {
  Dims at, dims;
  uint64_t count() const { return dims[0] * dims[1] * dims[2]; }
};

class Way {
 public:
  virtual ~Way() = default;
  virtual std::string name() const = 0;
  virtual Status write(unsigned rank, const Part& part, const std::vector<double>& values) = 0;
  virtual Status read(unsigned rank, const Part& part, std::vector<double>* values) = 0;
  virtual std::vector<std::string> files() const = 0;
};

class Io {
 public:
  Io(const ArrayIoOptions& options, std::string folder)
      : options_(options), folder_(std::move(folder)) {
    const double side = std::cbrt(static_cast<double>(options.size_bytes) / 8 / options.variables);
    side_ = std::max<uint64_t>(static_cast<uint64_t>(side) / 8 * 8, 8);
  }

  const ArrayIoOptions& options() const { return options_; }
  const std::string& folder() const { return folder_; }
  Dims shape() const { return {side_, side_, side_}; }
  uint64_t cells() const { return side_ * side_ * side_; }
  uint64_t bytes() const { return cells() * 8 * options_.variables; }
  static std::string variable(unsigned v) { return "u" + std::to_string(v); }

  // As it was written: 1 x 2 x 2; or by planes: 4 x 1 x 1.
  Part part(unsigned rank, bool is_by_planes) const {
    const unsigned p = options_.processes;
    const Dims across = is_by_planes ? Dims{p, 1, 1} : Dims{1, p > 2 ? 2u : 1u, p > 1 ? 2u : 1u};
    const Dims at = {rank / (across[1] * across[2]), rank / across[2] % across[1],
                     rank % across[2]};
    Part part{{0, 0, 0}, {0, 0, 0}};
    for (size_t d = 0; d < 3; ++d) {
      part.at[d] = at[d] * side_ / across[d];
      part.dims[d] = (at[d] + 1) * side_ / across[d] - part.at[d];
    }
    return part;
  }
  // Element (x, y, z) of variable v: no two neighbours alike.
  double value(unsigned v, uint64_t x, uint64_t y, uint64_t z) const {
    const uint64_t number = ((v * side_ + x) * side_ + y) * side_ + z;
    return static_cast<double>(mix(number + options_.seed) >> 11);
  }
  void fill(unsigned v, const Part& part, double* into) const {
    for (uint64_t x = 0; x < part.dims[0]; ++x)
      for (uint64_t y = 0; y < part.dims[1]; ++y)
        for (uint64_t z = 0; z < part.dims[2]; ++z)
          *into++ = value(v, part.at[0] + x, part.at[1] + y, part.at[2] + z);
  }
  Status check(const Part& part, const std::vector<double>& values) const {
    std::vector<double> right(part.count());
    for (unsigned v = 0; v < options_.variables; ++v) {
      fill(v, part, right.data());
      if (std::memcmp(right.data(), values.data() + v * part.count(), part.count() * 8) != 0)
        return Error{EILSEQ, variable(v) + " is not what was written"};
    }
    return {};
  }

  // Seconds from the first process' start to the last one's end; *first: to its first element.
  Result<double> run(const std::function<Status(unsigned rank, Shared& shared)>& work,
                     double* first = nullptr) const {
    void* const memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return Error{errno, "share memory"};
    auto* const shared = new (memory) Shared;
    std::vector<pid_t> pids;
    for (unsigned rank = 0; rank < options_.processes; ++rank) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        const Status s = work(rank, *shared);
        if (!s.ok()) {
          shared->error = s.code();
          std::snprintf(shared->message, sizeof shared->message, "%s", s.message().c_str());
        }
        ::_exit(s.ok() ? 0 : 1);
      }
      pids.push_back(pid);
    }
    Status s;
    for (const pid_t pid : pids) {
      int status = 0;
      ::waitpid(pid, &status, 0);
      if (status != 0 && shared->error == 0) s = Error{ECHILD, "a process of the benchmark died"};
    }
    if (shared->error != 0) s = Error{shared->error, shared->message};
    uint64_t start = UINT64_MAX, end = 0, slowest = 0;
    for (unsigned rank = 0; rank < options_.processes; ++rank) {
      start = std::min(start, shared->start_ns[rank].load());
      end = std::max(end, shared->end_ns[rank].load());
      slowest = std::max(slowest, shared->first_ns[rank].load());
    }
    ::munmap(memory, sizeof(Shared));
    if (!s.ok()) return s.error();
    if (first != nullptr) *first = static_cast<double>(slowest) * 1e-9;
    return static_cast<double>(end - start) * 1e-9;
  }
  // All begin at once: some have to make their data first.
  void begin(unsigned rank, Shared& shared) const {
    ++shared.come;
    while (shared.come < options_.processes) std::this_thread::yield();
    shared.start_ns[rank] = now_ns();
  }

  Result<double> write(Way& way) const {
    return run([&](unsigned rank, Shared& shared) {
      const Part mine = part(rank, false);
      std::vector<double> values(mine.count() * options_.variables);
      for (unsigned v = 0; v < options_.variables; ++v)
        fill(v, mine, values.data() + v * mine.count());
      begin(rank, shared);
      const Status s = way.write(rank, mine, values);
      shared.end_ns[rank] = now_ns();
      return s;
    });
  }
  Result<double> read(Way& way, bool is_by_planes) const {
    forget(way);
    return run([&](unsigned rank, Shared& shared) {
      const Part mine = part(rank, is_by_planes);
      std::vector<double> values(mine.count() * options_.variables);  // touched: no faults later
      begin(rank, shared);
      const Status s = way.read(rank, mine, &values);
      shared.end_ns[rank] = now_ns();
      return s.ok() ? check(mine, values) : s;
    });
  }
  static void forget(const Way& way) {
    for (const std::string& path : way.files()) {
      const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (fd < 0) continue;
      ::fsync(fd);
      ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
      ::close(fd);
    }
  }

 private:
  const ArrayIoOptions& options_;
  const std::string folder_;
  uint64_t side_ = 0;
};

class ByArrays final : public Way {
 public:
  explicit ByArrays(const Io& io) : io_(io) {}
  std::string name() const override { return "outcore"; }
  std::vector<std::string> files() const override { return {path()}; }
  std::string path() const { return io_.folder() + "/arrays.oca"; }

  Status write(unsigned, const Part& part, const std::vector<double>& values) override {
    auto out =
        Arrays::open(path(), ArraysMode::kWrite, Communicator::processes(io_.options().processes));
    if (!out) return out.status();
    for (unsigned v = 0; v < io_.options().variables; ++v) {
      if (Status s = out->alloc<double>(Io::variable(v), io_.shape()); !s) return s;
      if (Status s =
              out->store(Io::variable(v), values.data() + v * part.count(), part.at, part.dims);
          !s)
        return s;
    }
    return out->close();
  }
  Status read(unsigned, const Part& part, std::vector<double>* values) override {
    auto in = Arrays::open(path());
    if (!in) return in.status();
    for (unsigned v = 0; v < io_.options().variables; ++v)
      if (Status s =
              in->load(Io::variable(v), values->data() + v * part.count(), part.at, part.dims);
          !s)
        return s;
    return {};
  }

 private:
  const Io& io_;
};

// One file, mapped by all.
class ByMapping final : public Way {
 public:
  explicit ByMapping(const Io& io) : io_(io) {}
  std::string name() const override { return "mmap"; }
  std::vector<std::string> files() const override { return {io_.folder() + "/mapped"}; }

  Status write(unsigned, const Part& part, const std::vector<double>& values) override {
    return all(part, const_cast<double*>(values.data()), true);
  }
  Status read(unsigned, const Part& part, std::vector<double>* values) override {
    return all(part, values->data(), false);
  }

 private:
  Status all(const Part& part, double* values, bool is_write) {
    const auto failed = [](const char* what) { return Error{errno, what}; };
    const int fd =
        ::open(files()[0].c_str(), (is_write ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC, 0600);
    if (fd < 0) return failed("open the mapped file");
    if (is_write && ::ftruncate(fd, static_cast<off_t>(io_.bytes())) != 0)
      return failed("make the mapped file long");
    void* const at = ::mmap(nullptr, io_.bytes(), is_write ? PROT_READ | PROT_WRITE : PROT_READ,
                            MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return failed("map the file");
    const uint64_t n = io_.shape()[0], run = part.dims[2] * 8;
    auto* const file = static_cast<double*>(at);
    for (unsigned v = 0; v < io_.options().variables; ++v)
      for (uint64_t x = 0; x < part.dims[0]; ++x)
        for (uint64_t y = 0; y < part.dims[1]; ++y, values += part.dims[2]) {
          double* const there =
              file + ((v * n + part.at[0] + x) * n + part.at[1] + y) * n + part.at[2];
          std::memcpy(is_write ? there : values, is_write ? values : there, run);
        }
    if (is_write && ::fsync(fd) != 0) return failed("sync the mapped file");
    ::munmap(at, io_.bytes());
    ::close(fd);
    return {};
  }
  const Io& io_;
};

// Each process has a file of its own, which only it can read again.
class ByFiles final : public Way {
 public:
  explicit ByFiles(const Io& io) : io_(io) {}
  std::string name() const override { return "write(2)"; }
  std::vector<std::string> files() const override {
    std::vector<std::string> all;
    for (unsigned rank = 0; rank < io_.options().processes; ++rank) all.push_back(path(rank));
    return all;
  }
  Status write(unsigned rank, const Part&, const std::vector<double>& values) override {
    return all(rank, const_cast<double*>(values.data()), values.size() * 8, true);
  }
  Status read(unsigned rank, const Part&, std::vector<double>* values) override {
    return all(rank, values->data(), values->size() * 8, false);
  }

 private:
  std::string path(unsigned rank) const { return io_.folder() + "/part" + std::to_string(rank); }
  Status all(unsigned rank, double* values, uint64_t bytes, bool is_write) {
    const int fd = ::open(path(rank).c_str(),
                          (is_write ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY) | O_CLOEXEC, 0600);
    if (fd < 0) return Error{errno, "open a process' file"};
    auto* at = reinterpret_cast<char*>(values);
    for (uint64_t done = 0; done < bytes;) {
      const ssize_t n =
          is_write ? ::write(fd, at + done, bytes - done) : ::read(fd, at + done, bytes - done);
      if (n <= 0) return Error{n < 0 ? errno : EIO, "move a process' file"};
      done += static_cast<uint64_t>(n);
    }
    if (is_write && ::fsync(fd) != 0) return Error{errno, "sync a process' file"};
    ::close(fd);
    return {};
  }
  const Io& io_;
};

double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

// Cold, as memory: when the first element is there, and when all are.
Status measure_view(const Io& io, ByArrays& way, double copying, const SeeFigure& see) {
  std::vector<double> all, firsts;
  for (unsigned round = 0; round < io.options().rounds; ++round) {
    Io::forget(way);
    double first = 0;
    const auto seconds = io.run(
        [&](unsigned rank, Shared& shared) -> Status {
          const Part mine = io.part(rank, true);
          io.begin(rank, shared);
          // The first element is one process' alone: how long others take to get a processor is
          // not asked.
          while (rank != 0 && shared.first_ns[0] == 0) std::this_thread::sleep_for(kPoll);
          auto in = Arrays::open(way.path());
          if (!in) return in.status();
          Status wrong;
          for (unsigned v = 0; v < io.options().variables; ++v) {
            auto view = in->view<double>(Io::variable(v), mine.at, mine.dims);
            if (!view) return view.status();
            const std::span<const double> cells = view->span();
            volatile double seen = cells[0];
            static_cast<void>(seen);
            if (v == 0 && rank == 0) shared.first_ns[0] = now_ns() - shared.start_ns[0];
            const uint64_t plane = mine.dims[1] * mine.dims[2];
            uint64_t differ = 0;
            for (uint64_t x = 0; x < mine.dims[0]; ++x)
              for (uint64_t i = 0; i < plane; i += 512) differ += cells[x * plane + i] < 0 ? 1 : 0;
            if (differ != 0) wrong = Error{EILSEQ, "a view is not what was written"};
          }
          shared.end_ns[rank] = now_ns();
          return wrong;
        },
        &first);
    if (!seconds) return seconds.error();
    all.push_back(seconds.value());
    firsts.push_back(first);
  }
  see({"view: time to the first element", median(firsts) * 1e3, 1, true, "ms", "cold"});
  see({"view: every page, of copying by planes", copying / median(all), 1, false, "x",
       cli::format_seconds(median(all))});
  return {};
}

}  // namespace

Status measure_array_io(const ArrayIoOptions& options, const SeeFigure& see) {
  auto folder = OwnFolder::make(options.dir);
  if (!folder) return folder.error();
  const Io io(options, folder->path());
  ByArrays arrays(io);
  ByMapping mapping(io);
  ByFiles files(io);
  std::map<std::string, std::vector<double>> written, same, planes;
  for (unsigned round = 0; round < options.rounds; ++round)
    for (Way* way : std::initializer_list<Way*>{&mapping, &arrays, &files}) {
      // What the one before has left to do is not this one's.
      for (const std::string& path : way->files()) ::unlink(path.c_str());
      ::sync();
      const auto out = io.write(*way);
      if (!out) return out.error();
      written[way->name()].push_back(out.value());
      const auto in = io.read(*way, false);
      if (!in) return in.error();
      same[way->name()].push_back(in.value());
      if (way == &files) continue;
      const auto other = io.read(*way, true);
      if (!other) return other.error();
      planes[way->name()].push_back(other.value());
    }
  const auto told = [&](const std::string& name, std::map<std::string, std::vector<double>>& all,
                        double asked) {
    double floor = 1e9;
    std::string how = cli::format_bytes(io.bytes()) + ":";
    for (const auto& [way, seconds] : all) {
      if (way != "outcore") floor = std::min(floor, median(seconds));
      how += " " + way + " " + cli::format_seconds(median(seconds));
    }
    see({name, floor / median(all["outcore"]), asked, false, "x", how});
  };
  told("write, durable, of the plain floor", written, 0.95);
  told("read by the same boxes, of the plain floor", same, 0.95);
  told("read by planes, of a mapped file", planes, 0.95);
  return measure_view(io, arrays, median(planes["outcore"]), see);
}

}  // namespace outcore::bench
