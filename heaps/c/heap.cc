// Heaps, in C. See outcore.h.
#include "outcore/heap.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/c/handles.h"
#include "core/c/options.h"
#include "core/c/outcome.h"
#include "core/c/sized_struct.h"
#include "core/os/at_fork.h"
#include "core/runtime/runtime_impl.h"
#include "heaps/volatile/thread_cache.h"
#include "outcore/outcore.h"

using outcore::Delivery;
using outcore::Error;
using outcore::Heap;
using outcore::HeapMetrics;
using outcore::HeapOptions;
using outcore::Result;
using outcore::Runtime;
using outcore::Status;
using namespace outcore::c;

namespace {

constexpr size_t kHeapOptionsBytes = 72, kHeapValuesBytes = 64;  // as in release 0.1
static_assert(sizeof(oc_heap_options) >= kHeapOptionsBytes);
static_assert(sizeof(oc_heap_values) == kHeapValuesBytes);

Status take_options(const oc_heap_options* from, HeapOptions* into) {
  oc_heap_options taken;
  if (Status s = take_struct(from, kHeapOptionsBytes, "oc_heap_options", &taken); !s) return s;
  if (taken.delivery > OC_DELIVERY_MPROTECT || taken.may_overwrite > 1)
    return Error{EINVAL,
                 "oc_heap_options: delivery is 0 … OC_DELIVERY_MPROTECT, may_overwrite 0 or 1"};
  if (taken.store != nullptr && taken.store_object != nullptr)
    return Error{EINVAL, "oc_heap_options: give store or store_object, not both"};
  if (taken.unused != 0)
    return Error{EINVAL, "oc_heap_options: unused is 0 (use oc_heap_options_init)"};
  if (Status s = take_advice(taken.advice, &into->advice); !s) return s;
  if (taken.store != nullptr) into->store = taken.store;
  if (taken.store_object != nullptr) into->store_object = taken.store_object->store;
  if (taken.store_object != nullptr && !taken.store_object->is_writable)
    return Error{EACCES, "oc_heap_create: the store's oc_store_calls have no write"};
  if (taken.name != nullptr) into->name = taken.name;
  if (taken.delivery != 0) into->delivery = static_cast<Delivery>(taken.delivery - 1);
  into->reserve_bytes = taken.reserve_bytes;
  into->page_bytes = taken.page_bytes;
  into->kept_bytes_max = taken.kept_bytes_max;
  into->may_overwrite = taken.may_overwrite != 0;
  return {};
}

// Returns the block, or nullptr; errno stays as it was set.
void* handed_out(const Heap& heap, void* block, size_t bytes) {
  if (block != nullptr) return block;
  const int code = errno;
  guarded("oc_malloc", [&] { return outcome(heap.error_of(code, bytes)); });
  return errno = code, nullptr;
}

void* no_heap(const char* function) {
  fail_null(function, "heap");
  return errno = EINVAL, nullptr;
}

// The default heap. It is never destroyed: threads and static objects may use it until the end.
struct Default {
  std::mutex mutex;
  Runtime* runtime = nullptr;
  std::atomic<oc_heap*> heap{nullptr};
};
constinit Default the_default;

// A fork waits until the heap is made, so that a child inherits all of it or nothing. This is
// registered at load, as are the handlers of its parts: fork() does not call a handler that is
// registered while it waits.
[[maybe_unused]] const bool is_registered_at_load = [] {
  static_cast<void>(outcore::runtime::process_generation());
  static_cast<void>(outcore::heap::thread_caches::is_parents(0));
  outcore::os::at_fork(
      outcore::os::ForkOrder::kDefaultHeap, [] { the_default.mutex.lock(); },
      [] { the_default.mutex.unlock(); }, [] { the_default.mutex.unlock(); });
  return true;
}();

thread_local constinit bool is_making = false;

int make_default(oc_heap** heap) {
  Default& all = the_default;
  const std::lock_guard<std::mutex> guard(all.mutex);
  *heap = all.heap.load();
  if (*heap != nullptr) return 0;
  struct Making {
    Making() { is_making = true; }
    ~Making() { is_making = false; }
  } const making;
  Result<Runtime> runtime = Runtime::start();
  if (!runtime) return outcome(runtime.error());
  HeapOptions options;
  if (const char* store = std::getenv("OUTCORE_STORE"); store != nullptr && *store != 0)
    options.store = store;
  auto kept = std::make_unique<Runtime>(std::move(runtime).value());
  Result<Heap> made = Heap::create(*kept, options);
  if (!made) return outcome(made.error());
  *heap = new oc_heap{nullptr, std::move(made).value()};
  all.runtime = kept.release();
  all.heap.store(*heap);
  return 0;
}

}  // namespace

oc_heap* oc_default_heap(void) {
  oc_heap* heap = the_default.heap.load(std::memory_order_acquire);
  if (heap != nullptr) return heap;
  // Making the heap allocates, and the program's malloc may be oc_malloc.
  const int result = is_making ? fail(EDEADLK,
                                      "oc_malloc: the heap is being made by what it serves: "
                                      "give operator new and malloc another allocator")
                               : guarded("oc_malloc", [&] { return make_default(&heap); });
  if (result != 0) errno = -result;
  return heap;
}

int oc_heap_create(oc_runtime* runtime, const oc_heap_options* options, oc_heap** heap) {
  if (heap == nullptr) return fail_null("oc_heap_create", "heap");
  *heap = nullptr;
  if (runtime == nullptr) return fail_null("oc_heap_create", "runtime");
  return guarded("oc_heap_create", [&] {
    HeapOptions taken;
    if (const Status status = take_options(options, &taken); !status) return outcome(status);
    Result<Heap> made = Heap::create(runtime->runtime, taken);
    if (!made) return outcome(made.error());
    std::unique_ptr<oc_heap> handle(new oc_heap{runtime, std::move(made).value()});
    const outcore::os::Locked locked(runtime->mutex);
    ++runtime->heap_count;
    *heap = handle.release();
    return 0;
  });
}

int oc_heap_destroy(oc_heap* heap) {
  if (heap == nullptr) return fail_null("oc_heap_destroy", "heap");
  if (heap->owner == nullptr)
    return fail(EINVAL, "oc_heap_destroy: the default heap ends with the process");
  return guarded("oc_heap_destroy", [&] {
    oc_runtime& owner = *heap->owner;
    delete heap;
    const outcore::os::Locked locked(owner.mutex);
    --owner.heap_count;
    return 0;
  });
}

void* oc_heap_malloc(oc_heap* heap, size_t size_bytes) {
  if (heap == nullptr) return no_heap("oc_heap_malloc");
  return handed_out(heap->heap, heap->heap.allocate(size_bytes), size_bytes);
}

void* oc_heap_calloc(oc_heap* heap, size_t count, size_t size_bytes) {
  if (heap == nullptr) return no_heap("oc_heap_calloc");
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size_bytes, &bytes)) bytes = SIZE_MAX;
  return handed_out(heap->heap, heap->heap.allocate_zeroed(bytes), bytes);
}

void* oc_heap_realloc(oc_heap* heap, void* block, size_t size_bytes) {
  if (heap == nullptr) return no_heap("oc_heap_realloc");
  if (block != nullptr && size_bytes == 0) {
    heap->heap.free(block);
    return nullptr;
  }
  return handed_out(heap->heap, heap->heap.reallocate(block, size_bytes), size_bytes);
}

void* oc_heap_aligned_alloc(oc_heap* heap, size_t alignment, size_t size_bytes) {
  if (heap == nullptr) return no_heap("oc_heap_aligned_alloc");
  return handed_out(heap->heap, heap->heap.allocate(size_bytes, alignment), size_bytes);
}

void oc_heap_free(oc_heap* heap, void* block) {
  if (block == nullptr) return;
  if (heap == nullptr) {
    std::fprintf(stderr, "outcore: free of %p: there is no heap\n", block);
    std::abort();
  }
  const int before = errno;
  heap->heap.free(block);
  errno = before;
}

size_t oc_heap_usable_size(const oc_heap* heap, const void* block) {
  return heap == nullptr || block == nullptr ? 0 : heap->heap.usable_bytes(block);
}

int oc_heap_trim(oc_heap* heap) {
  if (heap == nullptr) return fail_null("oc_heap_trim", "heap");
  return guarded("oc_heap_trim", [&] { return outcome(heap->heap.trim()); });
}

int oc_heap_metrics(const oc_heap* heap, oc_heap_values* values) {
  if (heap == nullptr) return fail_null("oc_heap_metrics", "heap");
  if (values == nullptr) return fail_null("oc_heap_metrics", "values");
  if (values->struct_bytes < kHeapValuesBytes)
    return fail(EINVAL, "oc_heap_metrics: start the struct with oc_heap_values_init()");
  return guarded("oc_heap_metrics", [&] {
    const HeapMetrics m = heap->heap.metrics();
    const size_t size_bytes = values->struct_bytes;
    const oc_heap_values all{size_bytes,   m.allocated_bytes, m.allocated_blocks, m.reserved_bytes,
                             m.kept_bytes, m.address_bytes,   m.resident_bytes,   m.metadata_bytes};
    std::memset(static_cast<void*>(values), 0, size_bytes);
    std::memcpy(static_cast<void*>(values), &all, std::min(size_bytes, sizeof all));
    return 0;
  });
}

void* oc_malloc(size_t size_bytes) {
  oc_heap* const heap = oc_default_heap();
  return heap == nullptr ? nullptr : oc_heap_malloc(heap, size_bytes);
}

void* oc_calloc(size_t count, size_t size_bytes) {
  oc_heap* const heap = oc_default_heap();
  return heap == nullptr ? nullptr : oc_heap_calloc(heap, count, size_bytes);
}

void* oc_realloc(void* block, size_t size_bytes) {
  oc_heap* const heap = oc_default_heap();
  return heap == nullptr ? nullptr : oc_heap_realloc(heap, block, size_bytes);
}

void* oc_aligned_alloc(size_t alignment, size_t size_bytes) {
  oc_heap* const heap = oc_default_heap();
  return heap == nullptr ? nullptr : oc_heap_aligned_alloc(heap, alignment, size_bytes);
}

void oc_free(void* block) { oc_heap_free(the_default.heap.load(std::memory_order_acquire), block); }

size_t oc_usable_size(const void* block) {
  return oc_heap_usable_size(the_default.heap.load(std::memory_order_acquire), block);
}
