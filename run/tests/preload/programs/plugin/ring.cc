// A plugin that has liburing for itself alone: see ring_plugin.cc.
#include <liburing.h>

extern "C" __attribute__((visibility("default"))) int set_up_a_ring() {
  io_uring ring;
  const int error = ::io_uring_queue_init(4, &ring, 0);
  if (error == 0) ::io_uring_queue_exit(&ring);
  return error;
}
