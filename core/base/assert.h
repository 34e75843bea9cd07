// Assertions: stop the program at a bug, with a message that allocates nothing. Any thread; the
// fault path.
//
// OC_CHECK checks in every build. OC_ASSERT checks in checked builds only (OUTCORE_CHECKED), for
// conditions that take time to evaluate.
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
