#include "heaps/occ/section.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "cli/elf_reader.h"

namespace occ {

using outcore::cli::ElfReader;

namespace {

constexpr const char* kName = ".outcore_dlm";

// False: the file has no such section, or is truncated.
bool find_section(const ElfReader& file, Elf64_Shdr* found) {
  const std::vector<Elf64_Shdr> sections = file.sections();
  const std::string names = file.names(sections, file.head().e_shstrndx);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_name >= names.size() ||
        names.c_str() + section.sh_name != std::string_view(kName))
      continue;
    *found = section;
    return true;
  }
  return false;
}

std::string wrong_with(const Elf64_Shdr& section) {
  if ((section.sh_flags & SHF_TLS) != 0)
    return "dlm data is thread_local: there is one of it, for all threads; drop one of the words";
  if (section.sh_type != SHT_NOBITS)
    return "dlm data has initial values, which it cannot have: assign them in the program";
  const uint64_t end = section.sh_addr < kFirst ? kEndLow : kEnd;
  if (section.sh_size > end - section.sh_addr)
    return "dlm arrays of " + std::to_string(section.sh_size >> 30) + " GiB: at most " +
           std::to_string((end - section.sh_addr) >> 30) + " GiB have addresses" +
           (end == kEndLow ? " under this sanitizer" : "");
  return "";
}

std::string failed(const std::string& what) { return what + ": " + std::strerror(errno); }

}  // namespace

std::string unload_section(const std::string& program) {
  struct stat facts {};
  if (::stat(program.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return "";
  const ElfReader file(program, true);
  if (!file.is_open()) return failed("open " + program);
  if (!file.is_elf() || !file.is_program()) return "";
  if (!file.is_x86_64())
    return program + " is not an x86-64 program: leave out what asks for another";
  Elf64_Shdr section{};
  if (!find_section(file, &section) || section.sh_size == 0) return "";  // dlm_alloc alone
  if (std::string wrong = wrong_with(section); !wrong.empty()) return wrong;
  std::vector<Elf64_Phdr> segments = file.segments();
  if (segments.size() != file.head().e_phnum) return failed("read the segments of " + program);
  for (size_t i = 0; i < segments.size(); ++i) {
    const uint64_t at = file.head().e_phoff + i * sizeof(Elf64_Phdr);
    Elf64_Phdr& segment = segments[i];
    const bool is_section = segment.p_vaddr == section.sh_addr;
    const bool overlaps = segment.p_vaddr < section.sh_addr + section.sh_size &&
                          section.sh_addr < segment.p_vaddr + segment.p_memsz;
    if (segment.p_type != PT_LOAD || !overlaps) continue;
    if (!is_section || segment.p_filesz != 0 || segment.p_memsz > section.sh_size + 4096)
      return program + ": its linker put something else beside dlm data; link with GNU ld or lld";
    segment.p_type = PT_NULL;
    if (!file.write(at, segment)) return failed("write the segments of " + program);
  }
  return "";
}

}  // namespace occ
