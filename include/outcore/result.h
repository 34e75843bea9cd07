// Result: what a call returns; Error: why it failed.
//
// There are three kinds of error (ARCHITECTURE.md): a bug stops the program, a failed call returns
// a Result, and a failed fill is treated as the region's options say. Nothing in Outcore throws.
// Any thread. Not used on the fault path, where functions return 0 or -errno and allocate nothing.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

namespace outcore {

// An errno value and one line for people: what was attempted on what, why it failed, and what to
// do.
struct Error {
  int code = 0;
  std::string message;
};

// Status: success, or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  bool ok() const { return error_.code == 0; }
  explicit operator bool() const { return ok(); }
  int code() const { return error_.code; }
  const std::string& message() const { return error_.message; }
  const Error& error() const { return error_; }

 private:
  Error error_;
};

// Result<T>: a T, or an Error. REQUIRES: ok() before value(); otherwise value() stops the program
// with the error's message.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    require();
    return std::get<0>(state_);
  }
  const T& value() const& {
    require();
    return std::get<0>(state_);
  }
  T&& value() && {
    require();
    return std::get<0>(std::move(state_));
  }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }

  // REQUIRES: !ok().
  const Error& error() const { return std::get<1>(state_); }
  int code() const { return ok() ? 0 : error().code; }
  const std::string& message() const { return error().message; }
  Status status() const { return ok() ? Status() : Status(error()); }

 private:
  void require() const {
    if (ok()) return;
    std::fprintf(stderr, "outcore: value() of a failed Result: %s\n", error().message.c_str());
    std::abort();
  }
  std::variant<T, Error> state_;
};

}  // namespace outcore
