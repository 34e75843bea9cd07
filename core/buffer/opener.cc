#include "core/buffer/opener.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>

#include "core/os/process_stat.h"

namespace outcore::buffer {
namespace {

// In ticks since the machine was started: with it a number means one process for ever. 0: there is
// none.
uint64_t start_of(int32_t process) {
  char path[32], text[1024];
  std::snprintf(path, sizeof path, "/proc/%d/stat", process);
  // By number, as the caller may have a table of descriptors of its own: in a process that keeps
  // account of the library's descriptors this one would be taken for one of the process's table.
  const auto fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0));
  if (fd < 0) return 0;
  const ssize_t bytes = ::read(fd, text, sizeof text);
  static_cast<void>(::syscall(SYS_close, fd));
  if (bytes <= 0) return 0;
  return os::ProcessStat({text, static_cast<size_t>(bytes)}).number(os::ProcessStat::kStartTicks);
}

}  // namespace

void Opener::introduce(Member& member) {
  MemberRecord& record = member.record();
  record.process_start.store(start_of(::getpid()));
  record.process.store(static_cast<uint64_t>(::getpid()));
}

const MemberRecord* Opener::find(const Board& board, int32_t process, bool may_have_ended) {
  if (process <= 0) return nullptr;  // of a namespace that is not seen from here
  const uint32_t end = board.members_end.load();
  for (uint32_t i = 0; i < end && i < kMembersMax; ++i) {
    const MemberRecord& record = board.members[i];
    if (record.process.load() != static_cast<uint64_t>(process)) continue;
    const uint64_t start = record.process_start.load(), now = start_of(process);
    if (start != 0 && (start == now || (now == 0 && may_have_ended))) return &record;
  }
  return nullptr;
}

}  // namespace outcore::buffer
