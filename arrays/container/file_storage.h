// FileStorage: a container in a file, used directly, without a region.
//
// Long runs are written past the page cache by several threads, if the filesystem permits it, so
// that the disk starts at once. Short runs go through the page cache, because several processes may
// have bytes in one page: by system calls, and the shortest through a mapping. With pmem:, if the
// file is on a DAX mount, everything is written to the persistent memory itself. Every call is then
// durable when it returns, including changes of the filesystem; with map_sync=off it is durable
// when sync() returns, as of files. Elsewhere pmem: is an ordinary file. Any thread; several
// processes.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "arrays/container/container_storage.h"
#include "arrays/container/file_memory.h"
#include "arrays/container/file_window.h"

namespace outcore::arrays {

class FileStorage final : public ContainerStorage {
 public:
  FileStorage() = default;  // for open() only
  // `pmem`: by which mapping it is to be used if it is persistent memory; absent: by none.
  static Result<std::shared_ptr<ContainerStorage>> open(const StorageOptions& options,
                                                        const std::string& path,
                                                        std::optional<MapSync> pmem);
  ~FileStorage() override;

  uint64_t size_bytes() const override;
  Status clear() override;
  Status grow(uint64_t size_bytes) override;
  Status provide(uint64_t offset, uint64_t size_bytes) override;
  Status provide_sparse(uint64_t offset, uint64_t size_bytes) override;
  Status release(uint64_t offset, uint64_t size_bytes) override;
  Status read(uint64_t offset, std::span<std::byte> into) override;
  Status write(uint64_t offset, std::span<const std::byte> from) override;
  Status read_runs(uint64_t first, const Runs& runs, std::byte* into) override;
  Status write_runs(uint64_t first, const Runs& runs, const std::byte* from) override;
  Status sync() override;
  Status forget(uint64_t offset, uint64_t size_bytes) override;
  std::string identity() const override;
  Result<std::shared_ptr<Mapping>> map(const std::shared_ptr<ContainerStorage>& self,
                                       uint64_t offset, uint64_t size_bytes) override;
  bool ends_where_used() const override { return true; }
  bool can_be_shared() const override { return true; }
  bool knows_readers() const override { return true; }
  Status lock(Lease lease, bool is_exclusive, bool may_wait) override;
  void unlock(Lease lease) override;
  Status lock_range(uint64_t offset) override;
  void unlock_range(uint64_t offset) override;
  Result<bool> is_locked_by_others(Lease lease) override;
  std::string uri() const override { return uri_; }
  std::string describe() const override;

 private:
  enum class Way : uint8_t { kRead, kWrite };
  std::string own_path() const;
  Status check_space(uint64_t end) const;
  bool has_room();  // space is reserved, so mapped memory of the file can be written
  Status lock_byte(uint64_t byte, int type, bool may_wait) const;
  Error failed(int error, const char* verb, uint64_t offset, uint64_t size_bytes) const;
  bool is_within(uint64_t first, const Runs& runs) const;
  Status settle(uint64_t offset = 0, uint64_t size_bytes = 0);
  Status sync_file();
  Status write_to_memory(uint64_t offset, std::span<const std::byte> from);
  Status runs_of_memory(Way way, uint64_t first, const Runs& runs, std::byte* bytes);
  int all_of(Way way, int fd, uint64_t offset, std::byte* bytes, uint64_t size_bytes) const;
  int long_run(Way way, uint64_t offset, std::byte* bytes, uint64_t size_bytes);
  int piece(Way way, uint64_t offset, std::byte* bytes, uint64_t size_bytes, std::byte* buffer);
  int read_short_runs(uint64_t first, const Runs& runs, std::byte* into);
  int write_short_runs(uint64_t first, const Runs& runs, const std::byte* from);
  int short_runs(Way way, uint64_t first, const Runs& runs, std::byte* bytes);
  Status all_runs(Way way, uint64_t first, const Runs& runs, std::byte* bytes);

  std::string path_, uri_;
  std::shared_ptr<LentRuntime> runtime_;
  int fd_ = -1;
  int direct_fd_ = -1;  // -1: the filesystem refuses O_DIRECT
  bool is_writable_ = false, is_pmem_ = false;
  std::once_flag room_asked_;
  bool has_room_ = true;
  std::unique_ptr<FileMemory> memory_;  // nullptr: pmem: was not asked for, or there is no DAX
  std::atomic<bool> is_name_unsynced_{false};
  Writeback writeback_;
  // An fsync that failed: it is not known what was lost, and the kernel reports the error only
  // once.
  std::atomic<int> lost_sync_{0};
};

}  // namespace outcore::arrays
