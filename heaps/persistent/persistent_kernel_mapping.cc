#include "heaps/persistent/persistent_kernel_mapping.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/address_space.h"
#include "core/os/at_fork.h"
#include "core/os/process_lock.h"
#include "core/runtime/runtime_impl.h"
#include "core/store/file_store.h"

namespace outcore::heap::persistent {

using base::round_up;
using base::system_error;

namespace {

// Those of this process. Never destroyed, because heaps may be closed after main().
struct Mapped {
  os::ProcessLock lock;
  std::vector<KernelMapping*> all;
};
Mapped& mapped() {
  static Mapped* const made = new Mapped;
  return *made;
}

int kernel_advice(Advice advice) {
  switch (advice) {
    case Advice::kRandom:
      return MADV_RANDOM;
    case Advice::kSequential:
      return MADV_SEQUENTIAL;
    default:
      return MADV_NORMAL;
  }
}

}  // namespace

Result<std::unique_ptr<Mapping>> KernelMapping::map(std::shared_ptr<Store> store,
                                                    const MapOptions& o) {
  const auto* const file = dynamic_cast<const store::FileStore*>(store.get());
  const std::string what = "map " + store->uri();
  if (file == nullptr)
    return Error{ENOTSUP, what + ": the kernel maps files only: leave out paging = kKernel"};
  const uint64_t reserve_bytes =
      o.reserve_bytes != 0 ? o.reserve_bytes : round_up(o.size_bytes, base::kSystemPage);
  if (o.size_bytes == 0 || o.size_bytes > store->size_bytes() || o.size_bytes > reserve_bytes)
    return Error{EINVAL, what + ": it has " + std::to_string(store->size_bytes()) +
                             " bytes, and the heap " + std::to_string(o.size_bytes) +
                             ": restore it from a copy"};
  std::unique_ptr<KernelMapping> made(new KernelMapping(std::move(store)));
  made->file_ = file->descriptor();
  made->is_writable_ = o.access == Access::kReadWrite;
  made->advice_ = kernel_advice(o.advice);
  runtime::process_generation();  // from now on fork() takes the process's locks
  os::at_fork(os::ForkOrder::kHeapMappings, nullptr, nullptr, hide_in_child);
  Mapped& others = mapped();
  {
    const os::SignalBlock block;  // a handler may fork, which takes the lock
    const os::Locked guard(others.lock);
    others.all.reserve(others.all.size() + 1);
    Result<std::byte*> base = os::reserve_addresses(reserve_bytes, base::kHugePage);
    if (!base) return base.error();
    made->base_ = base.value();
    made->reserve_bytes_ = reserve_bytes;
    others.all.push_back(made.get());
  }
  if (Status s = made->show(0, o.size_bytes); !s) return s.error();
  return std::unique_ptr<Mapping>(std::move(made));
}

KernelMapping::~KernelMapping() { static_cast<void>(unmap(true)); }

// Maps the file's bytes where the addresses are reserved for them.
Status KernelMapping::show(uint64_t from, uint64_t to) {
  from = base::round_down(from, base::kSystemPage);
  OC_CHECK(from < to && to <= reserve_bytes_);
  const int protection = PROT_READ | (is_writable_ ? PROT_WRITE : 0);
  const uint64_t count = round_up(to - from, base::kSystemPage);
  void* const at = ::mmap(base_ + from, count, protection, MAP_SHARED | MAP_FIXED, file_,
                          static_cast<off_t>(from));
  const int error = at == MAP_FAILED ? errno : 0;
  if (error != 0) {  // the kernel may have taken away what was there
    static_cast<void>(os::make_inaccessible(base_ + from, count));
    return system_error(error, "map " + base::format_bytes(count) + " of " + uri_,
                        error == ENOMEM ? "raise the limit (ulimit -v, vm.max_map_count)" : "");
  }
  // A hint, which not every kernel takes.
  if (advice_ != MADV_NORMAL) static_cast<void>(::madvise(at, count, advice_));
  size_bytes_.store(to, std::memory_order_release);
  return {};
}

// By the file, not through the mapping: there a page that cannot be read is a signal. The kernel
// keeps the two the same.
Status KernelMapping::write(uint64_t offset, std::span<const std::byte> from) {
  OC_CHECK(offset <= size_bytes() && from.size() <= size_bytes() - offset);
  const int error = store_->write(offset, from);
  if (error == 0) return {};
  return system_error(error, "write " + base::format_bytes(from.size()) + " at " +
                                 std::to_string(offset) + " of " + uri_);
}

Status KernelMapping::discard(uint64_t offset, uint64_t size_bytes) {
  const int error = store_->discard(offset, size_bytes);
  if (error == 0) return {};
  return system_error(error, "give back " + base::format_bytes(size_bytes) + " at " +
                                 std::to_string(offset) + " of " + uri_);
}

Status KernelMapping::grow(uint64_t size_bytes) {
  OC_CHECK(size_bytes >= this->size_bytes() && size_bytes <= reserve_bytes_);
  if (size_bytes > store_->size_bytes())
    if (const int error = store_->resize(size_bytes); error != 0)
      return system_error(error, "grow " + uri_ + " to " + std::to_string(size_bytes) + " bytes");
  if (size_bytes == this->size_bytes()) return {};
  return show(this->size_bytes(), size_bytes);
}

// Nothing is lost by it: the file has the bytes.
Status KernelMapping::unmap(bool) {
  if (base_ == nullptr) return {};
  Mapped& others = mapped();
  const os::SignalBlock block;
  const os::Locked guard(others.lock);
  std::erase(others.all, this);
  os::release_addresses(base_, reserve_bytes_);
  base_ = nullptr;
  size_bytes_.store(0, std::memory_order_release);
  return {};
}

// A touch ends the child, and nothing else gets the addresses, as with regions.
void KernelMapping::hide_in_child() {
  for (const KernelMapping* mapping : mapped().all)
    static_cast<void>(os::make_inaccessible(mapping->base_, mapping->reserve_bytes_));
}

}  // namespace outcore::heap::persistent
