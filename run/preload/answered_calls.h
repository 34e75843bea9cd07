// AnsweredCalls: system calls by number that this library answers in place of the kernel, as the C
// library's functions of that name do here (calls_syscall.cc).
#pragma once

extern "C" long outcore_answer_syscall(long number, long a, long b, long c, long d, long e, long f);

namespace outcore::preload {

// outcore_answer_syscall() knows it: -1 and errno, as syscall() has it.
bool is_answered_call(long number);

}  // namespace outcore::preload
