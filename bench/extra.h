// Extra: what else a run has to say, by name: truths, numbers and texts.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace outcore::bench {

class ExtraValue {
 public:
  using Any = std::variant<bool, int64_t, uint64_t, double, std::string>;

  ExtraValue() = default;
  template <typename T>
  requires std::is_arithmetic_v<T> ExtraValue(T value) {
    if constexpr (std::same_as<T, bool>)
      any_ = value;
    else if constexpr (std::is_floating_point_v<T>)
      any_ = static_cast<double>(value);
    else if constexpr (std::is_signed_v<T>)
      any_ = static_cast<int64_t>(value);
    else
      any_ = static_cast<uint64_t>(value);
  }
  ExtraValue(std::string text) : any_(std::move(text)) {}
  ExtraValue(const char* text) : any_(std::string(text)) {}

  const Any& any() const { return any_; }
  bool is_count() const { return std::holds_alternative<uint64_t>(any_); }
  // As a T, or `otherwise` if it is of another kind: a text, a truth, or a number.
  template <typename T>
  T get(T otherwise) const {
    return std::visit(
        [&](const auto& held) -> T {
          using Held = std::decay_t<decltype(held)>;
          constexpr bool is_number = std::is_arithmetic_v<T> && !std::same_as<T, bool> &&
                                     std::is_arithmetic_v<Held> && !std::same_as<Held, bool>;
          if constexpr (std::same_as<T, Held>)
            return held;
          else if constexpr (is_number)
            return static_cast<T>(held);
          else
            return otherwise;
        },
        any_);
  }

 private:
  Any any_{false};
};

class Extra {
 public:
  Extra() = default;
  Extra(std::initializer_list<std::pair<const std::string, ExtraValue>> all) : all_(all) {}

  ExtraValue& operator[](const std::string& name) { return all_[name]; }
  bool contains(const std::string& name) const { return all_.contains(name); }
  template <typename T>
  T value(const std::string& name, T otherwise) const {
    const auto found = all_.find(name);
    return found == all_.end() ? otherwise : found->second.get(std::move(otherwise));
  }
  void update(const Extra& other) {
    for (const auto& [name, value] : other.all_) all_[name] = value;
  }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  std::map<std::string, ExtraValue> all_;
};

}  // namespace outcore::bench
