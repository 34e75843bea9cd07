#include "run/preload/leaving.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

#include "run/preload/descriptor_table.h"
#include "run/preload/door.h"
#include "run/preload/in_memory.h"
#include "run/preload/inside.h"
#include "run/preload/real.h"

namespace outcore::preload {
namespace {

constexpr size_t kSentMax = 256;  // with more, every file counts as sent

os::Lock lock;
std::array<Identity, kSentMax> sent;
std::atomic<size_t> sent_count{0};  // may be more than kSentMax

std::atomic<uint32_t> starting_count{0};

bool has_sent(const Identity& file) {
  const size_t count = sent_count.load();
  return count > kSentMax || std::count(sent.data(), sent.data() + count, file) != 0;
}

}  // namespace

bool stays_over_exec(int fd) {
  const int flags = real().fcntl(fd, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

// In a process that only shares our memory, file_of() itself hands written files back.
void let_leave(const std::function<bool(int)>& leaves) {
  const int saved_errno = errno;
  for (int fd = DescriptorTable::next(0); fd >= 0; fd = DescriptorTable::next(fd + 1)) {
    if (!leaves(fd)) continue;
    if (TakenFile* file = DescriptorTable::file_of(fd); file != nullptr)
      Door::instance().hand_back_if_writable(*file, "another program has a descriptor of it");
  }
  errno = saved_errno;
}

void let_be_sent(int fd) {
  const int saved_errno = errno;
  struct stat about;
  const bool is_file = ::fstat(fd, &about) == 0 &&
                       (S_ISREG(about.st_mode) || S_ISBLK(about.st_mode)) &&
                       !is_kept_in_memory(fd, about);  // programs send many such
  if (is_file && !Door::instance().is_of_another_process()) {
    const os::SignalBlock block;
    const os::Locked locked(lock);
    const Identity file = identity_of(about);
    if (!has_sent(file)) {
      const size_t at = sent_count.load();
      if (at < kSentMax) sent[at] = file;
      sent_count.store(at + 1);
    }
  }
  if (TakenFile* file = is_file ? DescriptorTable::file_of(fd) : nullptr; file != nullptr)
    Door::instance().hand_back_if_writable(*file, "a descriptor of it was sent to another process");
  errno = saved_errno;
}

namespace {

void for_each_descriptor(const msghdr* message, void (*f)(int)) {
  auto* m = const_cast<msghdr*>(message);
  for (cmsghdr* part = CMSG_FIRSTHDR(m); part != nullptr; part = CMSG_NXTHDR(m, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    // The kernel refuses a part that does not fit the message.
    const auto* const end = static_cast<const unsigned char*>(m->msg_control) + m->msg_controllen;
    const auto* const begin = reinterpret_cast<const unsigned char*>(part);
    if (part->cmsg_len < CMSG_LEN(0) || part->cmsg_len > static_cast<size_t>(end - begin)) return;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof descriptor, sizeof descriptor);
      f(descriptor);
    }
  }
}

}  // namespace

void let_descriptors_leave(const msghdr* message) {
  if (is_inside() || message == nullptr || message->msg_controllen == 0) return;
  for_each_descriptor(message, let_be_sent);
}

void note_received(const msghdr& message) {
  if (is_inside() || message.msg_controllen == 0 || Door::instance().is_of_another_process())
    return;
  for_each_descriptor(&message, [](int fd) {
    Door::instance().note_descriptor(fd);
    Door::instance().opened_as_stranger(fd);
  });
}

// Other threads of the parent may have held the lock, or have been starting programs.
void forget_leaving_in_child() {
  std::construct_at(&lock);
  starting_count.store(0);
}

bool was_sent(const Identity& file) {
  const os::SignalBlock block;
  const os::Locked locked(lock);
  return has_sent(file);
}

Starting::Starting(const std::function<bool(int)>& leaves) { let_leave(leaves); }
Starting::Count::Count() { starting_count.fetch_add(1); }
Starting::Count::~Count() { starting_count.fetch_sub(1); }

bool Starting::is_any() { return starting_count.load() != 0; }

}  // namespace outcore::preload
