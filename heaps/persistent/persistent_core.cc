// PersistentCore: named objects, and calls that are passed on. See outcore/persistent_core.h.
#include "outcore/persistent_core.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/assert.h"
#include "core/os/cancel_block.h"
#include "heaps/persistent/persistent_core_impl.h"
#include "heaps/persistent/persistent_sizes.h"
#include "heaps/persistent/type_text.h"

namespace outcore {

using heap::persistent::Cache;
using heap::persistent::Name;
using heap::persistent::short_type_text;
using heap::persistent::type_text;

namespace {

// The runtime of heaps that are opened without one.
Result<std::shared_ptr<Runtime>> shared_runtime(const RuntimeOptions& options) {
  static std::mutex& lock = *new std::mutex;
  static std::weak_ptr<Runtime>& shared = *new std::weak_ptr<Runtime>;
  static pid_t owner = 0;  // a forked child needs another one
  const std::lock_guard<std::mutex> guard(lock);
  if (owner == ::getpid())
    if (std::shared_ptr<Runtime> running = shared.lock()) return running;
  Result<Runtime> started = Runtime::start(options);
  if (!started) return started.error();
  auto runtime = std::make_shared<Runtime>(std::move(started).value());
  shared = runtime;
  owner = ::getpid();
  return runtime;
}

std::string describe(const std::string& type, uint64_t bytes, uint64_t alignment,
                     uint64_t version) {
  return type + " (" + std::to_string(bytes) + " bytes, alignment " + std::to_string(alignment) +
         ", version " + std::to_string(version) + ")";
}

Status check_type(const std::string& what, const Name& name, const PersistentType& type) {
  if (name.type == type.name && name.element_bytes == type.bytes &&
      name.alignment == type.alignment && name.version == type.version)
    return {};
  std::string found = type_text(name.type), asked = type_text(type.name);
  const std::string found_short = short_type_text(found), asked_short = short_type_text(asked);
  if (found_short != asked_short || found == asked) found = found_short, asked = asked_short;
  return Error{EINVAL, what + ": it is of type " +
                           describe(found, name.element_bytes, name.alignment, name.version) +
                           ", not " + describe(asked, type.bytes, type.alignment, type.version) +
                           ": ask for the type that it was made with"};
}

// Undoes what was begun, unless it is marked as finished: constructors may throw.
class Unfinished {
 public:
  Unfinished(PersistentCore::Impl& heap, void* object, const std::string& name)
      : heap_(heap), object_(object), name_(name) {}
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    if (object_ == nullptr) return;
    heap_.names.erase(name_);
    heap_.allocator->deallocate(object_);
  }
  void finish() { object_ = nullptr; }

 private:
  PersistentCore::Impl& heap_;
  void* object_;
  const std::string& name_;
};

}  // namespace

PersistentCore::PersistentCore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PersistentCore::PersistentCore(PersistentCore&&) noexcept = default;
PersistentCore& PersistentCore::operator=(PersistentCore&& other) noexcept {
  const os::CancelBlock uncancelled;
  impl_ = std::move(other.impl_);
  return *this;
}
PersistentCore::~PersistentCore() {
  const os::CancelBlock uncancelled;
  impl_.reset();
}

namespace {

Error no_metadata_memory(const std::string& uri) {
  return Error{ENOMEM, "open the heap " + uri + ": no memory for its metadata: free some"};
}

// A new Impl, before its store is opened.
Result<std::unique_ptr<PersistentCore::Impl>> begin(PersistentCore::Mode mode, Runtime* runtime,
                                                    const std::string& uri,
                                                    const PersistentHeapOptions& options) {
  auto impl = std::make_unique<PersistentCore::Impl>();
  if (options.paging == HeapPaging::kKernel) {
    if (Status s = heap::persistent::check_for_kernel(uri, runtime, options); !s) return s.error();
  } else if (runtime == nullptr) {
    Result<std::shared_ptr<Runtime>> shared = shared_runtime(options.runtime);
    if (!shared) return shared.error();
    impl->owned_runtime = std::move(shared).value();
    runtime = impl->owned_runtime.get();
  }
  impl->runtime = runtime;
  impl->process = ::getpid();
  impl->is_writable = mode != PersistentCore::Mode::kOpenReadOnly;
  return impl;
}

}  // namespace

Result<PersistentCore> PersistentCore::open(Mode mode, Runtime* runtime, const std::string& uri,
                                            const PersistentHeapOptions& options) try {
  const os::CancelBlock uncancelled;
  auto begun = begin(mode, runtime, uri, options);
  if (!begun) return begun.error();
  std::unique_ptr<Impl> impl = std::move(begun).value();
  Result<heap::persistent::Place> place = heap::persistent::open_place(mode, uri);
  if (!place) return place.error();
  impl->place = std::move(place).value();
  const Status s = mode == Mode::kCreate ? impl->create(options) : impl->open(options);
  if (s.ok()) return PersistentCore(std::move(impl));
  if (!impl->place.made_path.empty()) ::unlink(impl->place.made_path.c_str());
  return s.error();
} catch (const std::bad_alloc&) {
  return no_metadata_memory(uri);
}

Result<PersistentCore> PersistentCore::open(Mode mode, Runtime* runtime,
                                            std::shared_ptr<Store> store,
                                            const PersistentHeapOptions& options) try {
  const os::CancelBlock uncancelled;
  auto begun = begin(mode, runtime, store->uri(), options);
  if (!begun) return begun.error();
  std::unique_ptr<Impl> impl = std::move(begun).value();
  impl->place.uri = store->uri();
  impl->place.store = std::move(store);
  const Status s = mode == Mode::kCreate ? impl->create(options) : impl->open(options);
  if (!s.ok()) return s.error();
  return PersistentCore(std::move(impl));
} catch (const std::bad_alloc&) {
  return no_metadata_memory("of the store given");
}

Status PersistentCore::close() {
  const os::CancelBlock uncancelled;
  return impl_->close();
}
Status PersistentCore::flush() {
  const os::CancelBlock uncancelled;
  return impl_->flush();
}
Status PersistentCore::copy(const std::string& uri) {
  const os::CancelBlock uncancelled;
  return impl_->copy(uri);
}

Status PersistentCore::trim() {
  const os::CancelBlock uncancelled;
  if (Status s = impl_->check_writable("trim"); !s) return s;
  return impl_->allocator->tiles().trim();
}

Region& PersistentCore::region() {
  Region* const region = impl_->mapping->region();
  return region != nullptr ? *region : impl_->no_region;
}
CutMember& PersistentCore::cut_member() { return *impl_; }
std::byte* PersistentCore::base() const { return impl_->mapping->data(); }

Result<void*> PersistentCore::allocate(uint64_t size_bytes, uint64_t alignment) {
  const os::CancelBlock uncancelled;
  if (Status s = impl_->check_writable("allocate in"); !s) return s.error();
  return impl_->allocator->allocate(size_bytes, alignment);
}

void PersistentCore::deallocate(void* object) {
  if (object == nullptr) return;
  const os::CancelBlock uncancelled;
  OC_CHECK(impl_->allocator != nullptr && "freed in a heap that is closed or read-only");
  impl_->allocator->deallocate(object);
}

Result<void*> PersistentCore::make(const std::string& name, const PersistentType& type,
                                   uint64_t count, const std::function<void(void*)>& construct) {
  const os::CancelBlock uncancelled;
  const std::string what = "make '" + name + "' in " + impl_->place.uri;
  if (Status s = impl_->check_writable("make an object in"); !s) return s.error();
  if (count > UINT64_MAX / std::max<uint64_t>(type.bytes, 1))
    return Error{ENOMEM, what + ": " + std::to_string(count) + " elements are too many"};
  if (name.size() > UINT16_MAX)
    return Error{EINVAL, what.substr(0, 64) + "…: a name has at most 65535 bytes"};
  const std::lock_guard<std::recursive_mutex> guard(impl_->names_lock);
  if (impl_->names.contains(name))
    return Error{EEXIST, what + ": there is one already: find() it, or destroy() it first"};
  Result<void*> object = impl_->allocator->allocate(type.bytes * count, type.alignment);
  if (!object) return Error{object.code(), what + ": " + object.message()};
  Unfinished unfinished(*impl_, object.value(), name);
  const auto offset =
      static_cast<uint64_t>(static_cast<std::byte*>(object.value()) - impl_->mapping->data());
  impl_->names.emplace(
      name, Name{name, type.name, offset, count, type.bytes, type.alignment, type.version});
  construct(object.value());
  unfinished.finish();
  return object;
}

Result<void*> PersistentCore::find(const std::string& name, const PersistentType& type,
                                   uint64_t* count) const {
  const os::CancelBlock uncancelled;
  if (Status s = impl_->check_open("find an object in"); !s) return s.error();
  const std::string what = "find '" + name + "' in " + impl_->place.uri;
  const std::lock_guard<std::recursive_mutex> guard(impl_->names_lock);
  const auto found = impl_->names.find(name);
  if (found == impl_->names.end()) return Error{ENOENT, what + ": there is no such object"};
  if (Status s = check_type(what, found->second, type); !s) return s.error();
  if (count != nullptr) *count = found->second.count;
  return static_cast<void*>(impl_->mapping->data() + found->second.offset);
}

Result<void*> PersistentCore::find_or_make(const std::string& name, const PersistentType& type,
                                           uint64_t count,
                                           const std::function<void(void*)>& construct) {
  const os::CancelBlock uncancelled;
  const std::lock_guard<std::recursive_mutex> guard(impl_->names_lock);
  Result<void*> found = find(name, type, nullptr);
  return found.code() == ENOENT ? make(name, type, count, construct) : found;
}

Status PersistentCore::destroy(const std::string& name, const PersistentType& type,
                               const std::function<void(void*, uint64_t count)>& destruct) {
  const os::CancelBlock uncancelled;
  if (Status s = impl_->check_writable("destroy an object of"); !s) return s;
  const std::lock_guard<std::recursive_mutex> guard(impl_->names_lock);
  uint64_t count = 0;
  Result<void*> object = find(name, type, &count);
  if (!object) return object.status();
  impl_->names.erase(name);
  destruct(object.value(), count);
  impl_->allocator->deallocate(object.value());
  return {};
}

std::vector<PersistentObject> PersistentCore::objects() const {
  const std::lock_guard<std::recursive_mutex> guard(impl_->names_lock);
  std::vector<PersistentObject> all;
  for (const auto& [text, n] : impl_->names)
    all.push_back(
        {text, type_text(n.type), n.offset, n.count, n.element_bytes, n.alignment, n.version});
  return all;
}

PersistentHeapInfo PersistentCore::info() const {
  const os::CancelBlock uncancelled;
  PersistentHeapInfo info;
  info.format = heap::persistent::kFormat;
  info.is_consistent = !impl_->is_writable && impl_->is_consistent;
  info.version = impl_->header.version;
  info.metadata_bytes = impl_->header.metadata_bytes;
  info.size_bytes = impl_->mapping->size_bytes();
  info.in_use_bytes =
      impl_->allocator != nullptr ? impl_->allocator->bytes_in_use() : impl_->bytes_in_use;
  info.objects = objects();
  return info;
}

void* persistent_allocate(const void* base, uint64_t size_bytes, uint64_t alignment, Error* error) {
  Cache* cache = heap::persistent::Allocator::cache_of(base);
  heap::persistent::Allocator* const owner =
      cache == nullptr ? heap::persistent::Allocator::owner_of(base) : nullptr;
  if (cache == nullptr && owner == nullptr) {
    *error = {EACCES, "allocate in a persistent heap: it is open read-only, or closed: open() it"};
    return nullptr;
  }
  Result<void*> object = cache != nullptr
                             ? heap::persistent::Allocator::allocate(*cache, size_bytes, alignment)
                             : owner->allocate(size_bytes, alignment);
  if (object) return object.value();
  *error = object.error();
  return nullptr;
}

void persistent_deallocate(const void* base, void* object, uint64_t size_bytes,
                           uint64_t alignment) noexcept {
  if (Cache* cache = heap::persistent::Allocator::cache_of(base); cache != nullptr)
    return heap::persistent::Allocator::deallocate(*cache, object, size_bytes, alignment);
  heap::persistent::Allocator* const owner = heap::persistent::Allocator::owner_of(base);
  OC_CHECK(owner != nullptr && "freed in a heap that is closed or read-only");
  owner->deallocate(object, size_bytes, alignment);
}

}  // namespace outcore
