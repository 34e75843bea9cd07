// Interruptible: calls that can wait, carried out so that Python hears Ctrl-C meanwhile.
#pragma once

#include <nanobind/nanobind.h>
#include <signal.h>

#include <functional>

#include "outcore/result.h"

namespace outcore::python {

// Signals of the program are for its own threads. Those of a fault stay: see guarantees.md. Gives
// the mask of before.
sigset_t block_signals();

// Whether this is the thread in which Python carries out handlers of signals.
bool hears_signals();

// Carries out `call` in a thread of ours, and waits for it without the GIL. If the handler of a
// signal raises meanwhile, that is thrown at once and the call goes on by itself: it must own what
// it needs, or have it kept by `keep`. Then `ended` is called when it is over, with the GIL.
// REQUIRES: the GIL.
Status call_interruptibly(std::function<Status()> call, nanobind::object keep,
                          std::function<void()> ended);

}  // namespace outcore::python
