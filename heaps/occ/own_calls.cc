#include "heaps/occ/own_calls.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string_view>

#include "cli/elf_reader.h"

namespace occ {

using outcore::cli::ElfReader;

namespace {

// Functions that are called by the library, its C++ library and heaps/occ/transfers.c; of the names
// that ISO C leaves to the program, those that transfers.c takes over. libc.a and the sanitizers
// define them as weak symbols, programs as global ones.
constexpr std::array<std::string_view, 54> kWeakElsewhere = {
    "access",   "clock_gettime", "close",     "closedir",  "faccessat",   "fallocate", "fcntl",
    "fdopen",   "fdopendir",     "flock",     "fopen64",   "fread",       "fstat",     "fstat64",
    "fstatfs",  "fstatvfs",      "ftruncate", "fwrite",    "geteuid",     "getpid",    "getrlimit",
    "ioctl",    "lseek",         "lseek64",   "madvise",   "mkdir",       "mmap",      "mprotect",
    "mremap",   "munmap",        "nanosleep", "open",      "openat",      "poll",      "pread",
    "pread64",  "pwrite",        "pwrite64",  "read",      "readdir",     "readv",     "recv",
    "renameat", "sched_yield",   "send",      "sigaction", "sigaltstack", "stat",      "strerror_r",
    "sysconf",  "uname",         "unlink",    "write",     "writev"};
// Global symbols in libc.a, too: in a static program they may come from there.
constexpr std::array<std::string_view, 15> kGlobalElsewhere = {
    "copy_file_range", "epoll_create1", "epoll_ctl", "epoll_wait",   "eventfd",
    "fdatasync",       "fsync",         "linkat",    "memfd_create", "mincore",
    "mkostemp",        "munlock",       "sendfile",  "syscall",      "unlinkat"};

template <size_t N>
bool is_among(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A hidden symbol is local in a linked file, although it was not local in its objects.
bool is_shared_by_files(const Elf64_Sym& symbol) {
  const unsigned binding = ELF64_ST_BIND(symbol.st_info);
  return binding == STB_GLOBAL ||
         (binding == STB_LOCAL && ELF64_ST_VISIBILITY(symbol.st_other) == STV_HIDDEN);
}

struct Found {
  std::string name;
  uint64_t address = 0;
};

std::optional<Found> find_in(const ElfReader& file, const std::vector<Elf64_Shdr>& sections,
                             const Elf64_Shdr& table, bool is_static) {
  const std::string names = file.names(sections, table.sh_link);
  for (const auto& symbol :
       file.read<Elf64_Sym>(table.sh_offset, table.sh_size / sizeof(Elf64_Sym))) {
    const bool is_defined = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < SHN_LORESERVE;
    if (!is_defined || !is_shared_by_files(symbol) || symbol.st_name >= names.size()) continue;
    const std::string_view name(names.c_str() + symbol.st_name);
    if (is_among(name, kWeakElsewhere) || (!is_static && is_among(name, kGlobalElsewhere)))
      return Found{std::string(name), symbol.st_value};
  }
  return std::nullopt;
}

// Looks in the symbols; in a stripped program in those for the run-time linker.
std::optional<Found> find_own_call(const ElfReader& file) {
  if (!file.is_open() || !file.is_x86_64()) return std::nullopt;
  const std::vector<Elf64_Shdr> sections = file.sections();
  const auto table_of = [&](uint32_t type) {
    return std::find_if(sections.begin(), sections.end(),
                        [=](const Elf64_Shdr& section) { return section.sh_type == type; });
  };
  const auto dynamic = table_of(SHT_DYNSYM), all = table_of(SHT_SYMTAB);
  const auto table = all != sections.end() ? all : dynamic;
  if (table == sections.end()) return std::nullopt;
  return find_in(file, sections, *table, file.is_program() && dynamic == sections.end());
}

}  // namespace

std::string refuse_own_calls(const std::string& program, const Words& inputs) {
  const ElfReader file(program);
  if (!file.is_program()) return "";
  const std::optional<Found> found = find_own_call(file);
  if (!found.has_value()) return "";
  char address[32];
  std::snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(found->address));
  std::string where = std::string("at ") + address + " of " + program;
  for (const std::string& input : inputs)
    if (input.size() > 2 && input.substr(input.size() - 2) == ".o")
      if (const auto inner = find_own_call(ElfReader(input)); inner && inner->name == found->name)
        where = "in " + input;
  return "the program defines " + found->name + " (" + where +
         "), which is a call of the system that Outcore needs: make it static, or rename it";
}

}  // namespace occ
