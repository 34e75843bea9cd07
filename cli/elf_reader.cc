#include "cli/elf_reader.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstring>

namespace outcore::cli {

ElfReader::ElfReader(int file) : fd_(file) {
  if (is_open() && (!read_bytes(0, &head_, sizeof head_) || !is_elf())) head_ = {};
}

ElfReader::ElfReader(const std::string& path, bool is_writable)
    : ElfReader(::open(path.c_str(), (is_writable ? O_RDWR : O_RDONLY) | O_CLOEXEC)) {
  is_ours_ = true;
}

ElfReader::~ElfReader() {
  if (is_ours_ && is_open()) ::close(fd_);
}

bool ElfReader::is_elf() const { return std::memcmp(head_.e_ident, ELFMAG, SELFMAG) == 0; }

bool ElfReader::is_x86_64() const {
  return is_elf() && head_.e_ident[EI_CLASS] == ELFCLASS64 &&
         head_.e_ident[EI_DATA] == ELFDATA2LSB && head_.e_machine == EM_X86_64;
}

std::vector<Elf64_Shdr> ElfReader::sections() const {
  if (head_.e_shoff == 0 || head_.e_shentsize != sizeof(Elf64_Shdr)) return {};
  return read<Elf64_Shdr>(head_.e_shoff, head_.e_shnum);
}

std::vector<Elf64_Phdr> ElfReader::segments() const {
  if (head_.e_phentsize != sizeof(Elf64_Phdr)) return {};
  return read<Elf64_Phdr>(head_.e_phoff, head_.e_phnum);
}

std::string ElfReader::names(const std::vector<Elf64_Shdr>& sections, uint32_t index) const {
  if (index >= sections.size()) return {};
  const std::vector<char> bytes = read<char>(sections[index].sh_offset, sections[index].sh_size);
  return {bytes.begin(), bytes.end()};
}

bool ElfReader::read_bytes(uint64_t offset, void* into, uint64_t size_bytes) const {
  auto* at = static_cast<char*>(into);
  while (size_bytes > 0) {
    const ssize_t n = ::pread(fd_, at, size_bytes, static_cast<off_t>(offset));
    if (n <= 0) return false;
    at += n, offset += static_cast<uint64_t>(n), size_bytes -= static_cast<uint64_t>(n);
  }
  return true;
}

bool ElfReader::write_bytes(uint64_t offset, const void* from, uint64_t size_bytes) const {
  return ::pwrite(fd_, from, size_bytes, static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(size_bytes);
}

}  // namespace outcore::cli
