// What tests of persistent heaps share: a runtime with a small budget, a store that fails as told,
// and child processes.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "outcore/persistent_heap.h"
#include "tests/folder.h"

namespace outcore::scene {

inline Runtime start_runtime(uint64_t budget_bytes = uint64_t{16} << 20) {
  return Runtime::start({.budget_bytes = budget_bytes, .ignore_environment = true}).value();
}

template <typename T>
T take(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.message();
  return std::move(result).value();
}

// Opens heaps as the paging says: in regions of a runtime of its own, which starts with the first
// of them (a child that starts threads needs a parent that had none), or over the kernel's mapping.
class HeapOpener {
 public:
  explicit HeapOpener(HeapPaging paging, uint64_t budget_bytes = uint64_t{16} << 20)
      : paging_(paging), budget_bytes_(budget_bytes) {}
  using Options = PersistentHeapOptions;

  Result<PersistentHeap> create(const std::string& uri, const Options& options = {}) {
    if (Runtime* const own = runtime()) return PersistentHeap::create(*own, uri, options);
    return PersistentHeap::create(uri, by_kernel(options));
  }
  Result<PersistentHeap> open(const std::string& uri, const Options& options = {}) {
    if (Runtime* const own = runtime()) return PersistentHeap::open(*own, uri, options);
    return PersistentHeap::open(uri, by_kernel(options));
  }
  Result<PersistentHeap> open_read_only(const std::string& uri, const Options& options = {}) {
    if (Runtime* const own = runtime()) return PersistentHeap::open_read_only(*own, uri, options);
    return PersistentHeap::open_read_only(uri, by_kernel(options));
  }
  // nullptr: the kernel's mapping needs none.
  Runtime* runtime() {
    if (paging_ == HeapPaging::kKernel) return nullptr;
    if (!runtime_) runtime_.emplace(start_runtime(budget_bytes_));
    return &*runtime_;
  }
  void stop() { runtime_.reset(); }

 private:
  static Options by_kernel(Options options) {
    options.paging = HeapPaging::kKernel;
    return options;
  }
  HeapPaging paging_;
  uint64_t budget_bytes_;
  std::optional<Runtime> runtime_;
};

inline const auto kEveryPaging = testing::Values(HeapPaging::kOutcore, HeapPaging::kKernel);
inline std::string name_of_paging(const testing::TestParamInfo<HeapPaging>& info) {
  return info.param == HeapPaging::kKernel ? "Kernel" : "Outcore";
}

#define EXPECT_OK(expression)                                 \
  do {                                                        \
    const outcore::Status status_of_it = (expression);        \
    EXPECT_TRUE(status_of_it.ok()) << status_of_it.message(); \
  } while (false)

// A fork that runs f and ends with what it returns; without the parent's buffers.
inline pid_t run_child(const std::function<int()>& f) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(f());
  return child;
}
inline int wait_for(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

inline std::vector<char> read_file(const std::string& path) {
  std::vector<char> bytes(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}
inline void write_file(const std::string& path, const std::vector<char>& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(out.flush().good());
}

// Bytes in memory that count the space they take, and fail as told.
class QuotaStore : public Store {
 public:
  static constexpr uint64_t kUnit = 4096, kCapacity = uint64_t{1} << 30;
  QuotaStore()
      : bytes_(static_cast<std::byte*>(::mmap(nullptr, kCapacity, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
        has_space_(kCapacity / kUnit) {}
  ~QuotaStore() override { ::munmap(bytes_, kCapacity); }

  std::atomic<uint64_t> quota_bytes{kCapacity};
  std::atomic<int> sync_error{0}, write_error{0};
  std::atomic<int> syncs_before_error{0};  // that many more syncs succeed

  uint64_t size_bytes() const override { return size_; }
  int read(uint64_t offset, std::span<std::byte> into) override {
    std::memcpy(into.data(), bytes_ + offset, into.size());
    return 0;
  }
  int write(uint64_t offset, std::span<const std::byte> from) override {
    if (write_error != 0) return -write_error;
    if (const int error = reserve(offset, from.size()); error != 0) return error;
    std::memcpy(bytes_ + offset, from.data(), from.size());
    return 0;
  }
  int sync() override {
    if (sync_error == 0 || syncs_before_error-- > 0) return 0;
    return -sync_error;
  }
  int resize(uint64_t size_bytes) override {
    if (size_bytes > kCapacity) return -EFBIG;
    if (size_bytes < size_) discard(size_bytes, size_ - size_bytes);
    size_ = size_bytes;
    return 0;
  }
  int reserve(uint64_t offset, uint64_t size_bytes) override {
    for (uint64_t u = offset / kUnit; u * kUnit < offset + size_bytes; ++u) {
      if (has_space_[u]) continue;
      if (used_ + kUnit > quota_bytes) return -ENOSPC;
      has_space_[u] = true;
      used_ += kUnit;
    }
    return 0;
  }
  int discard(uint64_t offset, uint64_t size_bytes) override {
    std::memset(bytes_ + offset, 0, size_bytes);
    for (uint64_t u = (offset + kUnit - 1) / kUnit; (u + 1) * kUnit <= offset + size_bytes; ++u)
      if (has_space_[u].exchange(false)) used_ -= kUnit;
    return 0;
  }
  StoreTraits traits() const override {
    StoreTraits traits;
    traits.is_fault_safe = true;
    return traits;
  }
  std::string uri() const override { return "quota:store"; }
  uint64_t used_bytes() const { return used_; }

 private:
  std::byte* bytes_;
  std::vector<std::atomic<bool>> has_space_;
  std::atomic<uint64_t> size_{0}, used_{0};
};

}  // namespace outcore::scene
