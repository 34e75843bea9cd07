// ring_after FOLDER [BYTES] : a program sets up a ring by liburing after it has mapped a file for
// writing. What it writes by one way it reads by the other.
#include <liburing.h>

#include "program.h"

using namespace program;

namespace {

void transfer(io_uring* ring, void (*prepare)(io_uring_sqe*, int, void*), int number, void* page) {
  prepare(::io_uring_get_sqe(ring), number, page);
  require(::io_uring_submit_and_wait(ring, 1) == 1, "io_uring_submit_and_wait");
  io_uring_cqe* end = nullptr;
  require(::io_uring_wait_cqe(ring, &end) == 0 && end->res == static_cast<int>(kPageBytes),
          "a transfer");
  ::io_uring_cqe_seen(ring, end);
}

void try_ring(const char* name, int (*set_up)(io_uring*), uint64_t bytes) {
  const int number = make_file(name, bytes, 1);
  uint64_t* words = map(number, bytes, PROT_READ | PROT_WRITE);
  fill(words, bytes / 8, 2);
  io_uring ring;
  if (set_up(&ring) != 0) {
    std::printf("%s: no ring\n", name);
    return;
  }
  alignas(kPageBytes) static uint64_t page[kPageBytes / 8];
  transfer(
      &ring,
      [](io_uring_sqe* e, int fd, void* p) { ::io_uring_prep_read(e, fd, p, kPageBytes, 0); },
      number, page);
  require(is_filled(page, kPageBytes / 8, 2), "the ring reads what was written to the mapping");
  fill(page, kPageBytes / 8, 3, kPageBytes / 8);
  transfer(
      &ring,
      [](io_uring_sqe* e, int fd, void* p) {
        ::io_uring_prep_write(e, fd, p, kPageBytes, kPageBytes);
      },
      number, page);
  require(is_filled(words + kPageBytes / 8, kPageBytes / 8, 3, kPageBytes / 8),
          "the mapping shows what the ring has written");
  ::io_uring_queue_exit(&ring);
  std::printf("%s: right\n", name);
}

}  // namespace

int main(int count, char** arguments) {
  const uint64_t bytes = begin(count, arguments, 1 << 18);
  // Each in a process of its own: where a ring is there already, nothing is taken.
  constexpr struct {
    const char* name;
    int (*set_up)(io_uring*);
  } ways[] = {{"queue_init", [](io_uring* ring) { return ::io_uring_queue_init(4, ring, 0); }},
              {"queue_init_params", [](io_uring* ring) {
                 io_uring_params params{};
                 return ::io_uring_queue_init_params(4, ring, &params);
               }}};
  for (const auto& way : ways) {
    const pid_t child = ::fork();
    if (child == 0) {
      try_ring(way.name, way.set_up, bytes);
      ::_exit(0);
    }
    require(code_of(child) == 0, way.name);
  }
  return 0;
}
