// stdio, which reads and writes by calls that we do not see. See calls.h.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "run/preload/calls.h"
#include "run/preload/descriptor_table.h"
#include "run/preload/joining_open.h"
#include "run/preload/path_calls.h"
#include "run/preload/words.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

// False: others still write it, and it must not be used so.
bool note_stdio(int fd) {
  if (is_inside() || is_borrowing()) return true;
  if (Door::is_any_taken()) Door::instance().note_descriptor(fd);
  DescriptorTable::set_stdio(fd, true);
  TakenFile* file = Door::is_any_taken() ? DescriptorTable::file_of(fd) : nullptr;
  if (file != nullptr && file->is_writable &&
      !Door::instance().leave_to_change(*file, "the program opens it by stdio"))
    return false;
  if (JoiningOpen::is_on()) Door::instance().opened_as_stranger(fd);
  return true;
}

FILE* opened_stdio(FILE* stream) {
  const int saved_errno = errno;
  if (stream != nullptr && prepare([stream] { return note_stdio(::fileno(stream)); }) != 0) {
    const int error = errno;
    real().fclose(stream);  // we would not see what is done through it
    return errno = error, nullptr;
  }
  errno = saved_errno;
  return stream;
}

bool before_stdio(const char* path, const char* mode) {
  if (!is_anybodys() || path == nullptr || mode == nullptr) return true;
  const bool writes = std::strpbrk(mode, "wa+") != nullptr;
  if (!writes) return true;
  if (is_borrowing()) return ask_for_path(AT_FDCWD, path, false), true;
  return Door::instance().before_path_change(AT_FDCWD, path, "the program opens it by stdio");
}

}  // namespace

OUTCORE_EXPORT FILE* fopen(const char* path, const char* mode) {
  if (prepare([&] { return before_stdio(path, mode); }) != 0) return nullptr;
  return opened_stdio(real().fopen(path, mode));
}
OUTCORE_ALIAS(FILE*, fopen64, (const char*, const char*), fopen);

OUTCORE_EXPORT FILE* freopen(const char* path, const char* mode, FILE* stream) {
  if (prepare([&] { return before_stdio(path, mode); }) != 0) return nullptr;
  const bool is_noted = !is_inside() && !is_borrowing() && stream != nullptr;
  const int fd = is_noted ? ::fileno(stream) : -1;
  TakenFile* const file = fd >= 0 ? DescriptorTable::entry_of(fd) : nullptr;
  if (fd >= 0) DescriptorTable::closed(fd);  // by the call, also if that fails
  FILE* const again = opened_stdio(real().freopen(path, mode, stream));
  if (file != nullptr) afterwards([file] { Door::instance().closed_descriptor(*file); });
  if (is_noted && again != nullptr && ::fileno(again) == STDERR_FILENO) note_standard_error();
  return again;
}
OUTCORE_ALIAS(FILE*, freopen64, (const char*, const char*, FILE*), freopen);

OUTCORE_EXPORT int fclose(FILE* stream) {
  if (is_inside() || stream == nullptr) return real().fclose(stream);
  const int fd = ::fileno(stream);
  if (!DescriptorTable::is_marked(fd) || is_borrowing()) return real().fclose(stream);
  TakenFile* file = DescriptorTable::entry_of(fd);
  DescriptorTable::closed(fd);
  const int result = real().fclose(stream);
  if (file != nullptr) afterwards([file] { Door::instance().closed_descriptor(*file); });
  return result;
}

OUTCORE_EXPORT FILE* fdopen(int fd, const char* mode) noexcept {
  const bool was_stdio = DescriptorTable::is_stdio(fd);
  const auto before = [fd] {
    static_cast<void>(DescriptorTable::file_of(fd));  // for a child of vfork: see there
    return note_stdio(fd);
  };
  FILE* stream = prepare(before) == 0 ? real().fdopen(fd, mode) : nullptr;
  if (stream == nullptr && !is_inside() && !is_borrowing())
    DescriptorTable::set_stdio(fd, was_stdio);
  return stream;
}
