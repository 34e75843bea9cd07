// Calls that change the size and the space of an open file. See calls.h.
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "run/preload/calls.h"
#include "run/preload/descriptor_table.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

OUTCORE_EXPORT int ftruncate(int fd, off_t size) noexcept {
  TakenFile* file = is_plain() ? nullptr : DescriptorTable::file_of(fd);
  if (file == nullptr) return real().ftruncate(fd, size);
  struct stat about;
  // Others would make it longer again.
  const auto leave = [&] { return Door::instance().leave_to_change(*file, "it is made shorter"); };
  if (::fstat(fd, &about) == 0 && size < about.st_size && prepare(leave) != 0) return -1;
  const int result = real().ftruncate(fd, size);
  afterwards([file] { Door::instance().note_growth(*file); });
  return result;
}
OUTCORE_ALIAS(int, ftruncate64, (int, off_t), ftruncate);

OUTCORE_EXPORT int fallocate(int fd, int mode, off_t at, off_t size) {
  TakenFile* file = is_plain() ? nullptr : DescriptorTable::file_of(fd);
  if (file == nullptr) return real().fallocate(fd, mode, at, size);
  Door& door = Door::instance();
  constexpr int kSpaceOnly = FALLOC_FL_KEEP_SIZE;
  constexpr int kZeros = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE;
  const auto leave = [&] {
    return door.leave_to_change(*file, "its bytes are moved or unshared (fallocate)");
  };
  if ((mode & ~(kSpaceOnly | kZeros)) != 0 && prepare(leave) != 0) return -1;
  const auto change = [&] { return real().fallocate(fd, mode, at, size); };
  if ((mode & kZeros) != 0 && at >= 0 && size > 0)
    return change_file(
        *file, [at] { return static_cast<uint64_t>(at); }, static_cast<uint64_t>(size), change);
  const int result = change();
  afterwards([&] { door.note_growth(*file); });
  return result;
}
OUTCORE_ALIAS(int, fallocate64, (int, int, off_t, off_t), fallocate);

OUTCORE_EXPORT int posix_fallocate(int fd, off_t at, off_t size) {
  TakenFile* file = is_plain() ? nullptr : DescriptorTable::file_of(fd);
  const int result = real().posix_fallocate(fd, at, size);
  if (file != nullptr) afterwards([file] { Door::instance().note_growth(*file); });
  return result;
}
OUTCORE_ALIAS(int, posix_fallocate64, (int, off_t, off_t), posix_fallocate);
