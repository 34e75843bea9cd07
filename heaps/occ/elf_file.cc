#include "heaps/occ/elf_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

namespace occ {

ElfFile::ElfFile(const std::string& path, bool is_writable)
    : fd_(::open(path.c_str(), (is_writable ? O_RDWR : O_RDONLY) | O_CLOEXEC)) {
  if (is_open() && (!read(0, &head_) || !is_elf())) head_ = {};
}

ElfFile::~ElfFile() {
  if (is_open()) ::close(fd_);
}

bool ElfFile::is_elf() const { return std::memcmp(head_.e_ident, ELFMAG, SELFMAG) == 0; }

bool ElfFile::is_x86_64() const {
  return is_elf() && head_.e_ident[EI_CLASS] == ELFCLASS64 && head_.e_machine == EM_X86_64;
}

std::vector<Elf64_Shdr> ElfFile::sections() const {
  std::vector<Elf64_Shdr> all(head_.e_shnum);
  if (head_.e_shentsize != sizeof(Elf64_Shdr) || head_.e_shstrndx >= head_.e_shnum ||
      !read(head_.e_shoff, all.data(), all.size()))
    all.clear();
  return all;
}

bool ElfFile::read_bytes(uint64_t offset, void* into, uint64_t size_bytes) const {
  auto* at = static_cast<char*>(into);
  while (size_bytes > 0) {
    const ssize_t n = ::pread(fd_, at, size_bytes, static_cast<off_t>(offset));
    if (n <= 0) return false;
    at += n, offset += static_cast<uint64_t>(n), size_bytes -= static_cast<uint64_t>(n);
  }
  return true;
}

bool ElfFile::write_bytes(uint64_t offset, const void* from, uint64_t size_bytes) const {
  return ::pwrite(fd_, from, size_bytes, static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(size_bytes);
}

}  // namespace occ
