// HeldBuffer, HeldFile: include/outcore/buffers.h.
#include <cerrno>
#include <utility>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/buffer/buffer.h"
#include "core/buffer/shared_file.h"
#include "core/store/file_version.h"
#include "outcore/buffers.h"

namespace outcore {

HeldFile::HeldFile(std::unique_ptr<buffer::SharedFile> file) : file_(std::move(file)) {}
HeldFile::HeldFile(HeldFile&&) noexcept = default;
HeldFile& HeldFile::operator=(HeldFile&&) noexcept = default;
HeldFile::~HeldFile() = default;

void HeldFile::close_to_others() {
  OC_CHECK(file_ != nullptr);
  file_->close_to_others();
}

Result<HeldBuffer> HeldBuffer::hold(const std::string& name, uint64_t limit_bytes) {
  Result<std::shared_ptr<buffer::Buffer>> joined = buffer::Buffer::join(name, limit_bytes);
  if (!joined) return joined.error();
  buffer::Buffer* const buffer = joined.value().get();
  buffer->member().record().is_holding.store(1);
  // A runtime of this process may be in it, and stay longer.
  const auto release = [shared = std::move(joined).value()](buffer::Buffer* held) {
    held->member().record().is_holding.store(0);
  };
  return HeldBuffer(std::shared_ptr<buffer::Buffer>(buffer, release));
}

uint64_t HeldBuffer::limit_bytes() const { return buffer_->member().board().limit_bytes.load(); }

Result<HeldFile> HeldBuffer::hold_file(int fd) const {
  store::FileVersion version;
  const int result = store::FileVersion::of(fd, &version);
  if (result == -ENOTSUP || (result == 0 && version.size_bytes == 0))
    return Error{EINVAL, result == 0 ? "it is empty" : "it is no regular file"};
  if (result != 0) return base::system_error(result, "look at it");
  Result<std::unique_ptr<buffer::SharedFile>> file = buffer::SharedFile::open(buffer_, version);
  if (!file) return file.error();
  return HeldFile(std::move(file).value());
}

}  // namespace outcore
