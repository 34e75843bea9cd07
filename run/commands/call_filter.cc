#include "run/commands/call_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>

#include "cli/assert.h"
#include "cli/text.h"
#include "run/preload/call_shapes.h"

namespace outcore::cli {
namespace {

using preload::CallShape;
using preload::WindowPlace;

// Built front to back; jumps go forward only.
class FilterText {
 public:
  explicit FilterText(const WindowPlace& place) : place_(place) {}

  std::vector<sock_filter> build() {
    load(offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    answer(SECCOMP_RET_ALLOW);
    load(offsetof(seccomp_data, nr));
    search(0, preload::shapes::kNumbersMax);
    for (auto& [mask, jumps] : blocks_) {
      land(jumps);
      if (mask == 0)
        answer(SECCOMP_RET_ALLOW);
      else
        look_at_arguments(mask);
    }
    land(hits_);
    look_at_instruction();
    CLI_CHECK(text_.size() <= BPF_MAXINSNS);
    return std::move(text_);
  }

 private:
  static unsigned mask_of(int number) { return preload::shape_of(number).mask(); }

  void add(int code, uint64_t k, int if_true = 0, int if_false = 0) {
    text_.push_back({static_cast<uint16_t>(code), static_cast<uint8_t>(if_true),
                     static_cast<uint8_t>(if_false), static_cast<uint32_t>(k)});
  }
  void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, offset); }
  void answer(unsigned what) { add(BPF_RET | BPF_K, what); }
  // A jump whose end is not known yet: land() makes it go to what is added next.
  size_t jump() {
    add(BPF_JMP | BPF_JA, 0);
    return text_.size() - 1;
  }
  void land(const std::vector<size_t>& jumps) {
    for (const size_t from : jumps) {
      CLI_CHECK(from < text_.size());
      text_[from].k = static_cast<uint32_t>(text_.size() - from - 1);
    }
  }

  // The number, which is loaded, is in [from, to), or behind all that are known.
  void search(int from, int to) {
    CLI_CHECK(from < to);
    const unsigned mask = mask_of(from);
    int other = from + 1;
    while (other < to && mask_of(other) == mask) ++other;
    if (other == to) {
      blocks_[mask].push_back(jump());
      return;
    }
    int middle = (from + to) / 2;
    while (middle > from && mask_of(middle) == mask_of(middle - 1)) --middle;
    if (middle == from) middle = other;
    add(BPF_JMP | BPF_JGE | BPF_K, static_cast<uint64_t>(middle), 0, 1);
    const size_t upper = jump();
    search(from, middle);
    land({upper});
    search(middle, to);
  }

  void look_at_arguments(unsigned mask) {
    const int count = __builtin_popcount(mask);
    CLI_CHECK(count > 0 && count <= CallShape::kArguments);
    int done = 0;
    for (int i = 0; i < CallShape::kArguments; ++i) {
      if ((mask & 1U << i) == 0) continue;
      load(offsetof(seccomp_data, args) + static_cast<size_t>(i) * sizeof(uint64_t) + 4);
      add(BPF_ALU | BPF_SUB | BPF_K, place_.base >> 32);
      const int to_hit = 3 * (count - done++) - 2;
      add(BPF_JMP | BPF_JGE | BPF_K, WindowPlace::kBytes >> 32, 0, to_hit);
    }
    answer(SECCOMP_RET_ALLOW);
    hits_.push_back(jump());
  }

  void look_at_instruction() {
    const uint64_t next = place_.code + WindowPlace::kReturnOffset;
    load(offsetof(seccomp_data, instruction_pointer));
    add(BPF_JMP | BPF_JEQ | BPF_K, next & UINT32_MAX, 1, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, (next + WindowPlace::kAnew) & UINT32_MAX, 0, 3);
    load(offsetof(seccomp_data, instruction_pointer) + 4);
    add(BPF_JMP | BPF_JEQ | BPF_K, next >> 32, 0, 1);
    answer(SECCOMP_RET_ALLOW);
    answer(SECCOMP_RET_TRAP | WindowPlace::kMark);
  }

  const WindowPlace place_;
  std::vector<sock_filter> text_;
  std::map<unsigned, std::vector<size_t>> blocks_;  // by mask: the jumps to what looks at it
  std::vector<size_t> hits_;                        // jumps of calls that point into the window
};

bool install(const std::vector<sock_filter>& text) {
  std::vector<sock_filter> copy = text;
  const sock_fprog whole{static_cast<unsigned short>(copy.size()), copy.data()};
  // The filter is no reason to run the program without the processor's guesses.
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &whole) == 0)
    return true;
  return errno == EINVAL && ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0L, &whole) == 0;
}

volatile sig_atomic_t traps = 0;
void on_trap(int, siginfo_t* info, void*) {
  if (info->si_code == 1 && info->si_errno == WindowPlace::kMark) traps = traps + 1;
}

}  // namespace

Result<WindowPlace> choose_window() {
  uint64_t random[2];
  WindowPlace place;
  do {
    if (::getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random))
      return failure(errno, "getrandom", "allow it in the sandbox's system calls");
    constexpr uint64_t kRoom = WindowPlace::kEnd - WindowPlace::kFirst;
    constexpr uint64_t kPlaces = (kRoom - WindowPlace::kBytes) / WindowPlace::kStep + 1;
    place.base = WindowPlace::kFirst + random[0] % kPlaces * WindowPlace::kStep;
    place.code =
        WindowPlace::kFirst + random[1] % (kRoom / WindowPlace::kPage) * WindowPlace::kPage;
  } while (!place.is_possible());
  CLI_CHECK(place.base >= WindowPlace::kFirst && place.code >= WindowPlace::kFirst);
  return place;
}

std::vector<sock_filter> call_filter(const WindowPlace& place) {
  CLI_CHECK(place.is_possible());
  return FilterText(place).build();
}

Status install_call_filter(const WindowPlace& place) {
  const std::vector<sock_filter> text = call_filter(place);
  if (install(text)) return {};
  if (errno == EACCES && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && install(text)) return {};
  return Error{errno, std::string("seccomp: ") + ::strerrordesc_np(errno)};
}

bool is_call_filter_there(const WindowPlace& place) {
  struct sigaction ours {
  }, before{};
  ours.sa_sigaction = on_trap;
  ours.sa_flags = SA_SIGINFO;
  sigset_t only, mask;
  sigemptyset(&only);
  sigaddset(&only, SIGSYS);
  if (::sigaction(SIGSYS, &ours, &before) != 0) return false;
  ::sigprocmask(SIG_UNBLOCK, &only, &mask);
  traps = 0;
  const uint64_t inside[] = {place.base, place.base + WindowPlace::kBytes - 1};
  for (const uint64_t address : inside) ::syscall(SYS_access, address, 0);
  const bool is_trapped = traps == 2;
  const uint64_t outside[] = {place.base - 1, place.base + WindowPlace::kBytes};
  for (const uint64_t address : outside) ::syscall(SYS_access, address, 0);
  const bool is_there = is_trapped && traps == 2;
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::sigaction(SIGSYS, &before, nullptr);
  return is_there;
}

}  // namespace outcore::cli
