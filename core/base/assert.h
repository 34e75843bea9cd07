// Assertions: a bug stops the program, with a message that allocates nothing. Any thread, the fault
// path too.
//
// OC_CHECK holds in every build. OC_ASSERT is for checks that cost something: in checked builds
// (OUTCORE_CHECKED).
#pragma once

#define OC_CHECK(condition)                          \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::outcore::base::assertion_failed(#condition, __FILE__, __LINE__))

#ifdef OUTCORE_CHECKED
#define OC_ASSERT(condition) OC_CHECK(condition)
#else
#define OC_ASSERT(condition) static_cast<void>(0)
#endif

namespace outcore::base {
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}  // namespace outcore::base
