#include "run/preload/heap_file.h"

#include <sys/statvfs.h>

#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/file_calls.h"
#include "core/store/scratch_store.h"

namespace outcore::preload {

Result<std::shared_ptr<HeapFile>> HeapFile::open(const std::string& folder,
                                                 const StoreLimits& limits) {
  std::shared_ptr<HeapFile> heap(new HeapFile);
  heap->folder_ = folder;
  const int fd = store::open_scratch_file(&heap->folder_);
  if (fd < 0)
    return base::system_error(fd, "make a scratch file in " + heap->folder_,
                              "name a folder that you may write to by --scratch-dir, or TMPDIR");
  if (Status s = heap->file_.adopt(fd, true, store::DirectMode::kAuto, heap->folder_); !s)
    return s.error();
  StoreTraits& traits = heap->traits_;
  traits.is_fault_safe = true;
  traits.can_read_while_written = true;
  traits.is_volatile = true;
  traits.alignment_bytes = heap->file_.is_direct() ? store::kDirectAlignment : 1;
  traits.read_concurrency = limits.read_concurrency;
  traits.write_concurrency = limits.write_concurrency;
  OC_CHECK(!heap->folder_.empty());
  return heap;
}

int HeapFile::resize(uint64_t size_bytes) {
  size_bytes_.store(size_bytes, std::memory_order_release);
  return 0;
}

int HeapFile::reserve(uint64_t offset, uint64_t size_bytes) {
  OC_ASSERT(file_.fd() >= 0 && size_bytes != 0);
  if (!is_reservable_.load(std::memory_order_relaxed)) return 0;
  const int error = os::allocate_space(file_.fd(), offset, size_bytes);
  if (error == 0) return 0;
  if (error != -ENOTSUP) {
    static_cast<void>(release(offset, size_bytes));  // a part may have got space
    return error;
  }
  is_reservable_.store(false, std::memory_order_relaxed);
  return 0;
}

int HeapFile::release(uint64_t offset, uint64_t size_bytes) {
  return file_.give_blocks_back(offset, size_bytes);
}

std::string HeapFile::remark() const {
  std::string text = file_.why_buffered();
  if (!is_reservable_)
    text += std::string(text.empty() ? "" : "; ") +
            "the filesystem cannot reserve space: it may run out later";
  return text;
}

Result<uint64_t> HeapFile::free_bytes() {
  struct statvfs space;
  return ::fstatvfs(file_.fd(), &space) == 0 ? uint64_t{space.f_bavail} * space.f_frsize : 0;
}

uint64_t HeapFile::granule_bytes() const { return base::kSystemPage; }

}  // namespace outcore::preload
