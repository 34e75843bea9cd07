// ElfReader: an ELF file, read and written at offsets: of the command, which looks at programs, and
// of occ, which changes them. One thread.
#pragma once

#include <elf.h>

#include <cstdint>
#include <string>
#include <vector>

namespace outcore::cli {

class ElfReader {
 public:
  explicit ElfReader(const std::string& path, bool is_writable = false);
  explicit ElfReader(int file);  // which stays the caller's
  ~ElfReader();
  ElfReader(const ElfReader&) = delete;
  ElfReader& operator=(const ElfReader&) = delete;

  bool is_open() const { return fd_ >= 0; }
  bool is_elf() const;     // of any kind; else head() is zeros
  bool is_x86_64() const;  // what follows is read of these
  bool is_program() const { return head_.e_type == ET_EXEC || head_.e_type == ET_DYN; }
  const Elf64_Ehdr& head() const { return head_; }
  // None: the file has none, or is cut short.
  std::vector<Elf64_Shdr> sections() const;
  std::vector<Elf64_Phdr> segments() const;
  // The names in a section, each ended by a zero. Empty: it is not there, or cut short.
  std::string names(const std::vector<Elf64_Shdr>& sections, uint32_t index) const;

  // `count` things at an offset; none if the file ends before, or they are more than 1 GiB.
  template <typename T>
  std::vector<T> read(uint64_t offset, uint64_t count) const {
    if (count > kBytesMax / sizeof(T)) return {};
    std::vector<T> things(count);
    if (!read_bytes(offset, things.data(), count * sizeof(T))) things.clear();
    return things;
  }
  template <typename T>
  bool write(uint64_t offset, const T& from) const {
    return write_bytes(offset, &from, sizeof from);
  }

 private:
  static constexpr uint64_t kBytesMax = uint64_t{1} << 30;
  // False: the file is shorter.
  bool read_bytes(uint64_t offset, void* into, uint64_t size_bytes) const;
  bool write_bytes(uint64_t offset, const void* from, uint64_t size_bytes) const;

  int fd_ = -1;
  bool is_ours_ = false;  // the descriptor
  Elf64_Ehdr head_{};
};

}  // namespace outcore::cli
