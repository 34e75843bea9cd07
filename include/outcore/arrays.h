// Arrays: named N-dimensional arrays in one container; many processes can write and read it at the
// same time.
//
//   auto out = outcore::Arrays::open("run.oca", outcore::ArraysMode::kWrite).value();
//   out.alloc<double>("u", {1000, 1000});                       // each process: the same
//   out.store("u", mine.data(), {rank * 250, 0}, {250, 1000});  // each process: its box
//   out.store("step", 12);
//   if (auto s = out.close(); !s) …                             // durable, whole, and visible
//
//   auto in = outcore::Arrays::open("run.oca").value();
//   std::vector<double> plane(1000);
//   in.load("u", plane.data(), {500, 0}, {1, 1000});
//   auto u = in.view<double>("u").value();                      // pages come when they are touched
//
// A container is a file, or any other store (docs/guides/arrays.md). An array is in it completely,
// with its shape, or not at all: what was being written when a process died is absent. Shapes,
// offsets and boxes count elements, the first dimension first. Data in memory are dense boxes, last
// dimension fastest, or first with Order::kColumn.
//
// Any thread may call any function except close() and abort(). Boxes that threads or processes
// write at the same time may touch; where they overlap, each element has the value of one of the
// writers. An error is one line: what was attempted, on what, and what to do. A call that is
// refused writes nothing.
//
// After pMAP (Logan et al., HPDC 2021).
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "outcore/arrays_drain.h"
#include "outcore/result.h"

namespace outcore {

class Runtime;

using Dims = std::vector<uint64_t>;

enum class ArraysMode : uint8_t {
  kRead,
  kWrite,   // a new container; replaces an existing one, but no other file
  kUpdate,  // adds arrays; creates the container if there is none
};

// Last dimension fastest, as in C and NumPy; or first dimension fastest, as in Fortran and Matlab.
enum class Order : uint8_t { kRow, kColumn };

// The processes that open a container together. All of them open it, allocate and close; the arrays
// are finished, and visible to others, when the last process has closed.
struct Communicator {
  unsigned rank = 0, size = 1;
  // Waits for all processes, and returns whether any of them has failed (or passed true). Empty:
  // the processes do not wait for each other.
  std::function<bool(bool has_failed)> any;

  // `count` processes of this machine, without MPI. For MPI: outcore/arrays_mpi.h.
  static Communicator processes(unsigned count) { return {0, count, {}}; }
};

// The type of an element, written as in NumPy: "<f8", "<i4", "<c16", "|b1", "S12" (bytes, padded
// with zeros), "V24" (any struct); "text" and "object" are one value of bytes, and
// have one dimension: how many they are.
struct ArrayType {
  std::string name;
  uint32_t size_bytes = 0;
  bool operator==(const ArrayType&) const = default;
  static Result<ArrayType> parse(std::string_view name);
};

struct ArrayInfo {
  std::string name;
  ArrayType type;
  Dims dims;  // empty: a single value
  Order order = Order::kRow;
  Dims tiles;               // empty: not tiled
  std::string compress;     // compression of the tiles; empty: none
  uint64_t size_bytes = 0;  // space in the container; if compressed, the most that it can take
};

struct ArrayOptions {
  Order order = Order::kRow;
  // The shape of the tiles in which the array is kept, if boxes are not whole rows: {64, 64, 64}.
  Dims tiles;
  // "lz4", "zstd" or "zstd:LEVEL" (1 … 19): each tile is compressed separately; without `tiles`, in
  // tiles of about 1 MiB. Tiles below 512 bytes stay uncompressed. A compressed array can be
  // loaded, but not viewed; once it is finished it can be replaced, but not changed.
  std::string compress;
  // For alloc(): the new array replaces a finished one of the same name when it is finished itself.
  bool may_replace = false;
};

struct ArraysOptions {
  // For views, and for stores that are not files; nullptr: starts its own.
  Runtime* runtime = nullptr;
  // Keep new arrays with checksums, one for each block of 1 MiB; verify() compares them.
  // (Compressed arrays always have one for each tile.) Memory must not change while it is stored.
  bool has_checksums = true;
};

// A range of bytes that differs from what was stored.
struct ArrayDamage {
  std::string array;  // empty: the container itself, of which the arrays are whole
  std::string where;  // for people: which bytes or which tile, and where in the container
};

struct ArraysCheck {
  uint64_t arrays = 0, bytes = 0;  // that were read
  uint64_t damages = 0;            // damages found
  // Arrays without checksums: from older containers, or changed in place by a process that died.
  std::vector<std::string> unchecked;
};

namespace arrays {
struct Mapping;  // of the library
struct ArraysAccess;

template <typename T>
struct IsComplex : std::false_type {};
template <typename T>
struct IsComplex<std::complex<T>> : std::is_floating_point<T> {};
template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <typename T>
struct TextBytes : std::integral_constant<size_t, 0> {};
template <size_t n>
struct TextBytes<std::array<char, n>> : std::integral_constant<size_t, n> {};

}  // namespace arrays

// The element type for values of T: any type that is trivially copyable and not a pointer.
template <typename T>
ArrayType array_type() {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>,
                "the container holds the bytes of T: it must be trivially copyable; for others "
                "see outcore/arrays_objects.h");
  constexpr auto kSize = static_cast<uint32_t>(sizeof(T));
  const std::string size = std::to_string(kSize);
  const std::string end = kSize == 1 ? "|" : "<";
  if constexpr (std::is_same_v<T, bool>)
    return {"|b1", 1};
  else if constexpr (std::is_floating_point_v<T>)
    return {end + "f" + size, kSize};
  else if constexpr (arrays::IsComplex<T>::value)
    return {end + "c" + size, kSize};
  else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>)
    return {end + (std::is_signed_v<T> ? "i" : "u") + size, kSize};
  else if constexpr (arrays::TextBytes<T>::value != 0)
    return {"S" + size, kSize};
  else
    return {"V" + size, kSize};
}

// An array, or a box of it, as memory; T is const unless the container is open for writing.
// Move-only; it may outlive its Arrays. Elements lie as in the container; strides count elements.
template <typename T>
class ArrayView {
 public:
  const Dims& dims() const { return dims_; }
  const std::vector<uint64_t>& strides() const { return strides_; }
  T* data() const { return data_; }
  uint64_t size() const {
    uint64_t count = 1;
    for (const uint64_t n : dims_) count *= n;
    return count;
  }
  // True if all elements between the first and the last belong to the box.
  bool is_dense() const { return is_dense_; }
  std::span<T> span() const {
    return {data_, static_cast<size_t>(size())};
  }  // REQUIRES: is_dense()
  // Takes as many indices as there are dimensions; unchecked.
  template <typename... Index>
  T& operator()(Index... index) const {
    const uint64_t at[] = {static_cast<uint64_t>(index)...};
    uint64_t offset = 0;
    for (size_t d = 0; d < sizeof...(index); ++d) offset += at[d] * strides_[d];
    return data_[offset];
  }

 private:
  friend class Arrays;
  Dims dims_;
  std::vector<uint64_t> strides_;
  T* data_ = nullptr;
  bool is_dense_ = false;
  std::shared_ptr<arrays::Mapping> mapping_;
};

class Arrays {
 public:
  struct Impl;  // of the library
  // Opens a path or URI. Errors: ENOENT; EINVAL (not a container, or a newer format); EBUSY (other
  // processes write it); EIO (damaged); ENOTSUP (several processes, on a store that has one
  // writer).
  static Result<Arrays> open(const std::string& uri, ArraysMode mode = ArraysMode::kRead,
                             const Communicator& together = {}, const ArraysOptions& options = {});
  Arrays(Arrays&&) noexcept;
  Arrays& operator=(Arrays&&) noexcept;
  // Calls close() and prints its error on stderr, since it cannot return it. If the destructor runs
  // because of an exception that began after open(), it calls abort() instead: what was being
  // written is incomplete.
  ~Arrays();

  // Stores a single value, or a vector or string as one array; replaces an array of that name.
  template <typename T>
  Status store(const std::string& name, const T& value) {
    return store_whole(name, array_type<T>(), {}, &value);
  }
  template <typename T>
  Status store(const std::string& name, const std::vector<T>& values) {
    return store_whole(name, array_type<T>(), {values.size()}, values.data());
  }
  Status store(const std::string& name, std::string_view text);
  Status store(const std::string& name, const char* text) {
    return store(name, std::string_view(text));
  }
  Status store(const std::string& name, const std::string& text) {
    return store(name, std::string_view(text));
  }

  // Allocates an array; elements that are not stored read zero. All processes call it, with the
  // same arguments. Errors: EEXIST (it is finished, or has another shape), EINVAL (dims overflow;
  // the message says which values are valid), ENOSPC.
  template <typename T>
  Status alloc(const std::string& name, const Dims& dims, const ArrayOptions& options = {}) {
    return alloc(name, array_type<T>(), dims, options);
  }
  Status alloc(const std::string& name, const ArrayType& type, const Dims& dims,
               const ArrayOptions& options = {});
  // Stores a box from dense memory; no other bytes of the array are written. Errors: ENOENT (the
  // message names the nearest array), EINVAL (wrong type, or a box outside of the shape).
  template <typename T>
  Status store(const std::string& name, const T* data, const Dims& offsets, const Dims& dims) {
    return store_box(name, array_type<T>(), data, offsets, dims);
  }
  Status store_box(const std::string& name, const ArrayType& type, const void* data,
                   const Dims& offsets, const Dims& dims);
  // Allocates and stores a whole array; for one process.
  Status store_whole(const std::string& name, const ArrayType& type, const Dims& dims,
                     const void* data, const ArrayOptions& options = {});

  template <typename T>
  Result<T> load(const std::string& name) const {
    if constexpr (std::is_same_v<T, std::string>) {
      return load_text(name);
    } else if constexpr (arrays::IsVector<T>::value) {
      return load_vector<typename T::value_type>(name);
    } else {
      T value{};
      if (Status s = load_box(name, array_type<T>(), &value, {}, {}); !s) return s.error();
      return value;
    }
  }
  template <typename T>
  Status load(const std::string& name, T* into, const Dims& offsets, const Dims& dims) const {
    return load_box(name, array_type<T>(), into, offsets, dims);
  }
  Status load_box(const std::string& name, const ArrayType& type, void* into, const Dims& offsets,
                  const Dims& dims) const;

  // Loads the whole array into memory that `room` provides for the ArrayInfo it is given; errors of
  // `room` are returned. A `type` without a name matches any type. No other thread's store happens
  // between the two.
  Status load_whole(const std::string& name, const ArrayType& type,
                    const std::function<Result<void*>(const ArrayInfo& info)>& room) const;

  // Maps the array, or a box of it. ENOTSUP: the array is tiled, and must be loaded. A view without
  // elements has no data.
  template <typename T>
  Result<ArrayView<const T>> view(const std::string& name, const Dims& offsets = {},
                                  const Dims& dims = {}) const {
    ArrayView<const T> view;
    const void* data = nullptr;
    if (Status s = view_box(name, array_type<T>(), offsets, dims, &view.dims_, &view.strides_,
                            &data, &view.mapping_);
        !s)
      return s.error();
    view.data_ = static_cast<const T*>(data);
    uint64_t dense = 1;
    view.is_dense_ = true;
    for (size_t d = view.dims_.size(); d-- > 0; dense *= view.dims_[d])
      view.is_dense_ = view.is_dense_ && (view.dims_[d] == 1 || view.strides_[d] == dense);
    return view;
  }
  // The same for callers whose types are not C++ types. The bytes stay mapped as long as *mapping
  // exists; strides count elements.
  Status view_box(const std::string& name, const ArrayType& type, const Dims& offsets,
                  const Dims& dims, Dims* view_dims, std::vector<uint64_t>* strides,
                  const void** data, std::shared_ptr<arrays::Mapping>* mapping) const;

  Result<ArrayInfo> info(const std::string& name) const;
  Result<Dims> load_dims(const std::string& name) const;
  Result<ArrayType> type_of(const std::string& name) const;
  // Finished arrays, and those that this process writes; by name.
  std::vector<ArrayInfo> list() const;
  // False also if the array may be in a container to which arrays were drained, and which cannot be
  // opened now. info() tells the cases apart (ENOENT: there is no such array; ENOLINK and others:
  // not known).
  bool has(const std::string& name) const;
  Status rename(const std::string& from, const std::string& to);
  Status remove(const std::string& name);  // its space is reused

  // Short texts kept with an array, or with the container (empty name). An empty text removes it.
  Status set_attribute(const std::string& name, const std::string& key, const std::string& text);
  Result<std::string> attribute(const std::string& name, const std::string& key) const;
  Result<std::vector<std::string>> attributes(const std::string& name) const;

  // Reads one array, or all finished arrays (empty name), and compares them with their checksums;
  // with all of them also the parts of the container's header that no array needs.
  // It continues after damage, and reports each damage. It calls goes_on(bytes read so far) often;
  // false ends it. It does not read arrays that were drained elsewhere. Errors: ENOENT (no such
  // array), ECANCELED.
  Result<ArraysCheck> verify(const std::string& name,
                             const std::function<void(const ArrayDamage&)>& on_damage,
                             const std::function<bool(uint64_t)>& goes_on = {}) const;

  // Copies finished arrays to another container, in the background: outcore/arrays_drain.h.
  Result<ArraysDrain> drain(const std::string& to, const DrainOptions& options = {}) const;

  // Makes durable what this process has stored. If it is the only process: also finishes its
  // arrays.
  Status flush();
  // The same; several processes do it together. Returns the first error of the session.
  Status close();
  // Instead of close(), by any of the writing processes: what the session has written is absent
  // afterwards, as if this process had died, and close() returns an error in the other processes,
  // unless they have closed already. What was flushed, removed, renamed or changed in place stays
  // so. Prints nothing. With MPI it waits until the others close or abort, as close() does.
  void abort();

  std::string uri() const;
  std::string describe() const;  // for people: how bytes are read and written

 private:
  friend struct arrays::ArraysAccess;
  explicit Arrays(std::unique_ptr<Impl> impl);
  Result<std::string> load_text(const std::string& name) const;
  template <typename T>
  Result<std::vector<T>> load_vector(const std::string& name) const {
    std::vector<T> values;
    const Status s =
        load_whole(name, array_type<T>(), [&values](const ArrayInfo& info) -> Result<void*> {
          uint64_t count = 1;
          for (const uint64_t n : info.dims) count *= n;
          values.resize(count);
          return static_cast<void*>(values.data());
        });
    if (!s) return s.error();
    return values;
  }

  std::unique_ptr<Impl> impl_;
};

}  // namespace outcore
