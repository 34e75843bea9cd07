// Arrays: named N-dimensional arrays in one container, written and read by many processes at once.
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
// A container is a file, or any store of Outcore's (docs/guides/arrays.md). An array is in it,
// whole and with its shape, or it is not: what was being written when a process died is absent.
// Shapes, offsets and boxes count elements, the first dimension first; data in memory are dense
// boxes, last dimension fastest, or first with Order::kColumn.
//
// Any thread may call anything but close() and abort(); boxes that threads or processes write at
// once may touch, and where they overlap each element is one writer's. Errors are one line: what,
// where, and what would do. Nothing is written by a call that is refused.
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
  kWrite,   // new; what is there is replaced, if it is a container
  kUpdate,  // more arrays; made if there is none
};

// Last dimension fastest, as C and NumPy have it; or the first, as Fortran and Matlab.
enum class Order : uint8_t { kRow, kColumn };

// Who opens a container together. All of them open, allocate and close; arrays are finished, and
// visible to others, when the last has closed.
struct Communicator {
  unsigned rank = 0, size = 1;
  // All have come here; empty: processes that do not wait for each other. Also carries whether one
  // of them has failed.
  std::function<bool(bool has_failed)> any;

  // So many processes of this machine, without MPI. For MPI: outcore/arrays_mpi.h.
  static Communicator processes(unsigned count) { return {0, count, {}}; }
};

// What an element is. NumPy's words: "<f8", "<i4", "<c16", "|b1", "S12" (bytes, zeros behind),
// "V24" (any struct); "text" and "object" are one value of bytes.
struct ArrayType {
  std::string name;
  uint32_t size_bytes = 0;
  bool operator==(const ArrayType&) const = default;
  static Result<ArrayType> parse(std::string_view name);
};

struct ArrayInfo {
  std::string name;
  ArrayType type;
  Dims dims;  // empty: one value
  Order order = Order::kRow;
  Dims tiles;               // empty: one piece
  std::string compress;     // of its tiles; empty: none
  uint64_t size_bytes = 0;  // that it takes in the container; compressed: at most
};

struct ArrayOptions {
  Order order = Order::kRow;
  // The shape of the pieces in which it is kept, for boxes that are no rows: {64, 64, 64}.
  Dims tiles;
  // "lz4", "zstd" or "zstd:LEVEL" (1 … 19): each tile by itself, in tiles of about 1 MiB if none
  // are given (tiles below 512 bytes stay as they are). Such an array is loaded, not viewed; when
  // it is finished it is replaced, not changed.
  std::string compress;
  // Of alloc(): it takes the place of a finished array of its name when it is finished itself.
  bool may_replace = false;
};

struct ArraysOptions {
  Runtime* runtime = nullptr;  // for views and stores that are no files; none: one of its own
  // Arrays that are made are kept with checksums, a block of 1 MiB each (compressed ones always,
  // a tile each), which verify() compares. Memory that is stored must not change meanwhile.
  bool has_checksums = true;
};

// Bytes that are not what was stored.
struct ArrayDamage {
  std::string array;
  std::string where;  // for people: which bytes, or which tile, and where in the container
};

struct ArraysCheck {
  uint64_t arrays = 0, bytes = 0;      // that were read
  uint64_t damages = 0;                // that were found
  std::vector<std::string> unchecked;  // arrays without checksums: of older containers, or changed
                                       // in place by a process that died
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

// The type that holds values of T: any that is trivially copyable, and no pointer.
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

// An array, or a box of it, as memory: T const unless the container is open for writing. Move-only;
// outlives its Arrays. Elements are touched as they are in the container: strides count elements.
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
  // No element between its first and last is of another box.
  bool is_dense() const { return is_dense_; }
  std::span<T> span() const {
    return {data_, static_cast<size_t>(size())};
  }  // REQUIRES: is_dense()
  // As many indices as dimensions; unchecked.
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
  // A path or URI. Errors: ENOENT; EINVAL (no container, a newer format); EBUSY (others write it);
  // EIO (damaged); ENOTSUP (several processes on a store that takes one writer).
  static Result<Arrays> open(const std::string& uri, ArraysMode mode = ArraysMode::kRead,
                             const Communicator& together = {}, const ArraysOptions& options = {});
  Arrays(Arrays&&) noexcept;
  Arrays& operator=(Arrays&&) noexcept;
  // close(), whose error is printed on stderr, since nobody can return it; abort() if an exception
  // is on its way that was not when it was opened: what was being written is not all there.
  ~Arrays();

  // One value, or a vector or string as one: in place of what has the name.
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

  // Room for an array; what is not stored reads zero. All processes do it, with the same words.
  // Errors: EEXIST (finished, or of another shape), EINVAL (dims: overflow, and what would do),
  // ENOSPC.
  template <typename T>
  Status alloc(const std::string& name, const Dims& dims, const ArrayOptions& options = {}) {
    return alloc(name, array_type<T>(), dims, options);
  }
  Status alloc(const std::string& name, const ArrayType& type, const Dims& dims,
               const ArrayOptions& options = {});
  // A box of it, from dense memory; exactly these bytes are written. Errors: ENOENT (with the
  // nearest name), EINVAL (the type, a box outside of the shape).
  template <typename T>
  Status store(const std::string& name, const T* data, const Dims& offsets, const Dims& dims) {
    return store_box(name, array_type<T>(), data, offsets, dims);
  }
  Status store_box(const std::string& name, const ArrayType& type, const void* data,
                   const Dims& offsets, const Dims& dims);
  // An array at once: alloc and store of one process.
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

  // All of it, into the memory that `room` gives for what is there; its errors are returned. The
  // type is any if it has no name. No other thread's store comes between the two.
  Status load_whole(const std::string& name, const ArrayType& type,
                    const std::function<Result<void*>(const ArrayInfo& info)>& room) const;

  // All of it, or a box. ENOTSUP: it is tiled, and has to be loaded. Of a view without elements
  // there are no data.
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
  // The same for callers whose types are not C++'s. The bytes stay as long as *mapping does;
  // strides count elements.
  Status view_box(const std::string& name, const ArrayType& type, const Dims& offsets,
                  const Dims& dims, Dims* view_dims, std::vector<uint64_t>* strides,
                  const void** data, std::shared_ptr<arrays::Mapping>* mapping) const;

  Result<ArrayInfo> info(const std::string& name) const;
  Result<Dims> load_dims(const std::string& name) const;
  Result<ArrayType> type_of(const std::string& name) const;
  std::vector<ArrayInfo> list() const;  // finished ones, and what we write; by name
  // False also where arrays were drained to what cannot be opened now: info() tells them apart
  // (ENOENT: it is nowhere; ENOLINK and others: that is not known).
  bool has(const std::string& name) const;
  Status rename(const std::string& from, const std::string& to);
  Status remove(const std::string& name);  // its space is used again

  // Short texts with an array, or with the container (no name). Empty: there is none.
  Status set_attribute(const std::string& name, const std::string& key, const std::string& text);
  Result<std::string> attribute(const std::string& name, const std::string& key) const;
  Result<std::vector<std::string>> attributes(const std::string& name) const;

  // Reads all finished arrays, or one, and compares them with their checksums; goes on behind what
  // is damaged, which it tells one by one. goes_on(bytes read so far) is called often: false ends
  // it. Of what was drained elsewhere it reads nothing. Errors: ENOENT (no such array), ECANCELED.
  Result<ArraysCheck> verify(const std::string& name,
                             const std::function<void(const ArrayDamage&)>& on_damage,
                             const std::function<bool(uint64_t)>& goes_on = {}) const;

  // Its finished arrays to another container, in the background: outcore/arrays_drain.h.
  Result<ArraysDrain> drain(const std::string& to, const DrainOptions& options = {}) const;

  // What this process has stored is durable. Of one process alone: and finished.
  Status flush();
  // The same, and of several: together. Returns the first error there was.
  Status close();
  // In place of close(), by any one of those who write: what the session has written is absent, as
  // if this process had died, and the others' close() returns an error, unless they have closed
  // already. What was flushed, removed, renamed or changed in place stays so. Nothing is printed.
  // With MPI it waits for the others to close or abort, as close() does.
  void abort();

  std::string uri() const;
  std::string describe() const;  // how its bytes travel, for people

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
