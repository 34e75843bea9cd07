// PersistentCore: what a persistent heap is without its types: storage with names that outlives the
// program. Programs use PersistentHeap (persistent_heap.h), which is this with types; this part
// needs no Boost.
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

struct PersistentHeapOptions {
  // Addresses kept for the heap: it may grow as far while it is open; open it again with more to go
  // on. 0: 4 TiB or four times its size, less if addresses are short. At most 64 TiB.
  uint64_t reserve_bytes = 0;
  uint64_t page_bytes = 0;  // as in MapOptions; 0: the runtime's
  Advice advice = Advice::kNormal;
  // The program's own number for what it keeps there. create() notes it; open() of another is an
  // error. 0: not noted, not asked.
  uint64_t version = 0;
  // Opens a heap that was not closed, too, as its last flush() left it: only the program can tell
  // whether its bytes make sense.
  bool even_if_inconsistent = false;
  // Of the runtime, for heaps that are opened without one.
  RuntimeOptions runtime{};
};

// A named object, or array.
struct PersistentObject {
  std::string name;
  std::string type;     // typeid(T).name(): as the compiler calls it
  uint64_t offset = 0;  // in the heap
  uint64_t count = 0, element_bytes = 0;
  uint32_t alignment = 0, version = 0;
};

struct PersistentHeapInfo {
  uint32_t format = 0;
  bool is_consistent = false;
  uint64_t version = 0;       // the program's own
  uint64_t size_bytes = 0;    // of the heap in its store, with its free parts
  uint64_t in_use_bytes = 0;  // of objects, rounded up as they lie
  uint64_t metadata_bytes = 0;
  std::vector<PersistentObject> objects;  // by name
};

// What the type of a named object must be for the object to be found.
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

  // Without a runtime: the heaps of the process that have none share one, which starts with the
  // first. Errors: as Runtime::map and open_store; EEXIST (create), ENOENT, EBUSY (open elsewhere),
  // EINVAL (no heap; damaged; of another version), ENOTSUP (a newer format), EUCLEAN (not closed).
  static Result<PersistentCore> open(Mode mode, Runtime* runtime, const std::string& uri,
                                     const PersistentHeapOptions& options);
  // A store of the caller's, which nothing locks against others.
  static Result<PersistentCore> open(Mode mode, Runtime* runtime, std::shared_ptr<Store> store,
                                     const PersistentHeapOptions& options);

  PersistentCore(PersistentCore&&) noexcept;
  PersistentCore& operator=(PersistentCore&&) noexcept;
  ~PersistentCore();  // closes; an error is printed on stderr, since nobody can return it

  Status close();
  Status flush();
  Status copy(const std::string& uri);
  Status trim();

  // Errors: EINVAL (alignment), EACCES (read-only), ENOSPC, ENOMEM, what the store says.
  Result<void*> allocate(uint64_t size_bytes, uint64_t alignment);
  void deallocate(void* object);

  // A new named object: its bytes, which the caller fills by `construct` before others see the
  // name. If that throws, or nobody can have the bytes, there is no object. Errors: EEXIST, those
  // of allocate().
  Result<void*> make(const std::string& name, const PersistentType& type, uint64_t count,
                     const std::function<void(void*)>& construct);
  // The object, and how many elements it has. Errors: ENOENT, EINVAL (of another type or version,
  // and which).
  Result<void*> find(const std::string& name, const PersistentType& type, uint64_t* count) const;
  Result<void*> find_or_make(const std::string& name, const PersistentType& type, uint64_t count,
                             const std::function<void(void*)>& construct);
  // Takes the name away, lets `destruct` end the elements, and frees them. Errors: as find().
  Status destroy(const std::string& name, const PersistentType& type,
                 const std::function<void(void*, uint64_t count)>& destruct);

  std::vector<PersistentObject> objects() const;
  PersistentHeapInfo info() const;
  Region& region();
  CutMember& cut_member();  // what a checkpoint asks of the heap; of the library
  // The heap's first byte, by which its allocators know it.
  std::byte* base() const;

 private:
  explicit PersistentCore(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

// Whether the heap was closed, or copied, and may be opened. Errors: as open().
Result<bool> persistent_heap_is_consistent(const std::string& uri);
// What the store says of the heap. Errors: as open(), but for inconsistent ones.
Result<PersistentHeapInfo> persistent_heap_info(const std::string& uri);
// Everything that is wrong with the heap in the store, one a line; empty: nothing. Reads headers
// and metadata, never the objects. Errors: what keeps it from looking.
Result<std::vector<std::string>> persistent_heap_check(const std::string& uri);

// For allocators of containers: of the heap that is mapped at `base`. nullptr: why not is in
// *error. Any thread.
void* persistent_allocate(const void* base, uint64_t size_bytes, uint64_t alignment, Error* error);
void persistent_deallocate(const void* base, void* object, uint64_t size_bytes,
                           uint64_t alignment) noexcept;

}  // namespace outcore
