// FunctionRef: a reference to something that can be called, of somebody who waits until the callee
// is done with it: two words, and never an allocation, which std::function needs for a lambda that
// refers to more than two things. As std::function_ref of C++26 (P0792).
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace outcore::base {

template <typename Signature>
class FunctionRef;

template <typename Result, typename... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  // Does not own what it refers to: a temporary lives until the end of the call that it is given
  // to.
  template <typename Callable,
            typename = std::enable_if_t<!std::is_same_v<std::decay_t<Callable>, FunctionRef> &&
                                        std::is_invocable_r_v<Result, Callable&, Arguments...>>>
  FunctionRef(Callable&& callable)  // NOLINT(google-explicit-constructor): it stands for it
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Arguments... arguments) -> Result {
          auto& callee = *static_cast<std::remove_reference_t<Callable>*>(object);
          if constexpr (std::is_void_v<Result>)
            static_cast<void>(callee(std::forward<Arguments>(arguments)...));
          else
            return callee(std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const {
    return call_(object_, std::forward<Arguments>(arguments)...);
  }

 private:
  void* object_;
  Result (*call_)(void* object, Arguments... arguments);
};

}  // namespace outcore::base
