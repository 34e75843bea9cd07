// PersistentCore: the untyped part of a persistent heap: storage with names that outlives the
// program. Programs use PersistentHeap (persistent_heap.h), which adds types; this part needs no
// Boost.
//
// After Metall (Iwabuchi et al., Parallel Computing 2022) and Boost.Interprocess' managed files.
// The bytes in the store: docs/reference/persistent-heap-format.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "outcore/options.h"
#include "outcore/result.h"
#include "outcore/runtime.h"
#include "outcore/store.h"

namespace outcore {

class CutMember;

// Who brings the pages of a heap into memory, and takes them out again.
enum class HeapPaging : uint8_t {
  kOutcore,  // a runtime, within its budget: the heap is a region
  // The kernel, as it does for any file that is mapped (mmap, MAP_SHARED): no runtime is started,
  // and nothing is needed of the system but mmap. The heap is the same: one that was made with
  // either opens with either. Files only. There is no budget, no pages but the kernel's, no
  // checkpoint of the open heap, and region() is not mapped. A page that cannot be read raises
  // SIGBUS, and so does a full disk where no space was reserved (a filesystem that cannot, or a
  // hole in a copy of a heap).
  kKernel,
};

struct PersistentHeapOptions {
  // Addresses kept for the heap, which bound its growth while it is open; to let it grow further,
  // open it again with more. 0: 4 TiB or four times its size, less if addresses are short. At most
  // 64 TiB.
  uint64_t reserve_bytes = 0;
  uint64_t page_bytes = 0;  // as in MapOptions; 0: the runtime's
  Advice advice = Advice::kNormal;
  // The program's own version number of its data. create() notes it; open() fails if the heap has
  // another. 0: not noted, not checked.
  uint64_t version = 0;
  // Also opens a heap that was not closed, in the state of its last flush(). Only the program can
  // say whether the bytes make sense.
  bool even_if_inconsistent = false;
  // Errors of kKernel: ENOTSUP (the store is not a file), EINVAL (a Runtime, a budget or pages of
  // other than 4 KiB are asked for, too). Of the advice it takes kRandom and kSequential.
  HeapPaging paging = HeapPaging::kOutcore;
  // Options of the shared runtime, for heaps that are opened without a runtime.
  RuntimeOptions runtime{};
};

// A named object or array.
struct PersistentObject {
  std::string name;
  std::string type;     // typeid(T).name(), the compiler's name
  uint64_t offset = 0;  // in the heap
  uint64_t count = 0, element_bytes = 0;
  uint32_t alignment = 0, version = 0;
};

struct PersistentHeapInfo {
  uint32_t format = 0;
  bool is_consistent = false;
  uint64_t version = 0;       // the program's own
  uint64_t size_bytes = 0;    // of the heap in its store, including free parts
  uint64_t in_use_bytes = 0;  // of objects, rounded up to their blocks
  uint64_t metadata_bytes = 0;
  std::vector<PersistentObject> objects;  // by name
};

// The type that a named object must have to be found.
struct PersistentType {
  const char* name = nullptr;
  uint64_t bytes = 0;
  uint32_t alignment = 0;
  uint32_t version = 0;
};

class PersistentCore {
 public:
  struct Impl;  // of the library
  enum class Mode : uint8_t { kCreate, kOpen, kOpenReadOnly };

  // Opens or creates a heap. Without a runtime, it uses one that is shared by all such heaps of the
  // process and starts with the first of them; or none, if the kernel is to map the heap. Errors:
  // as Runtime::map and open_store; EEXIST (create), ENOENT, EBUSY (open elsewhere), EINVAL (not a
  // heap; damaged; another version), ENOTSUP (a newer format), EUCLEAN (not closed).
  static Result<PersistentCore> open(Mode mode, Runtime* runtime, const std::string& uri,
                                     const PersistentHeapOptions& options);
  // The same with a store of the caller, which is not locked against other processes.
  static Result<PersistentCore> open(Mode mode, Runtime* runtime, std::shared_ptr<Store> store,
                                     const PersistentHeapOptions& options);

  PersistentCore(PersistentCore&&) noexcept;
  PersistentCore& operator=(PersistentCore&&) noexcept;
  ~PersistentCore();  // closes; prints errors on stderr, since it cannot return them

  Status close();
  Status flush();
  Status copy(const std::string& uri);
  Status trim();

  // Errors: EINVAL (alignment), EACCES (read-only), ENOSPC, ENOMEM, errors of the store.
  Result<void*> allocate(uint64_t size_bytes, uint64_t alignment);
  void deallocate(void* object);

  // Creates a named object: allocates its bytes and calls `construct` to fill them before other
  // threads can see the name. If that throws, or there is no memory, there is no object. Errors:
  // EEXIST, those of allocate().
  Result<void*> make(const std::string& name, const PersistentType& type, uint64_t count,
                     const std::function<void(void*)>& construct);
  // The object; *count is the number of its elements. Errors: ENOENT, EINVAL (it has another type
  // or version; the message says which).
  Result<void*> find(const std::string& name, const PersistentType& type, uint64_t* count) const;
  Result<void*> find_or_make(const std::string& name, const PersistentType& type, uint64_t count,
                             const std::function<void(void*)>& construct);
  // Removes the name, calls `destruct` for the elements, and frees them. Errors: as find().
  Status destroy(const std::string& name, const PersistentType& type,
                 const std::function<void(void*, uint64_t count)>& destruct);

  std::vector<PersistentObject> objects() const;
  PersistentHeapInfo info() const;
  // Not mapped if the kernel maps the heap (HeapPaging::kKernel).
  Region& region();
  CutMember& cut_member();  // for checkpoints of the heap; of the library
  // The first byte of the heap, which identifies it for allocators.
  std::byte* base() const;

 private:
  explicit PersistentCore(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

// True if the heap was closed or copied, so that it can be opened. Errors: as open().
Result<bool> persistent_heap_is_consistent(const std::string& uri);
// What the store's header and metadata say about the heap. Errors: as open(), but inconsistent
// heaps are allowed.
Result<PersistentHeapInfo> persistent_heap_info(const std::string& uri);
// Checks the heap in the store, and returns its errors, one a line; empty: no errors. Reads headers
// and metadata, but not the objects. Errors: whatever prevents the check.
Result<std::vector<std::string>> persistent_heap_check(const std::string& uri);

// For allocators of containers: allocates in the heap that is mapped at `base`. nullptr: *error has
// the reason. Any thread.
void* persistent_allocate(const void* base, uint64_t size_bytes, uint64_t alignment, Error* error);
void persistent_deallocate(const void* base, void* object, uint64_t size_bytes,
                           uint64_t alignment) noexcept;

}  // namespace outcore
