// The memory that a cut takes from the budget: its side buffer, and copies of ordinary memory.
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/wait.h"
#include "core/paging/cut.h"

namespace outcore::paging {

// At most *bytes, at least `least`, touched; *bytes becomes what it is.
Result<std::byte*> Cut::take(uint64_t* bytes, uint64_t least, const char* what) {
  OC_CHECK(least != 0);
  OC_CHECK(*bytes >= least);
  budget::Budget& budget = engine_.pager().budget;
  const uint64_t start_ns = os::now_ns();
  for (uint32_t changes = budget.changes(); !budget.take(*bytes); changes = budget.changes()) {
    if (*bytes > least) {
      *bytes = std::max(least, base::round_down(*bytes / 2, base::kSystemPage));
      continue;
    }
    if (*bytes <= budget.limit() && engine_.keeper_.help(Caller::kThread, 0)) continue;
    if (*bytes > budget.limit() || os::now_ns() - start_ns > engine_.pager().options.wait_ns_max)
      return Error{ENOMEM, "cut: no " + base::format_bytes(*bytes) +
                               " of the budget became free for " + what + "; raise the budget"};
    engine_.keeper_.call_keepers();
    budget.wait_for_change(changes, 2'000'000);
  }
  Result<std::byte*> memory = os::allocate_table(*bytes);
  if (!memory) {
    budget.give(*bytes);
    return memory.error();
  }
  // Touched now: the first touch of memory costs more than the copy.
  for (uint64_t at = 0; at < *bytes; at += base::kSystemPage) memory.value()[at] = std::byte{0};
  return memory;
}

// A side buffer for what is likely to be left, inside the budget: at least one page, at most a
// sixteenth.
Status Cut::take_buffer() {
  if (buffer_ != nullptr || spaces_.empty()) return {};
  uint64_t least = 0;
  for (const Space* space : spaces_) least = std::max(least, space->page_bytes);
  const uint64_t left = (1 << 20) + listed_bytes() / 4 * 5;
  const uint64_t most = base::round_down(engine_.pager().budget.limit() / 16, base::kSystemPage);
  uint64_t bytes = std::max(std::min(base::round_up(left, base::kSystemPage), most), least);
  Result<std::byte*> memory = take(&bytes, least, "its buffer");
  if (!memory) return memory.status();
  OC_CHECK(bytes >= least);
  OC_CHECK(bytes % base::kSystemPage == 0);
  buffer_ = memory.value();
  buffer_bytes_ = bytes;
  return {};
}

Status Cut::take_memory() {
  if (memory_ != nullptr || calls_.memory.empty()) return {};
  uint64_t bytes = 0;
  for (const auto& piece : calls_.memory) bytes += piece.size();
  if (bytes == 0) return {};
  Result<std::byte*> memory = take(&bytes, bytes, "copies of the memory that belongs to it");
  if (!memory) return memory.status();
  OC_CHECK(memory_ == nullptr);
  memory_ = memory.value();
  memory_bytes_ = bytes;
  // The kernel copies first: it says what is not there, where we would die with turns in our hands.
  std::byte* to = memory_;
  for (const auto& piece : calls_.memory) {
    for (size_t done = 0; done < piece.size();) {
      iovec local{to + done, piece.size() - done};
      iovec remote{const_cast<std::byte*>(piece.data()) + done, piece.size() - done};
      const ssize_t n = ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0);
      if (n <= 0 && errno != EFAULT)
        return {};  // not allowed here: as with any call, it must be there
      if (n <= 0)
        return Error{EFAULT, "cut: " + std::to_string(piece.size()) +
                                 " bytes of memory belong to it of which not all are there"};
      done += static_cast<size_t>(n);
    }
    to += piece.size();
  }
  return {};
}

void Cut::copy_memory() {
  if (memory_ == nullptr) return;
  std::byte* to = memory_;
  for (const auto& piece : calls_.memory) {
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
}

bool Cut::is_memory_as_copied() const {
  if (memory_ == nullptr) return true;
  const std::byte* copy = memory_;
  for (const auto& piece : calls_.memory) {
    if (std::memcmp(copy, piece.data(), piece.size()) != 0) return false;
    copy += piece.size();
  }
  return true;
}

}  // namespace outcore::paging
