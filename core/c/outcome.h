// Outcome: the result of a call of the C API: 0 or -errno, and the text of oc_last_error(). Any
// thread. Allocates nothing, so that lack of memory can be reported.
#pragma once

#include <cerrno>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include "core/os/cancel_block.h"
#include "outcore/result.h"

namespace outcore::c {

// Keeps the text for this thread, and returns -code (`code` is an errno value of either sign).
int fail(int code, std::string_view message) noexcept;
int outcome(const Status& status) noexcept;
// "FUNCTION: WHAT is NULL".
int fail_null(const char* function, const char* what) noexcept;
// "FUNCTION: WHY", for exceptions.
int fail_thrown(const char* function, int code, const char* why) noexcept;

// Runs a call and catches exceptions of the standard library. The thread is not cancelled
// meanwhile: a request waits for the thread's next cancellation point. Other exceptions pass: if
// the thread's cancel type is asynchronous, glibc ends it by unwinding, which must not be stopped.
template <typename Call>
int guarded(const char* function, Call&& call) {
  try {
    const os::CancelBlock block;
    return call();
  } catch (const std::bad_alloc&) {
    return fail_thrown(function, ENOMEM, "out of memory");
  } catch (const std::system_error& error) {  // usually a thread that could not be started
    return fail_thrown(function, error.code().value(), error.what());
  } catch (const std::exception& error) {
    return fail_thrown(function, EIO, error.what());
  }
}

}  // namespace outcore::c
