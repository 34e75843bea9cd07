// window_calls DIR [CASE]: calls of the C library whose arguments point on into a mapping, or that
// it carries out later or in a thread of its own.
#include <aio.h>
#include <stddef.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "window_cases.h"

using namespace program;

namespace {

Mapped file;
int ends[2];

void begin_case() {
  file = map_new_file();
  require(::pipe(ends) == 0, "pipe");
}

// A file that is not mapped, with these bytes.
int make_other(const char* text) {
  const int number = ::open("other", O_RDWR | O_CREAT | O_TRUNC, 0600);
  require(number >= 0 && ::unlink("other") == 0, "open");
  const auto n = static_cast<ssize_t>(std::strlen(text));
  require(::write(number, text, std::strlen(text)) == n, "write");
  return number;
}

void require_bytes(uint64_t offset, const char* text, const char* what) {
  file.evict();
  if (std::memcmp(file.at(offset), text, std::strlen(text)) != 0) fail("%s: other bytes", what);
}

// -- asynchronous --

int finish(aiocb* call) {
  const aiocb* const list[] = {call};
  while (::aio_error(call) == EINPROGRESS) ::aio_suspend(list, 1, nullptr);
  const int error = ::aio_error(call);
  if (error == 0) require(::aio_return(call) == static_cast<ssize_t>(call->aio_nbytes), "length");
  return error;
}

aiocb call_of(int number, uint64_t offset) {
  aiocb call{};
  call.aio_fildes = number;
  call.aio_buf = file.at(offset);
  call.aio_nbytes = 5;
  call.aio_sigevent.sigev_notify = SIGEV_NONE;
  return call;
}

// `in` is read from, `out` written to.
void run_aio(int in, int out) {
  std::memcpy(file.at(kA), "hello", 5);
  file.evict();
  aiocb call = call_of(out, kA);
  require(::aio_write(&call) == 0, "aio_write");
  if (const int error = finish(&call); error != 0) fail("aio_write ends with error %d", error);
  file.evict();
  call = call_of(in, kB);
  require(::aio_read(&call) == 0, "aio_read");
  if (const int error = finish(&call); error != 0) fail("aio_read ends with error %d", error);
  require_bytes(kB, "hello", "aio_read");
}

void aio_of_pipe() {
  begin_case();
  run_aio(ends[0], ends[1]);
  require_works(file);
}

void aio_of_file() {
  begin_case();
  const int other = make_other("none at all");
  run_aio(other, other);
  require_works(file);
}

void aio_of_handed_back() {
  begin_case();
  hand_back(file);
  const int other = make_other("none at all");
  run_aio(other, other);
  run_aio(ends[0], ends[1]);
}

// -- messages --

int bound_socket(const char* name) {
  const int number = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  sockaddr_un address{AF_UNIX, {}};
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", name);
  ::unlink(name);
  require(::bind(number, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "bind");
  return number;
}

constexpr socklen_t kAddressBytes = sizeof(sockaddr_un);

void exchange_addresses() {
  begin_case();
  const int to = bound_socket("to"), from = bound_socket("from");
  auto* const address = file.as<sockaddr_un>(kA);
  *address = {AF_UNIX, "to"};
  std::memcpy(file.at(kB), "message", 7);
  file.evict();
  require(
      ::sendto(from, file.at(kB), 7, 0, reinterpret_cast<sockaddr*>(address), kAddressBytes) == 7,
      "sendto with its address in the mapping");
  std::memset(address, 0, sizeof *address);
  auto* const length = file.as<socklen_t>(kC);
  *length = kAddressBytes;
  file.evict();
  require(::recvfrom(to, file.at(kD), 100, 0, reinterpret_cast<sockaddr*>(address), length) == 7,
          "recvfrom with its address in the mapping");
  require_bytes(kD, "message", "recvfrom");
  require(address->sun_family == AF_UNIX && std::strcmp(address->sun_path, "from") == 0,
          "recvfrom tells the sender");
  require(*length == offsetof(sockaddr_un, sun_path) + sizeof "from", "and its length");
  char none[8];
  require(::recv(to, none, sizeof none, MSG_DONTWAIT) == -1 && errno == EAGAIN,
          "one message comes once");
  ::unlink("to"), ::unlink("from");
  require_works(file);
}

// Everything that a message has lies in the mapping, each in a page of its own. No text: for what
// is received.
msghdr* put_message(const char* to, const char* text, size_t control_bytes) {
  auto* const message = file.as<msghdr>(kA);
  auto* const list = file.as<iovec>(kB);
  auto* const address = file.as<sockaddr_un>(kC);
  constexpr size_t kFirstBytes = 3, kSecondBytes = 97;
  const size_t length = std::strlen(text);
  list[0] = {file.at(kD), kFirstBytes};
  list[1] = {file.at(kD + 3 * kPageBytes), length == 0 ? kSecondBytes : length - kFirstBytes};
  if (length != 0) {
    std::memcpy(list[0].iov_base, text, kFirstBytes);
    std::memcpy(list[1].iov_base, text + kFirstBytes, length - kFirstBytes);
  } else {
    std::memset(list[0].iov_base, 0, kFirstBytes);
    std::memset(list[1].iov_base, 0, kSecondBytes);
  }
  std::memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  std::snprintf(address->sun_path, sizeof address->sun_path, "%s", to);
  std::memset(message, 0, sizeof *message);
  message->msg_name = address;
  message->msg_namelen = kAddressBytes;
  message->msg_iov = list;
  message->msg_iovlen = 2;
  message->msg_control = file.at(kD + 7 * kPageBytes);
  message->msg_controllen = control_bytes;
  return message;
}

// A descriptor and the sender's identity.
void exchange_control() {
  begin_case();
  const int to = bound_socket("to"), from = bound_socket("from"), on = 1;
  require(::setsockopt(to, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0, "SO_PASSCRED");
  msghdr* const message = put_message("to", "with a descriptor", CMSG_SPACE(sizeof(int)));
  cmsghdr* part = CMSG_FIRSTHDR(message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(part), &ends[1], sizeof(int));
  file.evict();
  require(::sendmsg(from, message, 0) == 17, "sendmsg with all in the mapping");
  put_message("", "", 256);
  std::memset(message->msg_control, 0, 256);
  file.evict();
  require(::recvmsg(to, message, 0) == 17, "recvmsg with all in the mapping");
  file.evict();
  require((message->msg_flags & (MSG_CTRUNC | MSG_TRUNC)) == 0, "nothing is cut off");
  require_bytes(kD, "wit", "recvmsg");
  require_bytes(kD + 3 * kPageBytes, "h a descriptor", "recvmsg");
  require(std::strcmp(file.as<sockaddr_un>(kC)->sun_path, "from") == 0, "it tells the sender");
  int descriptor = -1;
  ucred sender{};
  for (part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_type == SCM_RIGHTS) std::memcpy(&descriptor, CMSG_DATA(part), sizeof(int));
    if (part->cmsg_type == SCM_CREDENTIALS) std::memcpy(&sender, CMSG_DATA(part), sizeof sender);
  }
  require(sender.pid == ::getpid() && sender.uid == ::getuid(), "the sender's identity comes");
  require(descriptor >= 0 && ::write(descriptor, "x", 1) == 1, "the descriptor comes");
  char byte = 0;
  require(::read(ends[0], &byte, 1) == 1 && byte == 'x', "it is the one that was sent");
  ::unlink("to"), ::unlink("from");
  require_works(file);
}

// -- places in files --

// The mapped file is written to, at places that are told in another page of it.
constexpr off_t kTarget = 40 * kPageBytes + 100;

off_t* put_place(uint64_t offset, off_t place) {
  *file.as<off_t>(offset) = place;
  return file.as<off_t>(offset);
}

void copy_range() {
  begin_case();
  const int other = make_other("0123456789");
  loff_t* const from = put_place(kA, 2);
  loff_t* const to = put_place(kB, kTarget);
  file.evict();
  require(::copy_file_range(other, from, file.number, to, 4, 0) == 4,
          "copy_file_range with its places in the mapping");
  require_bytes(kTarget, "2345", "copy_file_range");
  require(*from == 6 && *to == kTarget + 4, "copy_file_range moves its places");
  put_place(kA, kTarget);
  put_place(kB, 0);
  file.evict();
  require(::copy_file_range(file.number, from, other, to, 4, 0) == 4,
          "copy_file_range out of the mapped file");
  char copied[4];
  require(::pread(other, copied, 4, 0) == 4 && std::memcmp(copied, "2345", 4) == 0,
          "it copies what is there");
  require_works(file);
}

void send_file() {
  begin_case();
  const int other = make_other("0123456789");
  require(::lseek(file.number, kTarget, SEEK_SET) == kTarget, "lseek");
  off_t* const from = put_place(kA, 3);
  file.evict();
  require(::sendfile(file.number, other, from, 4) == 4, "sendfile with its place in the mapping");
  require_bytes(kTarget, "3456", "sendfile");
  require(*from == 7, "sendfile moves its place");
  put_place(kA, kTarget);
  file.evict();
  require(::sendfile(ends[1], file.number, from, 4) == 4, "sendfile out of the mapped file");
  char sent[4];
  require(::read(ends[0], sent, 4) == 4 && std::memcmp(sent, "3456", 4) == 0,
          "it sends what is there");
  require_works(file);
}

void splice_pipe() {
  begin_case();
  require(::write(ends[1], "abcdef", 6) == 6, "write");
  loff_t* const to = put_place(kB, kTarget);
  file.evict();
  require(::splice(ends[0], nullptr, file.number, to, 6, 0) == 6,
          "splice with its place in the mapping");
  require_bytes(kTarget, "abcdef", "splice");
  require(*to == kTarget + 6, "splice moves its place");
  put_place(kB, kTarget);
  file.evict();
  require(::splice(file.number, to, ends[1], nullptr, 6, 0) == 6, "splice out of the mapped file");
  char read[6];
  require(::read(ends[0], read, 6) == 6 && std::memcmp(read, "abcdef", 6) == 0,
          "it moves what is there");
  require_works(file);
}

// -- others --

int select_on(fd_set* set, bool is_writable) {
  FD_ZERO(set);
  FD_SET(ends[is_writable ? 1 : 0], set);
  file.evict();
  timeval none{};
  fd_set* same = set;
  asm("" : "+r"(same));  // what the compiler would warn of
  return ::select(ends[0] + ends[1], set, same, nullptr, &none) * 10 +
         (FD_ISSET(ends[is_writable ? 1 : 0], set) != 0);
}

// One set for both: what is written last stays.
void select_twice() {
  begin_case();
  static fd_set plain;
  for (const bool has_bytes : {false, true}) {
    for (const bool is_writable : {false, true}) {
      const int wanted = select_on(&plain, is_writable);
      const int found = select_on(file.as<fd_set>(kA), is_writable);
      if (wanted != found) fail("select of one set twice is %d, not %d", found, wanted);
    }
    if (!has_bytes) require(::write(ends[1], "x", 1) == 1, "write");
  }
  require_works(file);
}

void ask_cache() {
  begin_case();
  constexpr long kCachestat = 451;
  struct Range {
    uint64_t offset, bytes;
  };
  struct Counts {
    uint64_t cached, dirty, being_written, evicted, lately_evicted;
  };
  const int other = make_other("0123456789");
  Range range{0, 4096};
  Counts counts{};
  if (::syscall(kCachestat, other, &range, &counts, 0) != 0) {
    require(errno == ENOSYS || errno == EPERM, "cachestat");  // older kernels, and containers
    return;
  }
  for (const bool is_raw : {false, true}) {
    *file.as<Range>(kA) = range;
    std::memset(file.at(kB), 0xff, sizeof counts);
    file.evict();
    const auto there = reinterpret_cast<long>(file.at(kB));
    const long first = reinterpret_cast<long>(file.at(kA));
    const long result = is_raw ? call_raw(kCachestat, other, first, there)
                               : ::syscall(kCachestat, other, first, there, 0);
    if (result != 0) fail("cachestat in the mapping is %ld", result);
    require(file.as<Counts>(kB)->cached <= 1, "its answer is in the mapping");
  }
  require_works(file);
}

void read_too_many() {
  begin_case();
  require(::write(ends[1], "abc", 3) == 3, "write");
  file.evict();
  volatile int negative = -1;
  for (const uint64_t at : {uint64_t{kA}, kMappedBytes - 64}) {  // more than is mapped there
    errno = 0;
    require(::readv(ends[0], file.as<iovec>(at), 100'000) == -1 && errno == EINVAL,
            "readv of more buffers than there may be");
    require(::writev(ends[1], file.as<iovec>(at), 100'000) == -1 && errno == EINVAL,
            "writev of more buffers than there may be");
    require(::readv(ends[0], file.as<iovec>(at), negative) == -1 && errno == EINVAL,
            "readv of a negative number of buffers");
  }
  char rest[8];
  require(::read(ends[0], rest, sizeof rest) == 3, "nothing was read by them");
  require_works(file);
}

void validate() {
  file = map_new_file(PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE);
  file.evict();
  require_works(file);
  const Mapped second{file.number, reinterpret_cast<unsigned char*>(map(
                                       file.number, kMappedBytes, PROT_READ, MAP_SHARED_VALIDATE))};
  file.words()[77] = 5;
  require(second.words()[77] == 5, "two of them show the same");
}

const Case kCases[] = {
    {"aio-pipe", aio_of_pipe},
    {"aio-file", aio_of_file},
    {"aio-handed-back", aio_of_handed_back},
    {"addresses", exchange_addresses},
    {"control", exchange_control},
    {"copy_file_range", copy_range},
    {"sendfile", send_file},
    {"splice", splice_pipe},
    {"select", select_twice},
    {"cachestat", ask_cache},
    {"readv", read_too_many},
    {"validate", validate},
};

}  // namespace

int main(int count, char** arguments) { return run_cases(count, arguments, kCases); }
