// ElfFile: a file of the linker's, read and written at offsets. One thread.
#pragma once

#include <elf.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace occ {

class ElfFile {
 public:
  explicit ElfFile(const std::string& path, bool is_writable = false);
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  bool is_open() const { return fd_ >= 0; }
  bool is_elf() const;     // of any kind; else head() is zeros
  bool is_x86_64() const;  // what follows is read of these
  bool is_program() const { return head_.e_type == ET_EXEC || head_.e_type == ET_DYN; }
  const Elf64_Ehdr& head() const { return head_; }
  // None: the file has none, or is cut short.
  std::vector<Elf64_Shdr> sections() const;

  // False: the file is shorter.
  bool read_bytes(uint64_t offset, void* into, uint64_t size_bytes) const;
  bool write_bytes(uint64_t offset, const void* from, uint64_t size_bytes) const;
  template <typename T>
  bool read(uint64_t offset, T* into, size_t count = 1) const {
    return read_bytes(offset, into, count * sizeof(T));
  }
  template <typename T>
  bool write(uint64_t offset, const T& from) const {
    return write_bytes(offset, &from, sizeof from);
  }

 private:
  int fd_ = -1;
  Elf64_Ehdr head_{};
};

}  // namespace occ
