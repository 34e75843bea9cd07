// WithoutGil, WithGil: give up the GIL, or take it, for as long as they live. As nanobind's classes
// of this purpose, but for a daemon thread that takes it while the interpreter ends: before 3.14
// Python ends such a thread there, by an unwinding (pthread_exit) that neither destructors nor
// handlers of all exceptions may meet: the process would abort. It waits instead, without the GIL,
// until the process has ended. It has no lock of ours then; of Python's it may.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace outcore::python {

// What `call` returns: one that takes the GIL, or code of Python's, which may give it up and take
// it again.
template <typename Call>
auto or_wait_for_the_end(const Call& call) {
  try {
    return call();
  } catch (const abi::__forced_unwind&) {  // it must not leave this handler
    for (;;) ::pause();
  }
}

class WithoutGil {
 public:
  WithoutGil() : thread_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() {
    or_wait_for_the_end([this] { PyEval_RestoreThread(thread_); });
  }

 private:
  PyThreadState* const thread_;
};

// In threads of Python's that are WithoutGil, and in those that Python does not know.
class WithGil {
 public:
  WithGil() : state_(or_wait_for_the_end([] { return PyGILState_Ensure(); })) {}
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;
  ~WithGil() { PyGILState_Release(state_); }

 private:
  const PyGILState_STATE state_;
};

}  // namespace outcore::python
