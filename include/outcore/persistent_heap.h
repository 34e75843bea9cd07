// PersistentHeap: objects that outlive the program, in a heap that may be far larger than memory.
//
//   auto heap = outcore::PersistentHeap::create("graph.heap").value();
//   auto* seen = heap.construct<uint64_t>("seen", 42).value();        // later runs: open(), find()
//   auto* words = heap.construct<outcore::persistent::vector<int>>("words").value();
//   if (auto s = heap.close(); !s) std::fprintf(stderr, "%s\n", s.message().c_str());
//
// docs/reference/persistent-heap.md describes it in full. Needs Boost's headers (Interprocess,
// Container, Unordered); nothing else of Outcore needs Boost.
//
// Guarantees: a heap that was closed without an error is complete and durable, and can be opened at
// any address. A heap that was not closed is recognised as such (is_consistent, open), whatever
// happened to its program. Errors are returned; only containers throw (PersistentHeapFull).
//
// Threads: any thread may call any function, except close, flush, copy and the destructor, during
// which no other thread may use the heap. Constructors and destructors of named objects run one at
// a time. Plain pointers, references and virtual functions do not survive the program: use
// PersistentPointer. fork: the heap belongs to the parent; a child must open it itself (read-only
// while the parent has it open).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "outcore/persistent_allocator.h"
#include "outcore/persistent_containers.h"
#include "outcore/persistent_core.h"

namespace outcore {

// The program's own version of a type, kept with each named object of that type. Specialise it, and
// raise the number when old bytes no longer have the same meaning:
//   template <> inline constexpr uint32_t outcore::persistent_version<Account> = 2;
template <typename T>
inline constexpr uint32_t persistent_version = 0;

class PersistentHeap {
 public:
  using Options = PersistentHeapOptions;
  template <typename T>
  using Allocator = PersistentAllocator<T>;

  // Creates a heap. Errors: EEXIST, those of open_store and Runtime::map. The runtime must outlive
  // the heap; heaps that are opened without a runtime share one.
  static Result<PersistentHeap> create(const std::string& uri, const Options& options = {}) {
    return of(PersistentCore::open(Mode::kCreate, nullptr, uri, options));
  }
  static Result<PersistentHeap> create(Runtime& runtime, const std::string& uri,
                                       const Options& options = {}) {
    return of(PersistentCore::open(Mode::kCreate, &runtime, uri, options));
  }
  static Result<PersistentHeap> create(Runtime& runtime, std::shared_ptr<Store> store,
                                       const Options& options = {}) {
    return of(PersistentCore::open(Mode::kCreate, &runtime, std::move(store), options));
  }
  // Opens a heap to read and write, in one process at a time. Errors: ENOENT, EBUSY (open
  // elsewhere), EUCLEAN (not closed), EINVAL (not a heap; damaged; another version), ENOTSUP (a
  // newer format).
  static Result<PersistentHeap> open(const std::string& uri, const Options& options = {}) {
    return of(PersistentCore::open(Mode::kOpen, nullptr, uri, options));
  }
  static Result<PersistentHeap> open(Runtime& runtime, const std::string& uri,
                                     const Options& options = {}) {
    return of(PersistentCore::open(Mode::kOpen, &runtime, uri, options));
  }
  static Result<PersistentHeap> open(Runtime& runtime, std::shared_ptr<Store> store,
                                     const Options& options = {}) {
    return of(PersistentCore::open(Mode::kOpen, &runtime, std::move(store), options));
  }
  // Opens a heap to read, in any number of processes, while none writes. A write raises SIGSEGV.
  static Result<PersistentHeap> open_read_only(const std::string& uri,
                                               const Options& options = {}) {
    return of(PersistentCore::open(Mode::kOpenReadOnly, nullptr, uri, options));
  }
  static Result<PersistentHeap> open_read_only(Runtime& runtime, const std::string& uri,
                                               const Options& options = {}) {
    return of(PersistentCore::open(Mode::kOpenReadOnly, &runtime, uri, options));
  }
  static Result<PersistentHeap> open_read_only(Runtime& runtime, std::shared_ptr<Store> store,
                                               const Options& options = {}) {
    return of(PersistentCore::open(Mode::kOpenReadOnly, &runtime, std::move(store), options));
  }
  static Result<bool> is_consistent(const std::string& uri) {
    return persistent_heap_is_consistent(uri);
  }

  PersistentHeap(PersistentHeap&&) noexcept = default;
  PersistentHeap& operator=(PersistentHeap&&) noexcept = default;
  ~PersistentHeap() = default;  // closes and prints errors on stderr: call close() to see them

  // Writes everything, makes it durable, and only then marks the heap consistent. REQUIRES: no
  // other thread uses the heap. After an error of writing the heap stays open, and close() may be
  // tried again; after an error of fsync it is never marked. If only giving back free space fails,
  // the error is returned, but the heap is closed and consistent.
  Status close() { return core_.close(); }
  // Makes objects, names and allocations durable as they are now. The heap still counts as open:
  // after a crash, open() with even_if_inconsistent finds the names of the last flush, with
  // whatever was written to their bytes since. REQUIRES: no other thread uses the heap.
  Status flush() { return core_.flush(); }
  // flush(), and then a copy of the heap at `uri`, consistent and closed. It shares blocks if the
  // filesystem can. REQUIRES: no other thread uses the heap. Errors: EEXIST, those of the target.
  Status copy(const std::string& uri) { return core_.copy(uri); }
  // Gives the space of freed memory back to the store now; otherwise this happens from time to
  // time.
  Status trim() { return core_.trim(); }

  // Creates an object named `name`. Containers of the heap get its allocator as their last
  // argument. Errors: EEXIST, ENOSPC, ENOMEM. If the constructor of T throws, there is no object;
  // PersistentHeapFull is returned as an error, other exceptions pass on to the caller.
  template <typename T, typename... Args>
  Result<T*> construct(const std::string& name, Args&&... args) {
    return typed<T>([&] {
      return core_.make(name, type_of<T>(), 1,
                        [&](void* at) { construct_at<T>(at, std::forward<Args>(args)...); });
    });
  }
  // `count` elements, each constructed with the arguments.
  template <typename T, typename... Args>
  Result<std::span<T>> construct_array(const std::string& name, uint64_t count,
                                       const Args&... args) {
    Result<T*> first = typed<T>([&] {
      return core_.make(name, type_of<T>(), count,
                        [&](void* at) { construct_all<T>(at, count, args...); });
    });
    if (!first) return first.error();
    return std::span<T>(first.value(), count);
  }
  // Errors: ENOENT; EINVAL (another type, size or version; the message says which).
  template <typename T>
  Result<T*> find(const std::string& name) const {
    Result<void*> found = core_.find(name, type_of<T>(), nullptr);
    if (!found) return found.error();
    return static_cast<T*>(found.value());
  }
  template <typename T>
  Result<std::span<T>> find_array(const std::string& name) const {
    uint64_t count = 0;
    Result<void*> found = core_.find(name, type_of<T>(), &count);
    if (!found) return found.error();
    return std::span<T>(static_cast<T*>(found.value()), count);
  }
  template <typename T, typename... Args>
  Result<T*> find_or_construct(const std::string& name, Args&&... args) {
    return typed<T>([&] {
      return core_.find_or_make(name, type_of<T>(), 1, [&](void* at) {
        construct_at<T>(at, std::forward<Args>(args)...);
      });
    });
  }
  // Destroys the object, or all elements of the array, and frees it. Errors: as find().
  template <typename T>
  Status destroy(const std::string& name) {
    return core_.destroy(name, type_of<T>(), [](void* at, uint64_t count) {
      std::destroy_n(static_cast<T*>(at), count);
    });
  }
  // Calls f(const PersistentObject&) for each named object, by name. f must not create or destroy
  // any.
  template <typename F>
  void for_each(F&& f) const {
    for (const PersistentObject& object : core_.objects()) f(object);
  }

  // Allocates bytes without a name: keep a PersistentPointer to them in an object that has a name.
  // Alignment: a power of two up to 4096. Errors: EINVAL, EACCES, ENOSPC (nothing has changed),
  // ENOMEM.
  Result<void*> allocate(uint64_t size_bytes, uint64_t alignment = 16) {
    return core_.allocate(size_bytes, alignment);
  }
  void deallocate(void* object) { core_.deallocate(object); }

  template <typename T = std::byte>
  Allocator<T> allocator() const {
    return Allocator<T>(core_.base());
  }
  PersistentHeapInfo info() const { return core_.info(); }
  // For pin, prefetch, advise and metrics; not for unmap, discard and grow.
  Region& region() { return core_.region(); }
  PersistentCore& core() { return core_; }

 private:
  using Mode = PersistentCore::Mode;
  explicit PersistentHeap(PersistentCore core) : core_(std::move(core)) {}

  static Result<PersistentHeap> of(Result<PersistentCore> core) {
    if (!core) return core.error();
    return PersistentHeap(std::move(core).value());
  }
  template <typename T>
  static PersistentType type_of() {
    static_assert(!std::is_reference_v<T> && !std::is_const_v<T>);
    return {typeid(T).name(), sizeof(T), alignof(T), persistent_version<T>};
  }
  template <typename T, typename Make>
  static Result<T*> typed(const Make& make) {
    try {
      Result<void*> made = make();
      if (!made) return made.error();
      return static_cast<T*>(made.value());
    } catch (const PersistentHeapFull& full) {
      return full.error();
    }
  }
  template <typename T, typename... Args>
  void construct_at(void* at, Args&&... args) {
    using A = Allocator<std::byte>;
    if constexpr (std::uses_allocator_v<T, A> && std::is_constructible_v<T, Args..., A>)
      ::new (at) T(std::forward<Args>(args)..., allocator());
    else
      ::new (at) T(std::forward<Args>(args)...);
  }
  template <typename T, typename... Args>
  void construct_all(void* at, uint64_t count, const Args&... args) {
    struct Made {  // destroys the elements so far if the next constructor throws
      T* first;
      uint64_t count = 0;
      bool is_done = false;
      ~Made() {
        if (!is_done) std::destroy_n(first, count);
      }
    } made{static_cast<T*>(at)};
    for (; made.count < count; ++made.count) construct_at<T>(made.first + made.count, args...);
    made.is_done = true;
  }

  PersistentCore core_;
};

}  // namespace outcore
