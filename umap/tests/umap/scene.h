// Scene: helpers for tests of UMap's interface: files that are open, and a small buffer.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "core/tests/conformance/scene.h"
#include "umap/umap.h"

namespace outcore::scene {

constexpr int kBoth = PROT_READ | PROT_WRITE;
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kBufferPages = 4096;  // 16 MiB

class UmapTest : public testing::Test {
 protected:
  void SetUp() override {
    umapcfg_set_umap_page_size(kPageBytes);
    umapcfg_set_max_pages_in_buffer(kBufferPages);
  }

  // A file with the pattern; open until the end of the test.
  int file(const std::string& name, uint64_t size_bytes, int flags = O_RDWR) {
    write_file(folder / name, pattern(size_bytes));
    return open_file(name, flags);
  }
  int open_file(const std::string& name, int flags) {
    const int fd = ::open((folder / name).c_str(), flags | O_CLOEXEC, 0600);
    EXPECT_GE(fd, 0) << name;
    open_.push_back(fd);
    return fd;
  }
  uint64_t size_of(const std::string& name) const {
    return std::filesystem::file_size(folder / name);
  }
  // One byte of the file, as others see it.
  int byte_of(int fd, uint64_t offset) const {
    unsigned char byte = 0;
    return ::pread(fd, &byte, 1, static_cast<off_t>(offset)) == 1 ? byte : -1;
  }
  static std::byte* map(int fd, uint64_t size_bytes, int prot = PROT_READ | PROT_WRITE,
                        off_t offset = 0) {
    void* const address = umap(nullptr, size_bytes, prot, UMAP_PRIVATE, fd, offset);
    EXPECT_NE(address, UMAP_FAILED) << std::strerror(errno);
    return address == UMAP_FAILED ? nullptr : static_cast<std::byte*>(address);
  }

  ~UmapTest() override {
    for (const int fd : open_) ::close(fd);
  }

  const Folder folder;

 private:
  std::vector<int> open_;
};

}  // namespace outcore::scene
