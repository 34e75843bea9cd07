// JsonFields: reads members of a JSON object, each as the type that it must have. The first that is
// missing, or of another type, is the error. One thread.
#pragma once

#include <limits>

#include "core/base/json.h"

namespace outcore::base {

class JsonFields {
 public:
  // `object` must outlive this. error() says so if it is not an object.
  explicit JsonFields(const Json& object);

  // EINVAL, with the name, what is there and what must be: for the line behind "FILE: ".
  const Error& error() const { return error_; }
  bool ok() const { return error_.code == 0; }

  bool contains(std::string_view name) const { return object_.contains(name); }
  // T() after an error.
  template <typename T>
  T get(std::string_view name) {
    if (auto value = object_[name].as<T>()) return std::move(*value);
    refuse(name, type_name<T>());
    return T();
  }
  // `otherwise` if it is missing.
  template <typename T>
  T get(std::string_view name, T otherwise) {
    return object_.contains(name) ? get<T>(name) : std::move(otherwise);
  }
  // None after an error.
  const Json::Array& items(std::string_view name);
  // Notes an error, unless there is one: "'name' is VALUE and must be WANTED".
  void refuse(std::string_view name, const std::string& wanted);
  static std::string whole_number(int64_t least, uint64_t most);  // as what is wanted

 private:
  template <typename T>
  static std::string type_name() {
    if constexpr (std::is_same_v<T, bool>)
      return "true or false";
    else if constexpr (std::is_integral_v<T>)
      return whole_number(std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    else if constexpr (std::is_floating_point_v<T>)
      return "a number";
    else if constexpr (std::is_same_v<T, std::string>)
      return "a text";
    else if constexpr (std::is_same_v<T, Json::Bytes>)
      return "bytes";
    else
      return "a list";
  }

  const Json& object_;
  Error error_;
};

}  // namespace outcore::base
