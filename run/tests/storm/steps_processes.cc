// Steps that make processes, end them, and hand descriptors to them.
#include <sched.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "actors.h"
#include "steps.h"

extern char** environ;

namespace storm {

namespace {

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, __WALL) < 0)
    if (errno != EINTR) mismatch("waitpid: errno %d", errno);
  return status;
}

// A child that shares our memory until it executes or ends. What it calls changes its own table of
// descriptors alone.
struct Errand {
  int numbers[kDescriptorsMax];
  unsigned count;
  unsigned way;
};
void close_and_replace(const Errand& errand) {
  if (errand.way == 1) {
    ::close_range(3, 800, 0);
    return;
  }
  for (unsigned i = 0; i < errand.count; ++i) {
    if (errand.way == 2 && i > 0)
      ::dup2(errand.numbers[0], errand.numbers[i]);
    else
      ::close(errand.numbers[i]);
  }
}

Errand pick_errand() {
  Errand errand = {};
  for (const Descriptor& d : own.descriptors)
    if (d.is_used) errand.numbers[errand.count++] = d.number;
  errand.way = static_cast<unsigned>(random.below(3));
  return errand;
}

// Writes through a descriptor, looks at windows: are the tables those of before?
void use_tables() {
  for (Descriptor& d : own.descriptors) {
    if (!d.is_used || !d.may_write || d.is_appending) continue;
    const uint64_t size = stage->file[d.file].size;
    if (size == 0) continue;
    const uint64_t at = random.below(size);
    uint64_t count = random.size(8192);
    if (count > size - at) count = size - at;
    random.fill(scratch(), count);
    expect(outcome(::pwrite(d.number, scratch(), count, static_cast<off_t>(at))),
           static_cast<long>(count), "pwrite afterwards");
    write_model(d.file, at, scratch(), count);
    for (Window& w : own.windows)
      if (w.is_used && w.file == d.file && (w.prot & PROT_READ) != 0)
        check_window(w, 0, bytes_within(w));
  }
}

struct Memory {
  Window* window;
  uint64_t offset;
  uint64_t count;
  const uint8_t* bytes;
  Errand errand;
};
int write_in_clone(void* argument) {
  const auto* m = static_cast<Memory*>(argument);
  std::memcpy(m->window->base + m->offset, m->bytes, m->count);
  close_and_replace(m->errand);
  ::_exit(0);
}

uint8_t* stack_end() {
  constexpr uint64_t kStackBytes = 256 * 1024;
  static uint8_t* stack = allocate_raw(kStackBytes);
  return stack + kStackBytes;
}

int execute(void* argument) {
  const auto* e = static_cast<Execution*>(argument);
  ::execv(stage->program, e->pointers);
  ::_exit(127);
}

// A few steps of a child that ends at once.
[[noreturn]] void be_short() {
  constexpr void (*kSteps[])() = {
      step_touch_write, step_touch_read, step_write, step_read,  step_map,      step_unmap,
      step_write_block, step_truncate,   step_open,  step_close, step_allocate, step_advise};
  const uint64_t count = random.below(6);
  for (uint64_t i = 0; i < count; ++i) kSteps[random.below(sizeof kSteps / sizeof kSteps[0])]();
  if (random.chance(60)) check_all_of_mine();
  if (random.chance(50)) ::_exit(0);
  std::exit(0);
}

}  // namespace

void step_fork() {
  const unsigned process = free_process();
  if (process == kProcessesMax) return step_short_child();
  say(" p%u", process);
  ++stage->at_work;  // until the child is ready
  const unsigned parent = me.process;
  const pid_t child = ::fork();
  if (child < 0) mismatch("fork: errno %d", errno);
  if (child > 0) return;
  own.is_forked = true;
  begin_process(process, parent);
  be_actor(process);
}

void step_spawn() {
  const unsigned process = free_process();
  if (process == kProcessesMax) return step_short_child();
  const uint64_t way = random.below(4);
  say(" p%u way %lu", process, way);
  static Execution e;
  prepare_execution(e, process, me.process);
  ++stage->at_work;
  let_inherit(e, true);
  pid_t child = -1;
  switch (way) {
    case 0:
      child = ::fork();
      if (child == 0) execute(&e);
      break;
    case 1:
      child = ::vfork();
      if (child == 0) execute(&e);
      break;
    case 2:
      if (::posix_spawn(&child, stage->program, nullptr, nullptr, e.pointers, environ) != 0)
        child = -1;
      break;
    default:
      child = ::clone(execute, stack_end(), CLONE_VM | CLONE_VFORK | SIGCHLD, &e);
  }
  let_inherit(e, false);
  if (child < 0) mismatch("a process cannot be started: errno %d", errno);
}

void step_exec() {
  if (me.process == 0) return say(" not the first");
  static Execution e;
  prepare_execution(e, me.process, stage->processes[me.process].parent);
  let_inherit(e, true);
  end_line();
  ::execv(stage->program, e.pointers);
  mismatch("exec: errno %d", errno);
}

void step_vfork_tables() {
  static Errand errand;
  errand = pick_errand();
  const uint64_t end = random.below(3);
  say(" way %u end %lu", errand.way, end);
  static char name[] = "true";
  static char* arguments[] = {name, nullptr};
  const pid_t child = ::vfork();
  if (child < 0) mismatch("vfork: errno %d", errno);
  if (child == 0) {
    close_and_replace(errand);
    if (end == 1) ::execv("/bin/true", arguments);
    if (end == 2) ::execv("./is-not-there", arguments);
    ::_exit(0);
  }
  answer(wait_for(child), 0);
  use_tables();
}

void step_clone_memory() {
  Window* w = pick_window_with(PROT_READ | PROT_WRITE);
  if (w == nullptr) return say(" nothing");
  const uint64_t there = bytes_within(*w);
  static Memory m;
  m.window = w;
  m.offset = random.below(there);
  m.count = random.size(there - m.offset);
  random.fill(scratch(), m.count);
  m.bytes = scratch();
  m.errand = pick_errand();
  say_window(*w);
  say(" at %lu bytes %lu way %u", m.offset, m.count, m.errand.way);
  const int child = ::clone(write_in_clone, stack_end(), CLONE_VM | SIGCHLD, &m);
  if (child < 0) mismatch("clone: errno %d", errno);
  answer(wait_for(child), 0);
  note_written(*w, m.offset, scratch(), m.count);
  use_tables();
}

void step_short_child() {
  const pid_t child = ::fork();
  if (child < 0) mismatch("fork: errno %d", errno);
  if (child == 0) be_short();
  answer(wait_for(child), 0);
}

void step_pass() {
  Descriptor* d = pick_descriptor(false, false);
  if (d == nullptr) return say(" nothing");
  unsigned to = static_cast<unsigned>(random.below(kProcessesMax));
  while (!stage->processes[to].is_alive) to = (to + 1) % kProcessesMax;
  say(" d%u f%u to p%u", index_of(*d), d->file, to);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "storm-%d-%d", stage->conductor,
                stage->processes[to].pid);
  char byte = 'd';
  iovec vector = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_name = &address;
  message.msg_namelen = sizeof address;
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(rights), &d->number, sizeof(int));
  answer(outcome(::sendmsg(mailbox(), &message, 0)), 1);
  stage->passed = *d;
  stage->receiver = to;
  if (random.chance(30)) close_descriptor(*d);  // it is on its way
}

void receive_passed() {
  begin_line("receive");
  char byte;
  iovec vector = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  answer(outcome(::recvmsg(mailbox(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT)), 1);
  const cmsghdr* rights = CMSG_FIRSTHDR(&message);
  if (rights == nullptr || rights->cmsg_type != SCM_RIGHTS) mismatch("no descriptor came");
  Descriptor* d = free_descriptor();
  if (d == nullptr) {
    d = &own.descriptors[random.below(kDescriptorsMax)];
    close_descriptor(*d);
  }
  *d = stage->passed;
  std::memcpy(&d->number, CMSG_DATA(rights), sizeof(int));
  say(" d%u f%u", index_of(*d), d->file);
  use_tables();
  observe();
  end_line();
}

void reap_child() {
  begin_line("reap");
  const unsigned process = stage->reaped;
  const int status = wait_for(stage->processes[process].pid);
  say(" p%u status %x", process, static_cast<unsigned>(status));
  if (status != stage->expected_status)
    mismatch("p%u ended with status %x, expected was %x", process, static_cast<unsigned>(status),
             static_cast<unsigned>(stage->expected_status));
  for (unsigned file = 0; file < stage->files; ++file) check_file(file, 0, kFileBytesMax);
  end_line();
}

}  // namespace storm
