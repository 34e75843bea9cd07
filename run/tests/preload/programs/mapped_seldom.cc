// mapped_seldom FOLDER [--seed N]: two files are mapped for a moment, again and again, in parts or
// as wholes, to be read or written; between that they are changed by calls, by children that have a
// descriptor or open them, by stdio; become longer and shorter; are closed, replaced and removed.
// After each step the file has what it should have, by a call and by a mapping. Prints the steps.
#include <fcntl.h>
#include <sys/stat.h>

#include <vector>

#include "program.h"

using namespace program;

namespace {

uint64_t state = 1;

uint64_t random_below(uint64_t count) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state % count;
}

struct File {
  const char* path;
  int number = -1;
  std::vector<unsigned char> bytes;  // what it should have
};

void open_again(File* file) {
  if (file->number >= 0) ::close(file->number);
  file->number = ::open(file->path, random_below(3) == 0 ? O_RDWR | O_CLOEXEC : O_RDWR);
  require(file->number >= 0, "open");
}

void make(File* file, uint64_t pages) {
  if (file->number >= 0) ::close(file->number);
  ::unlink(file->path);
  file->number = make_file(file->path, pages * kPageBytes, state);
  file->bytes.resize(pages * kPageBytes);
  require(::pread(file->number, file->bytes.data(), file->bytes.size(), 0) ==
              static_cast<ssize_t>(file->bytes.size()),
          "read what was made");
}

// Some bytes of the file, and new ones for them.
struct Change {
  uint64_t at, size;
  unsigned char bytes[256];
};

Change some_change(File* file) {
  Change change{random_below(file->bytes.size()), 1 + random_below(256), {}};
  if (change.size > file->bytes.size() - change.at) change.size = file->bytes.size() - change.at;
  for (unsigned char& byte : change.bytes) byte = static_cast<unsigned char>(random_below(256));
  std::memcpy(file->bytes.data() + change.at, change.bytes, change.size);
  return change;
}

// Maps a part, compares it, writes into it, and unmaps it.
void map_for_a_moment(File* file, bool is_written) {
  const uint64_t pages = file->bytes.size() / kPageBytes;
  const uint64_t first = random_below(2) == 0 ? 0 : random_below(pages);
  const uint64_t count = random_below(2) == 0 ? pages - first : 1 + random_below(pages - first);
  const int flags = is_written || random_below(2) == 0 ? MAP_SHARED : MAP_PRIVATE;
  void* const at =
      ::mmap(nullptr, count * kPageBytes, is_written ? PROT_READ | PROT_WRITE : PROT_READ, flags,
             file->number, static_cast<off_t>(first * kPageBytes));
  require(at != MAP_FAILED, "mmap");
  auto* const bytes = static_cast<unsigned char*>(at);
  require(std::memcmp(bytes, file->bytes.data() + first * kPageBytes, count * kPageBytes) == 0,
          "what is mapped");
  for (int i = 0; is_written && i < 3; ++i) {
    const uint64_t place = random_below(count * kPageBytes);
    bytes[place] = file->bytes[first * kPageBytes + place] =
        static_cast<unsigned char>(random_below(256));
  }
  if (random_below(4) == 0) require(::msync(at, count * kPageBytes, MS_SYNC) == 0, "msync");
  require(::munmap(at, count * kPageBytes) == 0, "munmap");
}

void change_in_child(File* file, bool opens) {
  const Change change = some_change(file);
  const pid_t child = ::fork();
  if (child == 0) {
    const int number = opens ? ::open(file->path, O_RDWR) : file->number;
    const bool is_done =
        ::pwrite(number, change.bytes, change.size, static_cast<off_t>(change.at)) ==
        static_cast<ssize_t>(change.size);
    ::_exit(is_done ? 0 : 1);
  }
  require(code_of(child) == 0, "a child that writes");
}

void change_by_stdio(File* file) {
  const Change change = some_change(file);
  FILE* const stream = std::fopen(file->path, "r+");
  require(stream != nullptr && std::fseek(stream, static_cast<long>(change.at), SEEK_SET) == 0 &&
              std::fwrite(change.bytes, 1, change.size, stream) == change.size &&
              std::fclose(stream) == 0,
          "stdio");
}

void resize(File* file) {
  const uint64_t pages = 1 + random_below(64);
  require(::ftruncate(file->number, static_cast<off_t>(pages * kPageBytes)) == 0, "ftruncate");
  file->bytes.resize(pages * kPageBytes);
}

void punch(File* file) {
  const Change change = some_change(file);
  std::memset(file->bytes.data() + change.at, 0, change.size);
  require(::fallocate(file->number, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      static_cast<off_t>(change.at), static_cast<off_t>(change.size)) == 0,
          "fallocate");
}

void compare(File* file) {
  std::vector<unsigned char> read(file->bytes.size());
  require(::pread(file->number, read.data(), read.size(), 0) == static_cast<ssize_t>(read.size()),
          "pread");
  require(read == file->bytes, "what a call reads");
}

const char* take_step(File* file) {
  switch (random_below(24)) {
    case 0:
      return open_again(file), "open";
    case 1:
      return make(file, 1 + random_below(64)), "replace";
    case 2:
      return change_in_child(file, true), "child opens";
    case 3:
      return change_in_child(file, false), "child writes";
    case 4:
      return change_by_stdio(file), "stdio";
    case 5:
      return resize(file), "resize";
    case 6:
      return punch(file), "punch";
    case 7:
    case 8: {
      const Change change = some_change(file);
      require(::pwrite(file->number, change.bytes, change.size, static_cast<off_t>(change.at)) ==
                  static_cast<ssize_t>(change.size),
              "pwrite");
      return "pwrite";
    }
    case 9:
      return compare(file), "compare";
    case 10:
    case 11:
    case 12:
    case 13:
      return map_for_a_moment(file, true), "map to write";
    default:
      return map_for_a_moment(file, false), "map to read";
  }
}

}  // namespace

int main(int count, char** arguments) {
  for (int i = 1; i + 1 < count; ++i)
    if (std::strcmp(arguments[i], "--seed") == 0)
      state = std::strtoull(arguments[i + 1], nullptr, 10);
  // agree.sh puts the seed first.
  char* folder[] = {arguments[0], arguments[count - 1], nullptr};
  begin(2, folder);
  state = word_at(state, 7) | 1;
  File files[2] = {{"one", -1, {}}, {"two", -1, {}}};
  for (File& file : files) make(&file, 16);
  for (int step = 0; step < 400; ++step) {
    const uint64_t which = random_below(2);
    std::printf("%d %s %s\n", step, files[which].path, take_step(&files[which]));
    map_for_a_moment(&files[which], false);
  }
  for (File& file : files) compare(&file);
  return 0;
}
