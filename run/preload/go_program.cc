#include "run/preload/go_program.h"

#include <elf.h>
#include <fcntl.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/os/file_calls.h"
#include "run/preload/go_note.h"
#include "run/preload/real.h"

namespace outcore::preload {
namespace {

constexpr uint64_t kNotesBytesMax = uint64_t{64} << 10, kNamesBytesMax = uint64_t{1} << 20;
constexpr uint64_t kEntriesMax = 65'536;  // of a table in the file

// What the file has there; empty if it has less, or that is more than such a part ever is.
template <typename T>
std::vector<T> read_part(int file, uint64_t offset, uint64_t count, uint64_t most) {
  if (count > most) return {};
  std::vector<T> part(count);
  std::byte* const bytes = reinterpret_cast<std::byte*>(part.data());
  if (os::read_all(file, offset, {bytes, count * sizeof(T)}) != 0) return {};
  return part;
}

bool has_mark(int file) {
  const auto heads = read_part<Elf64_Ehdr>(file, 0, 1, 1);
  if (heads.empty()) return false;
  const Elf64_Ehdr& head = heads[0];
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64)
    return false;
  for (const auto& segment : read_part<Elf64_Phdr>(file, head.e_phoff, head.e_phnum, kEntriesMax))
    if (segment.p_type == PT_NOTE &&
        has_go_note(read_part<char>(file, segment.p_offset, segment.p_filesz, kNotesBytesMax)))
      return true;
  // The note may be left out (-buildid=); this section only with all others.
  const auto sections = read_part<Elf64_Shdr>(file, head.e_shoff, head.e_shnum, kEntriesMax);
  if (head.e_shstrndx >= sections.size()) return false;
  const Elf64_Shdr& of_names = sections[head.e_shstrndx];
  std::vector<char> names =
      read_part<char>(file, of_names.sh_offset, of_names.sh_size, kNamesBytesMax);
  names.push_back(0);
  for (const Elf64_Shdr& section : sections)
    if (section.sh_name < names.size() &&
        names.data() + section.sh_name == std::string_view(".go.buildinfo"))
      return true;
  return false;
}

}  // namespace

bool is_go_program() {
  const int file = real().open("/proc/self/exe", O_RDONLY | O_CLOEXEC, 0);
  if (file < 0) return false;
  const bool has = has_mark(file);
  real().close(file);
  return has;
}

}  // namespace outcore::preload
