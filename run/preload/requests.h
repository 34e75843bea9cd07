// Requests: what `outcore residency|warm|evict` ask of this process, through the abstract socket
// "@outcore/PID.CHANCE". Only the same user, or root, is answered. Nothing that must hold depends
// on it: child processes ask through ReleaseLink.
#pragma once

namespace outcore::preload {

// A listening socket, or -errno. Forked children do not have it, or whoever asks when this process
// is gone would wait for them, and they for themselves.
int listen_for_requests();
void keep_requests_from_children();  // once, when the library begins
// Accepts one connection and answers it. Every wait has a bound.
void answer_request(int listener);

}  // namespace outcore::preload
