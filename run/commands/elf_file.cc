#include "run/commands/elf_file.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace outcore::cli {
namespace {

constexpr uint64_t kInterpreterBytesMax = 4096;
constexpr uint64_t kNotesBytesMax = 65536;
constexpr uint64_t kTableBytesMax = uint64_t{1} << 30;  // of symbols, or of their names

struct MachineName {
  uint16_t number;
  const char* name;
};
constexpr MachineName kMachines[] = {
    {EM_386, "x86"},       {EM_X86_64, "x86-64"},      {EM_ARM, "ARM"},    {EM_AARCH64, "ARM"},
    {EM_RISCV, "RISC-V"},  {EM_PPC64, "PowerPC"},      {EM_S390, "IBM Z"}, {EM_MIPS, "MIPS"},
    {EM_SPARCV9, "SPARC"}, {EM_LOONGARCH, "LoongArch"}};

// `count` things at an offset; none if the file ends before.
template <typename T>
std::vector<T> read_at(int file, uint64_t offset, uint64_t count) {
  std::vector<T> things(count);
  char* const into = reinterpret_cast<char*>(things.data());
  const size_t size_bytes = count * sizeof(T);
  for (size_t done = 0; done < size_bytes;) {
    const ssize_t n = ::pread(file, into + done, size_bytes - done, offset + done);
    if (n <= 0) return {};
    done += static_cast<size_t>(n);
  }
  return things;
}

std::string machine_of(const Elf64_Ehdr& header) {
  const bool is_swapped = header.e_ident[EI_DATA] != ELFDATA2LSB;
  const auto number =
      static_cast<uint16_t>(is_swapped ? __builtin_bswap16(header.e_machine) : header.e_machine);
  const std::string bits = header.e_ident[EI_CLASS] == ELFCLASS64 ? "64-bit " : "32-bit ";
  for (const MachineName& machine : kMachines)
    if (machine.number == number) return bits + machine.name;
  return bits + "machine number " + std::to_string(number);
}

// Go marks its programs by a note, also where there are no sections.
bool has_go_note(const std::vector<char>& notes) {
  for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof note);
    at += sizeof note;
    if (note.n_namesz == 4 && at + 4 <= notes.size() && std::memcmp(&notes[at], "Go\0", 4) == 0)
      return true;
    const uint64_t rest =
        (uint64_t{note.n_namesz} + 3) / 4 * 4 + (uint64_t{note.n_descsz} + 3) / 4 * 4;
    if (rest > notes.size()) break;
    at += rest;
  }
  return false;
}

struct Sections {
  std::vector<Elf64_Shdr> headers;
  std::vector<char> names;

  std::string_view name_of(const Elf64_Shdr& section) const {
    return section.sh_name < names.size() ? names.data() + section.sh_name : "";
  }
};

// Names as a section holds them, ended by a zero whatever it says.
std::vector<char> read_names(int file, const Elf64_Shdr& section) {
  if (section.sh_size > kTableBytesMax) return {};
  std::vector<char> names = read_at<char>(file, section.sh_offset, section.sh_size);
  names.push_back(0);
  return names;
}

Sections read_sections(int file, const Elf64_Ehdr& header) {
  if (header.e_shoff == 0 || header.e_shentsize != sizeof(Elf64_Shdr)) return {};
  Sections sections;
  sections.headers = read_at<Elf64_Shdr>(file, header.e_shoff, header.e_shnum);
  if (header.e_shstrndx < sections.headers.size())
    sections.names = read_names(file, sections.headers[header.e_shstrndx]);
  return sections;
}

void read_segments(int file, const Elf64_Ehdr& header, ElfFile* elf) {
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return;
  for (const auto& segment : read_at<Elf64_Phdr>(file, header.e_phoff, header.e_phnum)) {
    if (segment.p_type == PT_INTERP) {
      const uint64_t size = std::min<uint64_t>(segment.p_filesz, kInterpreterBytesMax);
      std::vector<char> text = read_at<char>(file, segment.p_offset, size);
      text.push_back(0);
      elf->interpreter = text.data();
    } else if (segment.p_type == PT_NOTE) {
      const uint64_t size = std::min<uint64_t>(segment.p_filesz, kNotesBytesMax);
      if (has_go_note(read_at<char>(file, segment.p_offset, size))) elf->is_go = true;
    }
  }
}

// A program that may lie anywhere has the type of a shared object; this flag tells them apart.
bool is_position_independent_program(int file, const Elf64_Ehdr& header) {
  for (const auto& segment : read_at<Elf64_Phdr>(file, header.e_phoff, header.e_phnum)) {
    if (segment.p_type != PT_DYNAMIC || segment.p_filesz > kTableBytesMax) continue;
    const uint64_t count = segment.p_filesz / sizeof(Elf64_Dyn);
    for (const auto& entry : read_at<Elf64_Dyn>(file, segment.p_offset, count))
      if (entry.d_tag == DT_FLAGS_1 && (entry.d_un.d_val & DF_1_PIE) != 0) return true;
  }
  return false;
}

void add_symbols(int file, const Sections& sections, const Elf64_Shdr& table, ElfSymbols* symbols) {
  if (table.sh_link >= sections.headers.size() || table.sh_size > kTableBytesMax) return;
  const std::vector<char> names = read_names(file, sections.headers[table.sh_link]);
  const bool is_dynamic = table.sh_type == SHT_DYNSYM;
  symbols->has_tables |= is_dynamic;
  for (const auto& symbol :
       read_at<Elf64_Sym>(file, table.sh_offset, table.sh_size / sizeof(Elf64_Sym))) {
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    if (symbol.st_name >= names.size() || (type != STT_FUNC && type != STT_NOTYPE)) continue;
    const char* const name = names.data() + symbol.st_name;
    if (symbol.st_shndx == SHN_UNDEF) {
      if (is_dynamic) symbols->imports.insert(name);
      continue;
    }
    symbols->definitions.insert(name);
    if (is_dynamic) symbols->exports.insert(name);
  }
}

void add_libraries(int file, const Sections& sections, const Elf64_Shdr& dynamic,
                   ElfSymbols* symbols) {
  if (dynamic.sh_link >= sections.headers.size() || dynamic.sh_size > kTableBytesMax) return;
  const std::vector<char> names = read_names(file, sections.headers[dynamic.sh_link]);
  for (const auto& entry :
       read_at<Elf64_Dyn>(file, dynamic.sh_offset, dynamic.sh_size / sizeof(Elf64_Dyn)))
    if (entry.d_tag == DT_NEEDED && entry.d_un.d_val < names.size())
      symbols->libraries.emplace_back(names.data() + entry.d_un.d_val);
}

}  // namespace

std::optional<ElfFile> read_elf(int file) {
  const std::vector<Elf64_Ehdr> read = read_at<Elf64_Ehdr>(file, 0, 1);
  if (read.empty() || std::memcmp(read[0].e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
  const Elf64_Ehdr& header = read[0];
  ElfFile elf;
  elf.machine = machine_of(header);
  elf.is_ours = header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == ELFDATA2LSB &&
                header.e_machine == EM_X86_64;
  if (!elf.is_ours) {
    elf.kind = ElfFile::Kind::kProgram;  // whatever it is, its machine is not this one
    return elf;
  }
  read_segments(file, header, &elf);
  const Sections sections = read_sections(file, header);
  for (const Elf64_Shdr& section : sections.headers)
    elf.is_go |= sections.name_of(section) == ".go.buildinfo";
  if (header.e_type == ET_EXEC)
    elf.kind = ElfFile::Kind::kProgram;
  else if (header.e_type == ET_DYN)
    elf.kind = !elf.interpreter.empty() || is_position_independent_program(file, header)
                   ? ElfFile::Kind::kProgram
                   : ElfFile::Kind::kSharedObject;
  return elf;
}

ElfSymbols read_elf_symbols(int file) {
  ElfSymbols symbols;
  const std::vector<Elf64_Ehdr> header = read_at<Elf64_Ehdr>(file, 0, 1);
  if (header.empty()) return symbols;
  const Sections sections = read_sections(file, header[0]);
  for (const Elf64_Shdr& section : sections.headers) {
    if (section.sh_type == SHT_DYNSYM || section.sh_type == SHT_SYMTAB)
      add_symbols(file, sections, section, &symbols);
    else if (section.sh_type == SHT_DYNAMIC)
      add_libraries(file, sections, section, &symbols);
  }
  return symbols;
}

}  // namespace outcore::cli
