// ElfFile: what the headers of an ELF file say of how it is loaded. Any thread.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace outcore::cli {

struct ElfFile {
  enum class Kind { kProgram, kSharedObject, kOther };  // kOther: object files, core dumps
  Kind kind = Kind::kOther;
  bool is_ours = false;     // 64-bit x86-64: the rest of this is only known then
  std::string machine;      // "64-bit x86-64", "32-bit ARM"
  std::string interpreter;  // PT_INTERP, the loader that starts it; empty: statically linked
  bool is_go = false;
};

// The names in its symbol tables.
struct ElfSymbols {
  bool has_tables = false;             // false: they were stripped, and nothing else is known
  std::vector<std::string> libraries;  // DT_NEEDED
  std::set<std::string, std::less<>> imports;      // functions it takes from libraries
  std::set<std::string, std::less<>> definitions;  // functions of its own, as far as named
  std::set<std::string, std::less<>> exports;      // those of its own that the loader finds
};

// Reads headers only: a few system calls. nullopt: the file is not an ELF file, or is cut short.
std::optional<ElfFile> read_elf(int file);
// Reads the symbol tables. REQUIRES: read_elf() says is_ours.
ElfSymbols read_elf_symbols(int file);

}  // namespace outcore::cli
