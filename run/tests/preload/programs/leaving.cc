// leaving DIR [BYTES] [bare]: a file is mapped and written, and then others have descriptors of it:
// programs that inherit them (exec, posix_spawn, system, popen), processes that get them through a
// socket, or out of /proc, or by pidfd_getfd; and others shorten it by its name. They read what was
// written, and what they write is seen. "bare": without the right to make others wait, for a file
// that is named by --map.
#include <linux/capability.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <initializer_list>

#include "program.h"

using namespace program;

namespace {

constexpr uint64_t kWord = 0x6c6c6f6820796d20;
char path[] = "./leaving";
uint64_t bytes = 0;

struct File {
  int number = -1;
  uint64_t* words = nullptr;

  explicit File(uint64_t seed, bool is_inherited = true) {
    ::unlink(path);
    number = make_file(path, bytes, seed);
    if (!is_inherited) require(::fcntl(number, F_SETFD, FD_CLOEXEC) == 0, "F_SETFD");
    words = map(number, bytes, PROT_READ | PROT_WRITE);
    words[10] = kWord;
    require(::lseek(number, 80, SEEK_SET) == 80, "lseek");
  }
  ~File() {
    require(::munmap(words, bytes) == 0, "munmap");
    ::close(number);
  }

  // Another has read word 10 as it is here, and has written its complement to word 11.
  void expect(const char* how, uint64_t seen) const {
    if (seen != kWord) fail("%s: the other reads %lx", how, seen);
    if (*static_cast<volatile uint64_t*>(words + 11) != ~kWord)
      fail("%s: the mapping misses what the other wrote", how);
    uint64_t back = 0;
    require(::pread(number, &back, 8, 88) == 8 && back == ~kWord, "the file has it");
    words[12] = 5;
    require(::msync(words, bytes, MS_SYNC) == 0, "msync");
    require(::pread(number, &back, 8, 88) == 8 && back == ~kWord, "the file has it still");
    std::printf("%s\n", how);
  }
};

// What a program does that has the file at descriptor `number`: reads word 10, writes word 11, says
// on standard output what it read.
int be_other(int number) {
  uint64_t word = 0;
  if (::pread(number, &word, 8, 80) != 8) return 1;
  const uint64_t other = ~word;
  if (::pwrite(number, &other, 8, 88) != 8) return 2;
  return ::write(1, &word, 8) == 8 ? 0 : 3;
}

// The program itself, as the other: it was made without us, as LD_PRELOAD is not in its names.
char self[256];
char word_other[] = "--other";
char* no_names[] = {nullptr};

template <typename Start>
uint64_t read_of(const Start& start) {
  int ends[2];
  require(::pipe(ends) == 0, "pipe");
  const pid_t child = start(ends[1]);
  ::close(ends[1]);
  uint64_t seen = 0;
  require(::read(ends[0], &seen, 8) == 8, "the other's word");
  ::close(ends[0]);
  require(code_of(child) == 0, "the other ends well");
  return seen;
}

void expect_inherited() {
  {
    const File file(1);
    char number[16];
    std::snprintf(number, sizeof number, "%d", file.number);
    char* const words[] = {self, word_other, number, nullptr};
    file.expect("fork, exec", read_of([&](int out) {
                  const pid_t child = ::fork();
                  if (child != 0) return child;
                  ::dup2(out, 1);
                  ::execve(self, words, no_names);
                  ::_exit(9);
                }));
  }
  {
    const File file(2, false);
    char zero[] = "0";
    char* const words[] = {self, word_other, zero, nullptr};
    file.expect("fork, dup2, exec", read_of([&](int out) {
                  const pid_t child = ::fork();
                  if (child != 0) return child;
                  ::dup2(out, 1);
                  ::dup2(file.number, 0);
                  ::execve(self, words, no_names);
                  ::_exit(9);
                }));
  }
  {
    const File file(3);
    char number[16];
    std::snprintf(number, sizeof number, "%d", file.number);
    char* const words[] = {self, word_other, number, nullptr};
    file.expect("vfork, exec", read_of([&](int out) {
                  const pid_t child = ::vfork();
                  if (child != 0) return child;
                  ::dup2(out, 1);
                  ::execve(self, words, no_names);
                  ::_exit(9);
                }));
  }
  {
    const File file(4);
    file.expect("a fork that goes on", read_of([&](int out) {
                  const pid_t child = ::fork();
                  if (child != 0) return child;
                  ::dup2(out, 1);
                  ::_exit(be_other(file.number));
                }));
  }
}

uint64_t spawn(const File& file, bool is_copied) {
  char number[16];
  std::snprintf(number, sizeof number, "%d", is_copied ? 0 : file.number);
  char* const words[] = {self, word_other, number, nullptr};
  return read_of([&](int out) {
    posix_spawn_file_actions_t actions;
    require(::posix_spawn_file_actions_init(&actions) == 0, "actions");
    ::posix_spawn_file_actions_adddup2(&actions, out, 1);
    if (is_copied) ::posix_spawn_file_actions_adddup2(&actions, file.number, 0);
    pid_t child = -1;
    require(::posix_spawn(&child, self, &actions, nullptr, words, no_names) == 0, "spawn");
    ::posix_spawn_file_actions_destroy(&actions);
    return child;
  });
}

void expect_started() {
  {
    const File file(11);
    file.expect("posix_spawn", spawn(file, false));
  }
  {
    const File file(12, false);
    file.expect("posix_spawn with a copy", spawn(file, true));
  }
  char command[512];
  {
    const File file(13);
    std::snprintf(command, sizeof command, "env -i %s %s %d >word", self, word_other, file.number);
    require(std::system(command) == 0, "system");
    uint64_t seen = 0;
    const int number = ::open("word", O_RDONLY | O_CLOEXEC);
    require(::read(number, &seen, 8) == 8, "the word");
    ::close(number);
    file.expect("system", seen);
  }
  {
    const File file(14);
    std::snprintf(command, sizeof command, "env -i %s %s %d", self, word_other, file.number);
    FILE* stream = ::popen(command, "r");
    require(stream != nullptr, "popen");
    uint64_t seen = 0;
    require(std::fread(&seen, 8, 1, stream) == 1 && ::pclose(stream) == 0, "popen's word");
    file.expect("popen", seen);
  }
}

// A byte with room for one descriptor beside it.
struct Message {
  char text = 'd';
  iovec part = {&text, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  mmsghdr many = {};
  msghdr& one = many.msg_hdr;

  Message() {
    one.msg_iov = &part;
    one.msg_iovlen = 1;
    one.msg_control = control;
    one.msg_controllen = sizeof control;
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  // The part beside the byte, which claims to be so long.
  cmsghdr* add(size_t length) {
    cmsghdr* const header = CMSG_FIRSTHDR(&one);
    *header = {length, SOL_SOCKET, SCM_RIGHTS};
    return header;
  }
  int descriptor() const {
    require(CMSG_FIRSTHDR(&one) != nullptr, "a descriptor");
    int number = -1;
    std::memcpy(&number, CMSG_DATA(CMSG_FIRSTHDR(&one)), sizeof number);
    return number;
  }
};

// A process that was there before, without us: it waits for one descriptor after the other.
struct Receiver {
  pid_t child = -1;
  int socket = -1;

  Receiver() {
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
    char receive[] = "--receive";
    char* const words[] = {self, receive, nullptr};
    child = ::fork();
    if (child == 0) {
      ::dup2(ends[1], 0);
      ::execve(self, words, no_names);
      ::_exit(9);
    }
    ::close(ends[1]);
    socket = ends[0];
  }
  void send(int number, bool is_many) const {
    Message message;
    std::memcpy(CMSG_DATA(message.add(CMSG_LEN(sizeof number))), &number, sizeof number);
    if (is_many)
      require(::sendmmsg(socket, &message.many, 1, 0) == 1, "sendmmsg");
    else
      require(::sendmsg(socket, &message.one, 0) == 1, "sendmsg");
  }
  uint64_t word() const {
    uint64_t seen = 0;
    require(::read(socket, &seen, 8) == 8, "the receiver's word");
    return seen;
  }
  void end() const {
    ::close(socket);
    require(code_of(child) == 0, "the receiver ends well");
  }
};

int be_receiver() {
  require(::dup2(0, 1) == 1, "dup2");
  for (;;) {
    Message message;
    if (::recvmsg(0, &message.one, 0) != 1) return 0;
    const int number = message.descriptor();
    const int result = be_other(number);
    if (result != 0) return result;
    ::close(number);
  }
}

// A file that is named by --map is taken whatever was sent before: that it is harmless was said.
void expect_sent(const Receiver& receiver, bool is_named) {
  for (const bool is_many : {false, true}) {
    const File file(is_many ? 22 : 21, false);
    receiver.send(file.number, is_many);
    file.expect(is_many ? "sendmmsg" : "sendmsg", receiver.word());
  }
  // What claims to be shorter than its header, or longer than the message, sends nothing.
  for (const size_t length : {size_t{4}, CMSG_LEN(1 << 20)}) {
    Message message;
    message.add(length);
    require(::sendmsg(receiver.socket, &message.one, 0) == -1 && errno == EINVAL, "sendmsg");
  }
  if (is_named) return;
  // Sent before it is mapped, and on its way still: nobody is seen to have it.
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
  ::unlink(path);
  const int number = make_file(path, bytes, 23);
  Receiver late = receiver;
  late.socket = ends[0];
  late.send(number, false);
  uint64_t* words = map(number, bytes, PROT_READ | PROT_WRITE);
  words[10] = kWord;
  Message message;
  require(::recvmsg(ends[1], &message.one, 0) == 1, "recvmsg");
  const int again = message.descriptor();
  uint64_t seen = 0;
  // As another process would: past the C library.
  require(::syscall(SYS_pread64, again, &seen, 8, 80) == 8 && seen == kWord, "what was written");
  std::printf("sent before it was mapped\n");
  require(::munmap(words, bytes) == 0, "munmap");
  for (const int fd : {again, number, ends[0], ends[1]}) ::close(fd);
}

void give_up_rights() {
  __user_cap_header_struct header = {};
  header.version = _LINUX_CAPABILITY_VERSION_3;
  __user_cap_data_struct data[2] = {};
  require(::syscall(SYS_capget, &header, data) == 0, "capget");
  data[0].effective &= ~(1u << CAP_SYS_ADMIN);
  data[0].permitted &= ~(1u << CAP_SYS_ADMIN);
  data[0].inheritable &= ~(1u << CAP_SYS_ADMIN);
  require(::syscall(SYS_capset, &header, data) == 0, "capset");
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 3 && std::strcmp(arguments[1], word_other) == 0)
    return be_other(static_cast<int>(std::strtoul(arguments[2], nullptr, 10)));
  if (count == 2 && std::strcmp(arguments[1], "--receive") == 0) return be_receiver();
  const ssize_t n = ::readlink("/proc/self/exe", self, sizeof self - 1);
  require(n > 0, "readlink");
  bytes = begin(count, arguments);
  const bool is_bare = count > 3 && std::strcmp(arguments[3], "bare") == 0;
  if (is_bare) give_up_rights();
  const Receiver receiver;
  expect_inherited();
  expect_started();
  expect_sent(receiver, is_bare);
  receiver.end();
  return 0;
}
