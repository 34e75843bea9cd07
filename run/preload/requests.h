// Requests: what `outcore residency|warm|evict` ask of this process, through the abstract socket
// "@outcore/PID.CHANCE". Only the same user and root are answered. Nothing that must work depends
// on it: child processes use ReleaseLink.
#pragma once

namespace outcore::preload {

// A listening socket, or -errno. Forked children must not have it: when this process is gone, a
// client would wait for the children, and they for themselves.
int listen_for_requests();
void stop_listening_for_requests();
void keep_requests_from_children();  // once, when the library is loaded
// Accepts one connection and answers it. Every wait is bounded.
void answer_request(int listener);

}  // namespace outcore::preload
