// FolderDisk: a pool's folder on a filesystem.
//
// The writer locks the file `lock` and writes into it who it is. A reader of a commit locks one
// byte of the file `readers`, at the commit's number. Both are locks of open file descriptions
// (fcntl(2), OFD): they end with the process, also after kill -9, and they exclude two opens within
// one process. A forked child loses them at once; its parent keeps them.
#pragma once

#include <string>

#include "checkpoints/pool/disk.h"

namespace outcore::versioned {

class FolderDisk : public Disk {
 public:
  // Creates the folder if may_create. Errors: those of the system.
  static Result<std::shared_ptr<Disk>> open(const std::string& path, bool may_create);
  ~FolderDisk() override;
  FolderDisk(const FolderDisk&) = delete;
  FolderDisk& operator=(const FolderDisk&) = delete;

  std::string name() const override { return path_; }
  std::string identity() const override { return identity_; }
  Result<std::unique_ptr<File>> open(const std::string& file, Mode mode, bool is_heap) override;
  Result<std::vector<std::string>> list() override;
  int rename(const std::string& from, const std::string& to) override;
  int unlink(const std::string& file) override;
  int sync_folder() override;
  Status lock_writer() override;
  bool is_of_this_process() const override;
  int hold(uint32_t commit) override;
  void tolerate_copies() override { tolerates_copies_ = true; }
  bool has_got_writer() override;
  void unhold(uint32_t commit) override;
  bool claim(uint32_t commit) override;
  void unclaim(uint32_t commit) override;
  std::vector<uint32_t> held_by_others() override;
  std::string who_holds(uint32_t commit) override;

 protected:
  FolderDisk() = default;
  Status open_folder(const std::string& path, bool may_create);
  // By the descriptor that the other one has, wherever the folder is by now.
  Status open_folder_of(const FolderDisk& other);
  // Makes a file of the descriptor, which it owns from then on, even if there is an error.
  virtual Result<std::unique_ptr<File>> make_heap(int fd, bool is_writable,
                                                  const std::string& path);

 private:
  int open_readers(bool may_create);
  int lock_byte(int type, uint32_t commit);

  std::string path_;
  std::string identity_;
  int folder_fd_ = -1;
  int lock_fd_ = -1;
  int readers_fd_ = -1;
  bool tolerates_copies_ = false, is_unheld_ = false;
  uint32_t generation_ = 0;  // of the process that has the locks (os::process_generation())
};

// A file behind a descriptor, with plain system calls.
class PlainFile : public File {
 public:
  explicit PlainFile(int fd) : fd_(fd) {}
  ~PlainFile() override;
  PlainFile(const PlainFile&) = delete;
  PlainFile& operator=(const PlainFile&) = delete;
  int read(uint64_t offset, std::span<std::byte> into) override;
  int write(uint64_t offset, std::span<const std::byte> from) override;
  int sync() override;
  int allocate(uint64_t offset, uint64_t size_bytes) override;
  void punch(uint64_t offset, uint64_t size_bytes) override;
  uint64_t size_bytes() const override;

 private:
  const int fd_;
};

}  // namespace outcore::versioned
