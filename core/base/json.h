// Json: a value of JSON or CBOR, to parse, inspect, build and write. Any thread, but one at a time
// while a value changes; not on the fault path.
//
// Input may be forged: it is then an error, or a value of another type than was expected; looking
// for something that is not there gives null. Only json.cc includes nlohmann's library, which
// parses and writes: each source that includes it takes seconds longer to compile.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "outcore/result.h"

namespace outcore::base {

struct JsonStyle {
  int indent = -1;           // spaces a level; -1: all on one line
  bool is_ascii = false;     // other letters as \u escapes
  bool is_as_added = false;  // members as they were added, not in the order of their names
};

class Json {
 public:
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;  // as they were added; of one that was read: by name
  using Bytes = std::vector<uint8_t>;  // CBOR has them, JSON does not
  // Whole numbers from 0 on are uint64_t, however they were made.
  using Any = std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, Bytes,
                           Array, Object>;

  Json();
  Json(std::nullptr_t) : Json() {}
  Json(const char* text);
  Json(std::string_view text);
  Json(std::string text);
  Json(Array items);
  Json(std::initializer_list<Member> members);  // {{"name", value}, …}; the last of a name counts
  template <typename T>
  requires std::is_arithmetic_v<T> Json(T number) : Json() { set_number(number); }
  template <typename T>
  Json(const std::vector<T>& items) : Json(Array(items.begin(), items.end())) {}
  template <typename T>
  Json(const std::map<std::string, T>& members) : Json(object()) {
    for (const auto& [name, value] : members) add_new(name, value);
  }
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();
  static Json array(Array items = {}) { return Json(std::move(items)); }
  static Json object();
  static Json binary(Bytes bytes);

  // How deep arrays and objects may be nested in input, so that code that walks through a value may
  // recurse.
  static constexpr size_t kDepthMax = 64;
  // Errors: EINVAL, with the offset of the first wrong byte. Of members of the same name the last
  // counts; a whole number of more than 64 bits is read as a double. *is_cut: whether the text is
  // the beginning of a value that is cut short.
  static Result<Json> parse(std::string_view text, bool* is_cut = nullptr);
  static Json parse_or_null(std::string_view text);  // null after an error
  // As parse(). Strings of indefinite length (in pieces) are refused: EINVAL.
  static Result<Json> from_cbor(const uint8_t* bytes, size_t size_bytes);
  // Never fails: invalid UTF-8 is replaced, NaN and infinities become null, and bytes become an
  // object with their numbers.
  std::string dump(JsonStyle style = {}) const;
  Bytes to_cbor() const;

  bool is_null() const { return any_.index() == 0; }
  bool is_text() const { return std::holds_alternative<std::string>(any_); }
  bool is_array() const { return std::holds_alternative<Array>(any_); }
  bool is_object() const { return std::holds_alternative<Object>(any_); }
  const Any& any() const { return any_; }

  // The value as a T, if it is one, without loss; else nothing. A whole number is any integer type
  // that it fits into, and every number is a double. std::vector<T>: an array whose items are all
  // T.
  template <typename T>
  std::optional<T> as() const;

  // The items of an array; of any other value there are none.
  const Array& items() const;
  Array::const_iterator begin() const { return items().begin(); }
  Array::const_iterator end() const { return items().end(); }
  const Json& operator[](size_t index) const&;  // null: it has fewer
  void push_back(Json item);                    // REQUIRES: an array, or null, which becomes one

  // The members of an object; any other value has none.
  const Object& members() const;
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  const Json* find(std::string_view name) const;         // nullptr: there is none
  const Json& operator[](std::string_view name) const&;  // null: there is none
  // Added if there is none. REQUIRES: an object, or null, which becomes one.
  Json& operator[](std::string_view name) &;
  template <typename T>
  T value(std::string_view name, T otherwise) const {  // `otherwise`: none, or of another type
    return (*this)[name].as<T>().value_or(std::move(otherwise));
  }
  std::string value(std::string_view name, const char* otherwise) const {
    return value(name, std::string(otherwise));
  }
  void update(const Json& other);  // its members over those here
  void erase(std::string_view name);

  size_t size() const;  // items or members
  bool empty() const { return size() == 0; }

  // Numbers are compared by value, whole or not; objects without regard to the order of members.
  friend bool operator==(const Json& a, const Json& b);
  // Compares two numbers; all other pairs are unordered.
  friend std::partial_ordering operator<=>(const Json& a, const Json& b);
  friend std::ostream& operator<<(std::ostream& out, const Json& json);

 private:
  friend class JsonReader;

  template <typename T>
  void set_number(T number) {
    if constexpr (std::is_same_v<T, bool>)
      set_bool(number);
    else if constexpr (std::is_floating_point_v<T>)
      set_double(static_cast<double>(number));
    else if (std::is_unsigned_v<T> || number >= 0)
      set_unsigned(static_cast<uint64_t>(number));
    else
      set_negative(static_cast<int64_t>(number));
  }
  void add_new(std::string_view name, Json value);  // REQUIRES: an object without that member
  void set_bool(bool is_true);
  void set_double(double number);
  void set_unsigned(uint64_t number);
  void set_negative(int64_t number);

  Any any_;
};

struct Json::Member {
  std::string name;
  Json value;
  bool operator==(const Member& other) const = default;
};

template <>
std::optional<bool> Json::as() const;
template <>
std::optional<int64_t> Json::as() const;
template <>
std::optional<uint64_t> Json::as() const;
template <>
std::optional<double> Json::as() const;
template <>
std::optional<std::string> Json::as() const;
template <>
std::optional<Json::Bytes> Json::as() const;

template <typename T>
std::optional<T> Json::as() const {
  if constexpr (std::is_integral_v<T>) {
    const auto wide = as<std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>();
    if (!wide || !std::in_range<T>(*wide)) return std::nullopt;
    return static_cast<T>(*wide);
  } else {  // std::vector<…>
    T all;
    for (const Json& item : items()) {
      auto one = item.as<typename T::value_type>();
      if (!one) return std::nullopt;
      all.push_back(std::move(*one));
    }
    if (!is_array()) return std::nullopt;
    return all;
  }
}

}  // namespace outcore::base
