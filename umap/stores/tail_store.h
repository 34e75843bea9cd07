// TailStore: a file with room past its end, as UMap's regions have, whose lengths are whole pages.
//
// Bytes past the end read zero. Whoever writes a page there makes the file longer, up to the last
// byte that is not zero: a page that was written before the end of the file only does not change
// the size, as it would with UMap, and no byte is lost. Any thread.
#pragma once

#include <memory>
#include <mutex>

#include "core/store/file_store.h"
#include "outcore/store.h"

namespace outcore::umapped {

class TailStore final : public Store {
 public:
  // REQUIRES: the file is not null.
  TailStore(std::shared_ptr<store::FileStore> file, bool is_writable, uint64_t size_bytes);

  uint64_t size_bytes() const override { return size_bytes_; }
  int read(uint64_t offset, std::span<std::byte> into) override;
  int write(uint64_t offset, std::span<const std::byte> from) override;
  void transfer(std::span<StoreRequest> batch) override;
  int sync() override { return file_->sync(); }
  int discard(uint64_t offset, uint64_t size_bytes) override;
  bool is_hole(uint64_t offset, uint64_t size_bytes) const override;
  void register_buffer(std::span<std::byte> buffer) override { file_->register_buffer(buffer); }
  StoreTraits traits() const override { return file_->traits(); }
  std::string uri() const override { return file_->uri(); }
  std::string remark() const override { return file_->remark(); }
  void retire() override { file_->retire(); }
  // Its pages are its own: other regions of the file know another size of it.
  std::string identity() const override { return {}; }

 private:
  bool is_in_file(uint64_t offset, uint64_t size_bytes) const;
  uint64_t bytes_in_file(uint64_t offset, uint64_t size_bytes) const;
  int look_past_end(uint64_t offset, uint64_t size_bytes) const;
  int write_past_end(uint64_t offset, std::span<const std::byte> from);

  const std::shared_ptr<store::FileStore> file_;
  const bool is_writable_;
  const uint64_t size_bytes_;
  std::mutex growth_;  // held while the file becomes longer
};

}  // namespace outcore::umapped
