#include "core/paging/cut_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"

namespace outcore::paging {

Status CutMemory::allocate() {
  if (copies_.data() != nullptr || memory_.empty()) return {};
  uint64_t bytes = 0;
  for (const auto& piece : memory_) bytes += piece.size();
  if (bytes == 0) return {};
  if (Status s = copies_.allocate(bytes, bytes, "copies of the memory that belongs to it"); !s)
    return s;
  // The kernel copies first: it says what is not there, where we would die with turns in our hands.
  std::byte* to = copies_.data();
  for (const auto& piece : memory_) {
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

void CutMemory::copy() {
  if (copies_.data() == nullptr) return;
  std::byte* to = copies_.data();
  for (const auto& piece : memory_) {
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
}

bool CutMemory::is_as_copied() const {
  if (copies_.data() == nullptr) return true;
  const std::byte* copy = copies_.data();
  for (const auto& piece : memory_) {
    if (std::memcmp(copy, piece.data(), piece.size()) != 0) return false;
    copy += piece.size();
  }
  return true;
}

}  // namespace outcore::paging
