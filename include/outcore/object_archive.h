// ObjectOutput, ObjectInput: archives for cereal, for the objects in a container of arrays.
// Header-only; uses your cereal (Debian: libcereal-dev). Part of outcore/arrays_objects.h.
//
// The bytes are those of cereal::PortableBinaryOutputArchive in little-endian; cereal's archives
// can read and write them. These classes exist because (1) they check sizes of containers against
// the bytes of the archive, so that a forged archive cannot make its reader allocate without limit;
// (2) they compute a shape from the parts of the archive (kinds of numbers and sizes, in order), so
// that an object is read only as what was written; (3) they work on memory. One thread at a time.
#pragma once

#if !__has_include(<cereal/cereal.hpp>)
#error "outcore/arrays_objects.h needs cereal: install libcereal-dev, or put cereal on your path"
#endif
#if !defined(__cpp_exceptions) || !defined(__cpp_rtti)
#error "outcore/arrays_objects.h needs exceptions and RTTI, as cereal does: compile this with them"
#endif

#include <bit>
#include <cereal/cereal.hpp>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

namespace outcore::arrays {

static_assert(std::endian::native == std::endian::little, "containers are little-endian");

// A container may have this many elements that take no bytes; beyond that, each counts as one byte.
constexpr uint64_t kBytelessMax = 4096;

// A hash of the parts of an archive: equal for equal sequences of parts.
class ObjectShape {
 public:
  static constexpr uint64_t kSize = 1;
  // The kind of a number: the same on every machine, whatever the type is called there.
  template <typename T>
  static constexpr uint64_t kind() {
    static_assert(!std::is_floating_point_v<T> || std::numeric_limits<T>::is_iec559,
                  "portable archives know IEEE 754 alone");
    const char letter = std::is_same_v<T, bool>       ? 'b'
                        : std::is_same_v<T, char>     ? 'a'
                        : std::is_floating_point_v<T> ? 'f'
                        : std::is_unsigned_v<T>       ? 'u'
                                                      : 'i';
    return static_cast<uint64_t>(letter) << 8 | sizeof(T);
  }
  void add(uint64_t part) {
    word_ = (word_ ^ part) * 0x9e3779b97f4a7c15u;
    word_ ^= word_ >> 32;
  }
  // A block of numbers counts as single numbers, because cereal stores a C array in one way and
  // loads it in the other.
  template <typename T>
  void add_block(uint64_t size_bytes) {
    for (uint64_t at = 0; at < size_bytes; at += sizeof(T)) add(kind<T>());
  }
  uint64_t word() const { return word_; }

 private:
  uint64_t word_ = 0;
};

class ObjectOutput : public cereal::OutputArchive<ObjectOutput, cereal::AllowEmptyClassElision> {
 public:
  // Appends to *into, which must outlive this object.
  explicit ObjectOutput(std::string* into)
      : cereal::OutputArchive<ObjectOutput, cereal::AllowEmptyClassElision>(this), into_(*into) {
    into_.push_back(1);  // as in cereal: 1 means little-endian
  }
  template <typename T>
  void put(const T& number) {
    shape_.add(ObjectShape::kind<T>());
    into_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  template <typename T>
  void put(const T* numbers, uint64_t size_bytes) {
    shape_.add_block<T>(size_bytes);
    into_.append(reinterpret_cast<const char*>(numbers), size_bytes);
  }
  void put_size(uint64_t count) {
    shape_.add(ObjectShape::kSize);
    into_.append(reinterpret_cast<const char*>(&count), sizeof count);
    if (count > kBytelessMax && into_.size() + count > least_bytes_)
      least_bytes_ = into_.size() + count;
  }
  uint64_t shape() const { return shape_.word(); }
  // Call it at the end. False: an ObjectInput would refuse this archive as forged.
  bool can_be_read() const { return into_.size() >= least_bytes_; }

 private:
  std::string& into_;
  ObjectShape shape_;
  uint64_t least_bytes_ = 0;
};

class ObjectInput : public cereal::InputArchive<ObjectInput, cereal::AllowEmptyClassElision> {
 public:
  struct Refusal : cereal::Exception {
    using cereal::Exception::Exception;
  };
  // `from` must outlive this object. Throws Refusal if the archive does not contain what is asked
  // for.
  explicit ObjectInput(std::string_view from)
      : cereal::InputArchive<ObjectInput, cereal::AllowEmptyClassElision>(this), rest_(from) {
    if (take(1)[0] != 1) refuse("is not little-endian");
  }
  template <typename T>
  void get(T* number) {
    shape_.add(ObjectShape::kind<T>());
    const char* const from = take(sizeof(T));
    if (std::is_same_v<T, bool> && (*from & ~1) != 0) refuse("has a bool that is neither");
    std::memcpy(number, from, sizeof(T));
  }
  template <typename T>
  void get(T* numbers, uint64_t size_bytes) {
    shape_.add_block<T>(size_bytes);
    const char* const from = take(size_bytes);
    for (uint64_t i = 0; std::is_same_v<T, bool> && i < size_bytes; ++i)
      if ((from[i] & ~1) != 0) refuse("has a bool that is neither");
    if (size_bytes > 0) std::memcpy(numbers, from, size_bytes);
  }
  uint64_t get_size() {
    shape_.add(ObjectShape::kSize);
    uint64_t count = 0;
    std::memcpy(&count, take(sizeof count), sizeof count);
    if (count > rest_.size() && count > kBytelessMax) refuse("has more elements than bytes");
    return count;
  }
  // Call it at the end. True: everything was read, and the shape is the expected one.
  bool is_done(uint64_t shape) const { return rest_.empty() && shape == shape_.word(); }

 private:
  const char* take(uint64_t size_bytes) {
    if (size_bytes > rest_.size()) refuse("ends too early");
    const char* const at = rest_.data();
    rest_.remove_prefix(size_bytes);
    return at;
  }
  [[noreturn]] static void refuse(const char* why) {
    throw Refusal(why);  // banned-ok: cereal's way; load_object() makes an Error of it
  }
  std::string_view rest_;
  ObjectShape shape_;
};

// The number type behind cereal's binary data (a pointer or an array).
template <typename T>
using ObjectNumber =
    std::remove_cv_t<std::remove_all_extents_t<std::remove_pointer_t<std::remove_reference_t<T>>>>;

// The functions that cereal expects of an archive, found through the archive's namespace.
template <typename T>
requires std::is_arithmetic_v<T>
void CEREAL_SAVE_FUNCTION_NAME(ObjectOutput& archive, const T& number) { archive.put(number); }
template <typename T>
requires std::is_arithmetic_v<T>
void CEREAL_LOAD_FUNCTION_NAME(ObjectInput& archive, T& number) { archive.get(&number); }
template <typename T>
void CEREAL_SAVE_FUNCTION_NAME(ObjectOutput& archive, const cereal::BinaryData<T>& data) {
  using Number = ObjectNumber<T>;
  archive.put(static_cast<const Number*>(data.data), data.size);
}
template <typename T>
void CEREAL_LOAD_FUNCTION_NAME(ObjectInput& archive, cereal::BinaryData<T>& data) {
  using Number = ObjectNumber<T>;
  archive.get(static_cast<Number*>(data.data), data.size);
}
template <typename T>
void CEREAL_SAVE_FUNCTION_NAME(ObjectOutput& archive, const cereal::SizeTag<T>& tag) {
  archive.put_size(static_cast<uint64_t>(tag.size));
}
template <typename T>
void CEREAL_LOAD_FUNCTION_NAME(ObjectInput& archive, cereal::SizeTag<T>& tag) {
  tag.size = static_cast<std::remove_reference_t<decltype(tag.size)>>(archive.get_size());
}
template <typename T>
void CEREAL_SERIALIZE_FUNCTION_NAME(ObjectOutput& archive, cereal::NameValuePair<T>& pair) {
  archive(pair.value);
}
template <typename T>
void CEREAL_SERIALIZE_FUNCTION_NAME(ObjectInput& archive, cereal::NameValuePair<T>& pair) {
  archive(pair.value);
}

}  // namespace outcore::arrays

// For cereal's polymorphic pointers: include this before CEREAL_REGISTER_TYPE.
CEREAL_REGISTER_ARCHIVE(outcore::arrays::ObjectOutput)
CEREAL_REGISTER_ARCHIVE(outcore::arrays::ObjectInput)
CEREAL_SETUP_ARCHIVE_TRAITS(outcore::arrays::ObjectInput, outcore::arrays::ObjectOutput)
