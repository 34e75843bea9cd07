// later_writes DIR: a database's reads: by aio, as libaio does (instructions of its own, which no
// library sees), without the page cache, into memory of malloc() while other memory is used; where
// there is no aio, by pread. `later_writes DIR refused` wants that there is none.
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <atomic>

#include "program.h"

using namespace program;

namespace {

constexpr uint64_t kPieceBytes = 1 << 20, kPieces = 16, kOtherBytes = 24 << 20;

long raw_call(long number, long a, long b, long c = 0, long d = 0, long e = 0) {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  asm volatile("syscall"
               : "+a"(number)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
               : "rcx", "r11", "memory");
  return number;
}

template <typename T>
long word(T* p) {
  return reinterpret_cast<long>(p);
}

std::atomic<bool> is_over{false};
char* other = nullptr;

void* use_other_memory(void*) {
  for (unsigned char value = 1; !is_over; ++value)
    for (uint64_t at = 0; at < kOtherBytes; at += kPageBytes) other[at] = static_cast<char>(value);
  return nullptr;
}

void read_by_aio(aio_context_t context, int file, char* into) {
  iocb requests[kPieces];
  std::memset(requests, 0, sizeof requests);
  for (uint64_t i = 0; i < kPieces; ++i) {
    iocb& r = requests[i];
    r.aio_fildes = static_cast<unsigned>(file);
    r.aio_lio_opcode = IOCB_CMD_PREAD;
    r.aio_buf = static_cast<uint64_t>(word(into + i * kPieceBytes));
    r.aio_nbytes = kPieceBytes;
    r.aio_offset = static_cast<int64_t>(i * kPieceBytes);
    iocb* one = &r;
    require(raw_call(SYS_io_submit, static_cast<long>(context), 1, word(&one)) == 1, "io_submit");
  }
  io_event ended[kPieces];
  for (uint64_t done = 0; done < kPieces;) {
    const long n = raw_call(SYS_io_getevents, static_cast<long>(context), 1, kPieces, word(ended));
    require(n > 0, "io_getevents");
    for (long i = 0; i < n; ++i) require(ended[i].res == kPieceBytes, "a read is whole");
    done += static_cast<uint64_t>(n);
  }
}

void read_by_waiting(int file, char* into) {
  for (uint64_t i = 0; i < kPieces; ++i)
    require(::pread(file, into + i * kPieceBytes, kPieceBytes,
                    static_cast<off_t>(i * kPieceBytes)) == kPieceBytes,
            "pread");
}

}  // namespace

int main(int count, char** arguments) {
  const bool must_be_refused = count > 2 && std::strcmp(arguments[2], "refused") == 0;
  begin(count > 2 ? 2 : count, arguments);
  ::close(make_file("pages", kPieces * kPieceBytes, 7));
  const int file = ::open("pages", O_RDONLY | O_DIRECT);
  require(file >= 0, "open without the page cache");
  void* buffer = nullptr;
  require(::posix_memalign(&buffer, kPageBytes, kPieces * kPieceBytes) == 0, "posix_memalign");
  other = static_cast<char*>(std::malloc(kOtherBytes));
  require(other != nullptr, "malloc");
  aio_context_t context = 0;
  const bool has_aio = raw_call(SYS_io_setup, kPieces, word(&context)) == 0;
  io_uring_params parameters{};
  const long ring = raw_call(SYS_io_uring_setup, 4, word(&parameters));
  if (must_be_refused) {
    require(!has_aio && ring == -ENOSYS, "io_setup and io_uring_setup are unknown");
    errno = 0;
    require(::syscall(SYS_io_setup, 1, &context) == -1 && errno == ENOSYS, "and by syscall()");
  }
  pthread_t users[2];
  for (pthread_t& user : users) ::pthread_create(&user, nullptr, use_other_memory, nullptr);
  for (int round = 0; round < 3; ++round) {
    std::memset(buffer, 0xee, kPieces * kPieceBytes);
    if (has_aio)
      read_by_aio(context, file, static_cast<char*>(buffer));
    else
      read_by_waiting(file, static_cast<char*>(buffer));
    require(is_filled(static_cast<uint64_t*>(buffer), kPieces * kPieceBytes / 8, 7),
            "what was read is what the file has");
  }
  is_over = true;
  for (const pthread_t user : users) ::pthread_join(user, nullptr);
  std::printf("3 rounds of reads are right\n");
  return 0;
}
