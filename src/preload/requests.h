// Requests: what other processes ask of this one, through the abstract socket "@outcore/PID":
// `outcore residency|warm|evict`, and forked children that need a file handed back. Only the same
// user, or root, is answered.
#pragma once

#include "preload/identity.h"

namespace outcore::preload {

// A listening socket, or -1. Forked children do not have it, or whoever asks when this process is
// gone would wait for them, and they for themselves.
int listen_for_requests();
void keep_requests_from_children();  // once, when the library begins
// Accepts one connection and answers it. Every wait has a bound.
void answer_request(int listener);

// Asks a process to hand the file back, and waits. False: it is gone, or did not answer in time.
bool ask_to_release(int pid, const Identity& file);

}  // namespace outcore::preload
