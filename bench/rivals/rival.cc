#include "bench/rivals/rival.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>

#include "bench/clock.h"

namespace outcore::rivals {
namespace {

namespace fs = std::filesystem;

constexpr double kResidentMax = 0.01;  // of what should be cold

struct Asked {
  Work work;
  std::string phases = "write,same,planes,view";
  bool is_spoiled = false;
};

struct Taken {
  double seconds = 0, first_seconds = 0;
};

bool parse_size(const char* text, uint64_t* size_bytes) {
  char* end = nullptr;
  errno = 0;
  *size_bytes = std::strtoull(text, &end, 10);
  const std::string unit = end;
  const unsigned shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : 0;
  if (errno != 0 || end == text || (shift == 0 && !unit.empty())) return false;
  if (*size_bytes > (UINT64_MAX >> shift)) return false;
  *size_bytes <<= shift;
  return true;
}

bool parse(int count, char** words, Asked* asked) {
  uint64_t size_bytes = uint64_t{1} << 30;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--spoil") {
      asked->is_spoiled = true;
      continue;
    }
    if (++i == count) return false;
    if (word == "--folder") {
      asked->work.folder = words[i];
    } else if (word == "--phases") {
      asked->phases = words[i];
    } else if (word == "--variant") {
      asked->work.variant = words[i];
    } else if (word == "--size") {
      if (!parse_size(words[i], &size_bytes)) return false;
    } else if (word != "--seed" || !parse_size(words[i], &asked->work.seed)) {
      return false;
    }
  }
  asked->work.set_size(size_bytes);
  return !asked->work.folder.empty() && asked->work.side >= 8;
}

// The files below these paths, and with folders also the folders.
std::vector<std::string> below(const std::vector<std::string>& paths, bool with_folders) {
  std::vector<std::string> all;
  std::error_code none;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path, none)) {
      if (fs::exists(path, none)) all.push_back(path);
      continue;
    }
    if (with_folders) all.push_back(path);
    for (const auto& entry : fs::recursive_directory_iterator(path, none))
      if (entry.is_directory() ? with_folders : entry.is_regular_file())
        all.push_back(entry.path().string());
  }
  return all;
}

void sync_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || ::fsync(fd) != 0) fail("sync " + path + ": " + std::strerror(errno));
  ::close(fd);
}

// Pages of a file that are in the page cache, and all of its pages.
std::pair<uint64_t, uint64_t> residency(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about {};
  if (fd < 0 || ::fstat(fd, &about) != 0) fail("look at " + path + ": " + std::strerror(errno));
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto size = static_cast<uint64_t>(about.st_size);
  std::vector<unsigned char> pages((size + page - 1) / page);
  if (size > 0) {
    void* const at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED || ::mincore(at, size, pages.data()) != 0)
      fail("ask which pages of " + path + " are in memory: " + std::strerror(errno));
    ::munmap(at, size);
  }
  ::close(fd);
  const auto resident = std::count_if(pages.begin(), pages.end(), [](auto p) { return p & 1; });
  return {static_cast<uint64_t>(resident), pages.size()};
}

class Program {
 public:
  Program(Rival& rival, const Asked& asked) : rival_(rival), asked_(asked), work_(asked.work) {}

  int run() {
    forget_files();
    rival_.begin(work_);
    const bool is_right = measure();
    rival_.end(work_);
    MPI_Barrier(MPI_COMM_WORLD);
    if (work_.rank == 0) remove_files();
    return is_right ? 0 : 1;
  }

 private:
  bool measure() {
    if (has("write")) write();
    if (asked_.is_spoiled && work_.rank == 0) spoil();
    bool is_right = true;
    if (has("same")) is_right = read("same", Division::kBoxes) && is_right;
    if (has("planes") && rival_.reads_planes())
      is_right = read("planes", Division::kPlanes) && is_right;
    if (has("view") && rival_.has_views()) is_right = view() && is_right;
    return is_right;
  }
  bool has(const std::string& phase) const {
    return ("," + asked_.phases + ",").find("," + phase + ",") != std::string::npos;
  }
  std::vector<std::string> all_files() const {
    std::vector<std::string> all;
    for (unsigned rank = 0; rank < work_.size; ++rank)
      for (const std::string& path : rival_.files(work_, rank)) all.push_back(path);
    return all;
  }
  void remove_files() const {
    std::error_code none;
    for (const std::string& path : all_files()) fs::remove_all(path, none);
  }
  // What was there, and what others have left to do, is nobody's work here.
  void forget_files() const {
    if (work_.rank == 0 && has("write")) {
      remove_files();
      const int fd = ::open(work_.folder.c_str(), O_RDONLY | O_CLOEXEC);
      if (fd < 0 || ::syncfs(fd) != 0) fail("sync " + work_.folder + ": " + std::strerror(errno));
      ::close(fd);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  void make_cold() const {
    MPI_Barrier(MPI_COMM_WORLD);
    if (work_.rank == 0) {
      double share = 1;
      for (int tries = 0; tries < 3 && share > kResidentMax; ++tries) share = drop_pages();
      if (share > kResidentMax)
        fail(rival_.name() + ": " + std::to_string(static_cast<int>(share * 100)) +
             " % of its files stay in memory: a cold read needs a folder on a disk");
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  double drop_pages() const {
    uint64_t resident = 0, pages = 0;
    for (const std::string& path : below(all_files(), false)) {
      const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (fd < 0 || ::fsync(fd) != 0 || ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
        fail("forget " + path + ": " + std::strerror(errno));
      ::close(fd);
      const auto [here, all] = residency(path);
      resident += here;
      pages += all;
    }
    if (pages == 0) fail(rival_.name() + ": it has written no file");
    return static_cast<double>(resident) / static_cast<double>(pages);
  }
  // So that it is seen that wrong data are seen: eight bytes in the middle of the largest file.
  void spoil() const {
    std::string largest;
    for (const std::string& path : below(all_files(), false))
      if (largest.empty() || fs::file_size(path) > fs::file_size(largest)) largest = path;
    const int fd = ::open(largest.c_str(), O_RDWR | O_CLOEXEC);
    const auto at = static_cast<off_t>(fs::file_size(largest) / 16 * 8);
    uint64_t word = 0;
    bool is_done = fd >= 0 && ::pread(fd, &word, sizeof word, at) == sizeof word;
    word = ~word;
    is_done = is_done && ::pwrite(fd, &word, sizeof word, at) == sizeof word;
    if (!is_done) fail("spoil " + largest + ": " + std::strerror(errno));
    ::close(fd);
  }

  // All begin at once.
  void start() {
    MPI_Barrier(MPI_COMM_WORLD);
    start_ns_ = bench::now_ns();
  }
  Taken stop(uint64_t first_ns = 0) const {
    const uint64_t mine[] = {~start_ns_, bench::now_ns(), first_ns - start_ns_};
    uint64_t all[] = {0, 0, 0};
    MPI_Allreduce(mine, all, 3, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    return {static_cast<double>(all[1] - ~all[0]) * 1e-9,
            first_ns == 0 ? 0 : static_cast<double>(all[2]) * 1e-9};
  }

  Data make_data(Division division) const {
    Data data;
    for (size_t v = 0; v < kVariables.size(); ++v)
      data[v].assign(work_.box(kVariables[v], work_.rank, division).count(), -1);
    return data;
  }
  // The host of a virtual machine takes free memory back, and whoever uses it next waits for it
  // page by page, which is no program's work: each phase is done twice, and the second time counts.
  Taken second_of(const std::function<Taken()>& phase) const {
    static_cast<void>(phase());
    return phase();
  }
  void write() {
    Data data = make_data(Division::kBoxes);
    for (size_t v = 0; v < kVariables.size(); ++v)
      fill(work_, kVariables[v], work_.box(kVariables[v], work_.rank, Division::kBoxes),
           data[v].data());
    print("write", second_of([&] {
            forget_files();
            start();
            rival_.write(work_, data);
            if (!rival_.is_durable()) {
              for (const std::string& path : below(rival_.files(work_, work_.rank), true))
                sync_file(path);
              if (work_.rank == 0) sync_file(work_.folder);
            }
            return stop();
          }));
  }
  bool read(const char* phase, Division division) {
    Data data;
    const Taken taken = second_of([&] {
      data = make_data(division);  // touched: no faults later, and no right answer
      make_cold();
      start();
      rival_.read(work_, division, &data);
      return stop();
    });
    uint64_t wrong = 0;
    for (size_t v = 0; v < kVariables.size(); ++v)
      wrong += count_wrong(work_, kVariables[v], work_.box(kVariables[v], work_.rank, division),
                           [&](uint64_t at) { return data[v].data() + at; });
    return judge(phase, wrong, taken);
  }
  static const double* row_of(const Look& look, const Box& box, uint64_t at) {
    const double* row = look.data;
    at /= box.dims.back();
    for (size_t d = box.dims.size() - 1; d-- > 0; at /= box.dims[d])
      row += at % box.dims[d] * look.strides[d];
    return row;
  }
  // Every element is added to a sum, in the order of the box.
  Taken look(const std::vector<Box>& boxes, std::vector<Look>* into) {
    std::vector<Look>& looks = *into;
    if (!looks.empty()) rival_.end_views();
    looks.clear();
    make_cold();
    uint64_t first_ns = 0, sum = 0;
    start();
    for (size_t v = 0; v < kVariables.size(); ++v) {
      looks.push_back(rival_.view(work_, v, boxes[v]));
      static_cast<void>(*static_cast<const volatile double*>(looks[v].data));
      if (v == 0) first_ns = bench::now_ns();
      for_each_row(work_.shape(kVariables[v]), boxes[v], [&](uint64_t at, uint64_t) {
        const auto* const row =
            reinterpret_cast<const unsigned char*>(row_of(looks[v], boxes[v], at));
        for (uint64_t i = 0; i < boxes[v].dims.back(); ++i) {
          uint64_t word;
          std::memcpy(&word, row + i * sizeof word, sizeof word);
          sum += word;
        }
      });
    }
    const volatile uint64_t seen = sum;
    static_cast<void>(seen);
    return stop(first_ns);
  }
  bool view() {
    std::vector<Look> looks;
    std::vector<Box> boxes;
    for (const Variable& v : kVariables)
      boxes.push_back(work_.box(v, work_.rank, Division::kPlanes));
    const Taken taken = second_of([&] { return look(boxes, &looks); });
    uint64_t wrong = 0;
    for (size_t v = 0; v < kVariables.size(); ++v)
      wrong += count_wrong(work_, kVariables[v], boxes[v],
                           [&](uint64_t at) { return row_of(looks[v], boxes[v], at); });
    rival_.end_views();
    return judge("view", wrong, taken);
  }

  bool judge(const char* phase, uint64_t wrong, const Taken& taken) const {
    uint64_t all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (all == 0) {
      print(phase, taken);
    } else if (work_.rank == 0) {
      std::fprintf(stderr, "%s: %s: %llu of %llu elements are not what was written\n",
                   rival_.name().c_str(), phase, static_cast<unsigned long long>(all),
                   static_cast<unsigned long long>(work_.bytes() / 8));
    }
    return all == 0;
  }
  void print(const char* phase, const Taken& taken) const {
    if (work_.rank != 0) return;
    const std::string first = taken.first_seconds > 0
                                  ? ", \"first_seconds\": " + std::to_string(taken.first_seconds)
                                  : "";
    std::printf(
        "{\"memory\": \"%s\", \"variant\": \"%s\", \"version\": \"%s\", \"phase\": \"%s\", "
        "\"processes\": %u, \"data_bytes\": %llu, \"started_ns\": %llu, \"seconds\": "
        "%.6f%s, \"checked\": %s}\n",
        rival_.name().c_str(), work_.variant.c_str(), rival_.version().c_str(), phase, work_.size,
        static_cast<unsigned long long>(work_.bytes()), static_cast<unsigned long long>(start_ns_),
        taken.seconds, first.c_str(), std::strcmp(phase, "write") == 0 ? "false" : "true");
    std::fflush(stdout);
  }

  Rival& rival_;
  const Asked& asked_;
  const Work& work_;
  uint64_t start_ns_ = 0;
};

// What main() returns: 0; 1 if something was read that was not written; 2 for wrong words.
int run(Rival& rival, int count, char** words) {
  Asked asked;
  MPI_Init(&count, &words);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int status = 2;
  const bool is_understood = parse(count, words, &asked);
  asked.work.rank = static_cast<unsigned>(rank);
  asked.work.size = static_cast<unsigned>(size);
  if (is_understood && (size == 1 || size == 2 || size == 4 || size == 8)) {
    status = Program(rival, asked).run();
  } else if (rank == 0) {
    std::fprintf(stderr,
                 "usage: mpirun -n 1|2|4|8 %s --folder DIR [--size 1G] [--seed 1] [--variant NAME] "
                 "[--phases write,same,planes,view] [--spoil]\n",
                 words[0]);
  }
  MPI_Finalize();
  return status;
}

}  // namespace
}  // namespace outcore::rivals

int main(int count, char** words) {
  const auto rival = outcore::rivals::make_rival();
  return outcore::rivals::run(*rival, count, words);
}
