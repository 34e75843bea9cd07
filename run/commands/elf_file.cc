#include "run/commands/elf_file.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "cli/assert.h"
#include "cli/elf_reader.h"
#include "run/preload/go_note.h"

namespace outcore::cli {
namespace {

constexpr uint64_t kInterpreterBytesMax = 4096;
constexpr uint64_t kNotesBytesMax = 65536;

struct MachineName {
  uint16_t number;
  const char* name;
};
constexpr MachineName kMachines[] = {
    {EM_386, "x86"},       {EM_X86_64, "x86-64"},      {EM_ARM, "ARM"},    {EM_AARCH64, "ARM"},
    {EM_RISCV, "RISC-V"},  {EM_PPC64, "PowerPC"},      {EM_S390, "IBM Z"}, {EM_MIPS, "MIPS"},
    {EM_SPARCV9, "SPARC"}, {EM_LOONGARCH, "LoongArch"}};

std::string machine_of(const Elf64_Ehdr& header) {
  const bool is_swapped = header.e_ident[EI_DATA] != ELFDATA2LSB;
  const auto number =
      static_cast<uint16_t>(is_swapped ? __builtin_bswap16(header.e_machine) : header.e_machine);
  const std::string bits = header.e_ident[EI_CLASS] == ELFCLASS64 ? "64-bit " : "32-bit ";
  for (const MachineName& machine : kMachines)
    if (machine.number == number) return bits + machine.name;
  return bits + "machine number " + std::to_string(number);
}

void read_segments(const ElfReader& file, ElfFile* elf) {
  for (const auto& segment : file.segments()) {
    if (segment.p_type == PT_INTERP) {
      const uint64_t size = std::min<uint64_t>(segment.p_filesz, kInterpreterBytesMax);
      std::vector<char> text = file.read<char>(segment.p_offset, size);
      text.push_back(0);
      elf->interpreter = text.data();
    } else if (segment.p_type == PT_NOTE) {
      const uint64_t size = std::min<uint64_t>(segment.p_filesz, kNotesBytesMax);
      // Also where there are no sections.
      if (preload::has_go_note(file.read<char>(segment.p_offset, size))) elf->is_go = true;
    }
  }
}

// A program that may lie anywhere has the type of a shared object; this flag tells them apart.
bool is_position_independent_program(const ElfReader& file) {
  for (const auto& segment : file.segments()) {
    if (segment.p_type != PT_DYNAMIC) continue;
    const uint64_t count = segment.p_filesz / sizeof(Elf64_Dyn);
    for (const auto& entry : file.read<Elf64_Dyn>(segment.p_offset, count))
      if (entry.d_tag == DT_FLAGS_1 && (entry.d_un.d_val & DF_1_PIE) != 0) return true;
  }
  return false;
}

void add_symbols(const ElfReader& file, const std::vector<Elf64_Shdr>& sections,
                 const Elf64_Shdr& table, ElfSymbols* symbols) {
  const std::string names = file.names(sections, table.sh_link);
  const bool is_dynamic = table.sh_type == SHT_DYNSYM;
  symbols->has_tables |= is_dynamic;
  for (const auto& symbol :
       file.read<Elf64_Sym>(table.sh_offset, table.sh_size / sizeof(Elf64_Sym))) {
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    if (symbol.st_name >= names.size() || (type != STT_FUNC && type != STT_NOTYPE)) continue;
    const char* const name = names.c_str() + symbol.st_name;
    if (symbol.st_shndx == SHN_UNDEF) {
      if (is_dynamic) symbols->imports.insert(name);
      continue;
    }
    symbols->definitions.insert(name);
    if (is_dynamic) symbols->exports.insert(name);
  }
}

void add_libraries(const ElfReader& file, const std::vector<Elf64_Shdr>& sections,
                   const Elf64_Shdr& dynamic, ElfSymbols* symbols) {
  const std::string names = file.names(sections, dynamic.sh_link);
  for (const auto& entry :
       file.read<Elf64_Dyn>(dynamic.sh_offset, dynamic.sh_size / sizeof(Elf64_Dyn)))
    if (entry.d_tag == DT_NEEDED && entry.d_un.d_val < names.size())
      symbols->libraries.emplace_back(names.c_str() + entry.d_un.d_val);
}

}  // namespace

std::optional<ElfFile> read_elf(int file) {
  const ElfReader reader(file);
  if (!reader.is_elf()) return std::nullopt;
  ElfFile elf;
  elf.machine = machine_of(reader.head());
  elf.is_ours = reader.is_x86_64();
  if (!elf.is_ours) {
    elf.kind = ElfFile::Kind::kProgram;  // whatever it is, its machine is not this one
    return elf;
  }
  read_segments(reader, &elf);
  const std::vector<Elf64_Shdr> sections = reader.sections();
  const std::string names = reader.names(sections, reader.head().e_shstrndx);
  for (const Elf64_Shdr& section : sections)
    elf.is_go |= section.sh_name < names.size() &&
                 names.c_str() + section.sh_name == std::string_view(".go.buildinfo");
  if (reader.head().e_type == ET_EXEC)
    elf.kind = ElfFile::Kind::kProgram;
  else if (reader.head().e_type == ET_DYN)
    elf.kind = !elf.interpreter.empty() || is_position_independent_program(reader)
                   ? ElfFile::Kind::kProgram
                   : ElfFile::Kind::kSharedObject;
  return elf;
}

ElfSymbols read_elf_symbols(int file) {
  ElfSymbols symbols;
  const ElfReader reader(file);
  CLI_CHECK(reader.is_x86_64());
  const std::vector<Elf64_Shdr> sections = reader.sections();
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type == SHT_DYNSYM || section.sh_type == SHT_SYMTAB)
      add_symbols(reader, sections, section, &symbols);
    else if (section.sh_type == SHT_DYNAMIC)
      add_libraries(reader, sections, section, &symbols);
  }
  return symbols;
}

}  // namespace outcore::cli
