#include "core/tests/kernel/kernel_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/base/assert.h"

namespace outcore::kernel_test {
namespace {

using namespace outcore::os;  // the kernel's newer constants

constexpr uint64_t kSharedFeatures =
    UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_PAGEFAULT_FLAG_WP |
    UFFD_FEATURE_WP_HUGETLBFS_SHMEM | kUffdFeatureWpUnpopulated | kUffdFeatureWpAsync;

std::string system_said(const char* attempted) {
  return std::string(attempted) + ": " + std::strerror(errno);
}

std::string names_of(uint64_t features) {
  static constexpr struct {
    uint64_t bit;
    const char* name;
  } kNames[] = {
      {UFFD_FEATURE_PAGEFAULT_FLAG_WP, "PAGEFAULT_FLAG_WP (Linux 5.7)"},
      {UFFD_FEATURE_MISSING_SHMEM, "MISSING_SHMEM (4.11)"},
      {UFFD_FEATURE_MINOR_SHMEM, "MINOR_SHMEM (5.14)"},
      {UFFD_FEATURE_SIGBUS, "SIGBUS (4.14)"},
      {UFFD_FEATURE_WP_HUGETLBFS_SHMEM, "WP_HUGETLBFS_SHMEM (5.19)"},
      {kUffdFeatureWpUnpopulated, "WP_UNPOPULATED (6.4)"},
      {kUffdFeaturePoison, "POISON (6.6)"},
      {kUffdFeatureWpAsync, "WP_ASYNC (6.7)"},
      {kUffdFeatureMove, "MOVE (6.8)"},
  };
  std::string names;
  for (const auto& feature : kNames)
    if (features & feature.bit) names += std::string(names.empty() ? "" : ", ") + feature.name;
  return names;
}

int result_of(int returned) { return returned < 0 ? -errno : 0; }
uint64_t number(const char* address) { return reinterpret_cast<uint64_t>(address); }

thread_local sigjmp_buf way_back;
thread_local Touch current;

void on_signal(int signal, siginfo_t* info, void* context) {
  current.signal = signal;
  current.code = info->si_code;
  current.address = static_cast<const char*>(info->si_addr);
#ifdef __x86_64__
  current.is_write = (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
  static_cast<void>(context);
#endif
  siglongjmp(way_back, 1);
}

}  // namespace

Memfd::Memfd(size_t pages) : fd_(::memfd_create("kernel-fact", MFD_CLOEXEC)) {
  OC_CHECK(fd_ >= 0);
  OC_CHECK(::ftruncate(fd_, static_cast<off_t>(pages * kPage)) == 0);
}

Memfd::~Memfd() { ::close(fd_); }

bool Memfd::holds(size_t page) const {
  const off_t at = static_cast<off_t>(page * kPage);
  return ::lseek(fd_, at, SEEK_DATA) == at;
}

void Memfd::write(size_t page, char value) const {
  const std::vector<char> bytes(kPage, value);
  OC_CHECK(::pwrite(fd_, bytes.data(), kPage, static_cast<off_t>(page * kPage)) == kPage);
}

char Memfd::first_byte(size_t page) const {
  char value = 0;
  OC_CHECK(::pread(fd_, &value, 1, static_cast<off_t>(page * kPage)) == 1);
  return value;
}

int Memfd::punch(size_t page) const {
  return result_of(::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                               static_cast<off_t>(page * kPage), kPage));
}

Mapping Mapping::anonymous(size_t pages, int protection) {
  void* base = ::mmap(nullptr, pages * kPage, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  OC_CHECK(base != MAP_FAILED);
  ::madvise(base, pages * kPage, MADV_NOHUGEPAGE);
  return {static_cast<char*>(base), pages};
}

Mapping Mapping::of(int fd, size_t pages, int protection) {
  void* base = ::mmap(nullptr, pages * kPage, protection, MAP_SHARED, fd, 0);
  OC_CHECK(base != MAP_FAILED);
  ::madvise(base, pages * kPage, MADV_NOHUGEPAGE);
  return {static_cast<char*>(base), pages};
}

Mapping::Mapping(Mapping&& from) noexcept : base_(from.base_), pages_(from.pages_) {
  from.base_ = nullptr;
}

Mapping::~Mapping() {
  if (base_ != nullptr) ::munmap(base_, pages_ * kPage);
}

Touch run_catching(const std::function<char()>& work) {
  struct sigaction action {
  }, old_bus{}, old_segv{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, &old_bus);
  ::sigaction(SIGSEGV, &action, &old_segv);
  current = {};
  if (sigsetjmp(way_back, 1) == 0) current.value = work();
  ::sigaction(SIGBUS, &old_bus, nullptr);
  ::sigaction(SIGSEGV, &old_segv, nullptr);
  return current;
}

Touch read_byte(const char* at) {
  return run_catching([at] { return *static_cast<const volatile char*>(at); });
}

Touch write_byte(char* at, char value) {
  return run_catching([at, value] {
    *static_cast<volatile char*>(at) = value;
    return value;
  });
}

Userfault::~Userfault() { close(); }

void Userfault::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

std::string Userfault::open(Taking taking, uint64_t features, Reach reach) {
  if (taking == Taking::kSignals) features |= UFFD_FEATURE_SIGBUS;
  const int flags = O_CLOEXEC | O_NONBLOCK | (reach == Reach::kUserOnly ? UFFD_USER_MODE_ONLY : 0);
  uffdio_api api{};
  api.api = UFFD_API;
  const int asked = static_cast<int>(::syscall(SYS_userfaultfd, flags));
  if (asked < 0)
    return system_said("userfaultfd") +
           (errno == EPERM ? "; needs CAP_SYS_PTRACE or vm.unprivileged_userfaultfd=1" : "");
  const int answer = ::ioctl(asked, UFFDIO_API, &api);
  ::close(asked);
  if (answer < 0) return system_said("UFFDIO_API");
  const uint64_t missing = features & ~uint64_t{api.features};
  if (missing != 0) return "this kernel's userfaultfd lacks " + names_of(missing);
  fd_ = static_cast<int>(::syscall(SYS_userfaultfd, flags));
  if (fd_ < 0) return system_said("userfaultfd");
  api = {};
  api.api = UFFD_API;
  api.features = features;
  return ::ioctl(fd_, UFFDIO_API, &api) < 0 ? system_said("UFFDIO_API") : "";
}

std::string Userfault::open_shared(const Mapping& mapping, Taking taking, uint64_t more_features) {
  const std::string reason = open(taking, kSharedFeatures | more_features);
  if (!reason.empty()) return reason;
  return watch(mapping,
               UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR | UFFDIO_REGISTER_MODE_WP);
}

std::string Userfault::open_private(const Mapping& mapping, Taking taking) {
  const std::string reason = open(taking, UFFD_FEATURE_PAGEFAULT_FLAG_WP);
  if (!reason.empty()) return reason;
  return watch(mapping, UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP);
}

std::string Userfault::watch(const Mapping& mapping, uint64_t mode) const {
  uffdio_register request{};
  request.range = {number(mapping.page(0)), mapping.size_bytes()};
  request.mode = mode;
  return ::ioctl(fd_, UFFDIO_REGISTER, &request) < 0 ? system_said("UFFDIO_REGISTER") : "";
}

int Userfault::copy(char* page, char value, uint64_t mode) const {
  return copy_many(page, 1, value, mode).error;
}

Userfault::Copied Userfault::copy_many(char* first, size_t pages, char value, uint64_t mode) const {
  const std::vector<char> bytes(pages * kPage, value);
  uffdio_copy request{number(first), number(bytes.data()), bytes.size(), mode, 0};
  const int error = result_of(::ioctl(fd_, UFFDIO_COPY, &request));
  return {error, request.copy};
}

int Userfault::resume(char* page, bool is_protected) const {
  uffdio_continue request{{number(page), kPage}, is_protected ? kUffdioContinueModeWp : 0, 0};
  return result_of(::ioctl(fd_, UFFDIO_CONTINUE, &request));
}

int Userfault::zero(char* page) const {
  uffdio_zeropage request{{number(page), kPage}, 0, 0};
  return result_of(::ioctl(fd_, UFFDIO_ZEROPAGE, &request));
}

int Userfault::protect(char* first, size_t pages, bool on) const {
  uffdio_writeprotect request{{number(first), pages * kPage}, 0};
  if (on) request.mode = UFFDIO_WRITEPROTECT_MODE_WP;
  return result_of(::ioctl(fd_, UFFDIO_WRITEPROTECT, &request));
}

int Userfault::poison(char* page) const {
  UffdPoison request{{number(page), kPage}, 0, 0};
  return result_of(::ioctl(fd_, OC_UFFDIO_POISON, &request));
}

int Userfault::move(char* to, char* from) const {
  UffdMove request{number(to), number(from), kPage, 0, 0};
  return result_of(::ioctl(fd_, OC_UFFDIO_MOVE, &request));
}

int Userfault::wake(char* page) const {
  uffdio_range range{number(page), kPage};
  return result_of(::ioctl(fd_, UFFDIO_WAKE, &range));
}

char* Userfault::next_fault() const {
  for (;;) {
    pollfd ready{fd_, POLLIN, 0};
    if (::poll(&ready, 1, -1) < 0) continue;
    uffd_msg message{};
    if (::read(fd_, &message, sizeof message) != sizeof message) continue;
    if (message.event != UFFD_EVENT_PAGEFAULT) continue;
    return reinterpret_cast<char*>(message.arg.pagefault.address & ~uint64_t{kPage - 1});
  }
}

bool Userfault::has_message() const {
  pollfd ready{fd_, POLLIN, 0};
  return ::poll(&ready, 1, 0) > 0;
}

Pagemap::Pagemap() : fd_(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) { OC_CHECK(fd_ >= 0); }

Pagemap::~Pagemap() { ::close(fd_); }

std::string Pagemap::lacks_scan() const {
  PagemapScan request{};
  request.size = sizeof request;
  if (::ioctl(fd_, OC_PAGEMAP_SCAN, &request) < 0 && errno == ENOTTY)
    return "PAGEMAP_SCAN is missing (Linux 6.7)";
  return "";
}

std::vector<size_t> Pagemap::written(const Mapping& mapping) const { return scan(mapping, 0); }

std::vector<size_t> Pagemap::written_then_protect(const Mapping& mapping) const {
  return scan(mapping, kPmScanWpMatching | kPmScanCheckWpAsync);
}

std::vector<size_t> Pagemap::scan(const Mapping& mapping, uint64_t flags) const {
  std::vector<PageRegion> regions(mapping.pages());
  PagemapScan request{};
  request.size = sizeof request;
  request.flags = flags;
  request.start = number(mapping.page(0));
  request.end = request.start + mapping.size_bytes();
  request.vec = reinterpret_cast<uint64_t>(regions.data());
  request.vec_len = regions.size();
  request.category_mask = kPageIsWritten;
  request.return_mask = kPageIsWritten;
  const int count = ::ioctl(fd_, OC_PAGEMAP_SCAN, &request);
  EXPECT_GE(count, 0) << system_said("PAGEMAP_SCAN");
  std::vector<size_t> pages;
  for (int i = 0; i < count; ++i)
    for (uint64_t at = regions[static_cast<size_t>(i)].start;
         at < regions[static_cast<size_t>(i)].end; at += kPage)
      pages.push_back((at - request.start) / kPage);
  return pages;
}

uint64_t Pagemap::word(const char* page) const {
  uint64_t word = 0;
  const off_t at = static_cast<off_t>(number(page) / kPage * sizeof word);
  OC_CHECK(::pread(fd_, &word, sizeof word, at) == sizeof word);
  return word;
}

bool Pagemap::is_protected(const char* page) const { return (word(page) >> 57 & 1) != 0; }
bool Pagemap::is_present(const char* page) const { return (word(page) >> 63 & 1) != 0; }

Sleeper::Sleeper(Userfault& faults, std::function<void()> work)
    : faults_(faults), thread_([this, work = std::move(work)] {
        id_ = static_cast<pid_t>(::syscall(SYS_gettid));
        id_.notify_all();
        work();
        has_finished_ = true;
      }) {}

Sleeper::~Sleeper() {
  if (thread_.joinable()) faults_.close();
  join();
}

void Sleeper::join() {
  if (thread_.joinable()) thread_.join();
}

pid_t Sleeper::id() const {
  id_.wait(0);
  return id_;
}

bool Sleeper::is_asleep() const {
  std::ifstream file("/proc/self/task/" + std::to_string(id()) + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return false;
  const char state = line[name_end + 2];
  // Read the state first, then whether the thread got through; in the other order, a sleep
  // elsewhere could be mistaken for this one.
  return (state == 'S' || state == 'D') && !has_finished_;
}

ssize_t advise_self(const std::vector<iovec>& ranges, int advice) {
  const int self = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
  if (self < 0) return -errno;
  const ssize_t advised =
      ::syscall(SYS_process_madvise, self, ranges.data(), ranges.size(), advice, 0);
  const ssize_t result = advised < 0 ? -errno : advised;
  ::close(self);
  return result;
}

std::string lacks_self_advice(int advice) {
  const Memfd memfd(1);
  const Mapping mapping = Mapping::of(memfd.fd(), 1);
  const ssize_t result = advise_self({{mapping.page(0), kPage}}, advice);
  if (result == kPage) return "";
  return "process_madvise on oneself refuses advice " + std::to_string(advice) +
         " (Linux 6.13): " + std::strerror(static_cast<int>(-result));
}

int status_of_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  OC_CHECK(child >= 0);
  if (child == 0) ::_exit(work());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) OC_CHECK(errno == EINTR);
  return status;
}

}  // namespace outcore::kernel_test
