// ObjectName: the name of an object's type in a container. Part of outcore/arrays_objects.h.
//
// Numbers are named as in NumPy; standard containers by their own name and those of their parts
// ("map<string,vector<<f8>>"); your types as the compiler writes them. If you rename a type, keep
// reading the stored objects by giving the old name:
//
//   template <>
//   struct outcore::ObjectName<Cell> { static std::string get() { return "Cell"; } };
#pragma once

#include <array>
#include <cereal/details/util.hpp>
#include <complex>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "outcore/arrays.h"

namespace outcore {

template <typename T>
struct ObjectName {
  static std::string get() {
    if constexpr (std::is_arithmetic_v<T> || arrays::IsComplex<T>::value)
      return array_type<T>().name;
    else
      return cereal::util::demangledName<T>();
  }
};

namespace arrays {

template <typename... Parts>
std::string object_name(std::string name) {
  char before = '<';
  ((name += before, name += ObjectName<Parts>::get(), before = ','), ...);
  return name + '>';
}

}  // namespace arrays

template <>
struct ObjectName<std::string> {
  static std::string get() { return "string"; }
};
template <typename T, size_t n>
struct ObjectName<std::array<T, n>> {
  static std::string get() { return arrays::object_name<T>("array" + std::to_string(n)); }
};
template <typename T, typename A>
struct ObjectName<std::vector<T, A>> {
  static std::string get() { return arrays::object_name<T>("vector"); }
};
template <typename T, typename A>
struct ObjectName<std::deque<T, A>> {
  static std::string get() { return arrays::object_name<T>("deque"); }
};
template <typename T, typename A>
struct ObjectName<std::list<T, A>> {
  static std::string get() { return arrays::object_name<T>("list"); }
};
template <typename T, typename C, typename A>
struct ObjectName<std::set<T, C, A>> {
  static std::string get() { return arrays::object_name<T>("set"); }
};
template <typename T, typename H, typename E, typename A>
struct ObjectName<std::unordered_set<T, H, E, A>> {
  static std::string get() { return arrays::object_name<T>("unordered_set"); }
};
template <typename K, typename V, typename C, typename A>
struct ObjectName<std::map<K, V, C, A>> {
  static std::string get() { return arrays::object_name<K, V>("map"); }
};
template <typename K, typename V, typename H, typename E, typename A>
struct ObjectName<std::unordered_map<K, V, H, E, A>> {
  static std::string get() { return arrays::object_name<K, V>("unordered_map"); }
};
template <typename A, typename B>
struct ObjectName<std::pair<A, B>> {
  static std::string get() { return arrays::object_name<A, B>("pair"); }
};
template <typename... Parts>
struct ObjectName<std::tuple<Parts...>> {
  static std::string get() { return arrays::object_name<Parts...>("tuple"); }
};
template <typename... Parts>
struct ObjectName<std::variant<Parts...>> {
  static std::string get() { return arrays::object_name<Parts...>("variant"); }
};
template <typename T>
struct ObjectName<std::optional<T>> {
  static std::string get() { return arrays::object_name<T>("optional"); }
};
template <typename T, typename D>
struct ObjectName<std::unique_ptr<T, D>> {
  static std::string get() { return arrays::object_name<T>("unique_ptr"); }
};
template <typename T>
struct ObjectName<std::shared_ptr<T>> {
  static std::string get() { return arrays::object_name<T>("shared_ptr"); }
};

}  // namespace outcore
