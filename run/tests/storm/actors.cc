#include "actors.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "steps.h"

namespace storm {

namespace {

int mailbox_number = -1;

struct Start {
  unsigned process;
  unsigned thread;
  uint32_t turns;
};

[[noreturn]] void wait_for_turns(const Start& start);

void* run_thread(void* argument) {
  const Start start = *static_cast<Start*>(argument);
  delete static_cast<Start*>(argument);
  wait_for_turns(start);
}

void act() {
  random =
      Random(stage->seed, stage->step, 1 + me.actor() * 8 + static_cast<uint64_t>(stage->phase));
  switch (stage->phase) {
    case Phase::kStep:
      begin_line(kKinds[stage->kind].name);
      kKinds[stage->kind].run();
      observe();
      end_line();
      break;
    case Phase::kTogether:
      take_part();
      break;
    case Phase::kReceive:
      receive_passed();
      break;
    case Phase::kReap:
      reap_child();
      break;
    case Phase::kEnd:
      step_end();
      break;
  }
}

void wait_for_turns(const Start& start) {
  me = {start.process, start.thread};
  Actor& actor = stage->actors[me.actor()];
  for (uint32_t turns = start.turns;;) {
    while (actor.turns == turns) {
      sleep_on(actor.turns, turns);
      if (stage->has_failed != 0 || ::syscall(SYS_kill, stage->conductor, 0) != 0) ::_exit(6);
    }
    turns = actor.turns;
    act();
    end_turn();
  }
}

// What a wait of the conductor's that does not end is: a process that ended, or a hang.
bool is_lost(unsigned seconds) {
  constexpr unsigned kSecondsMax = 25;
  if (stage->has_failed != 0) return true;
  for (unsigned p = 1; p < kProcessesMax; ++p)
    if (stage->processes[p].is_alive && has_ended(stage->processes[p])) {
      begin_line("conductor");
      say(" MISMATCH seed %lu: p%u ended by itself in %s", stage->seed, p,
          kKinds[stage->kind].name);
      end_line();
      return true;
    }
  if (seconds < kSecondsMax) return false;
  begin_line("conductor");
  say(" MISMATCH seed %lu: %s does not end: phase %u", stage->seed, kKinds[stage->kind].name,
      static_cast<unsigned>(stage->phase));
  end_line();
  return true;
}

}  // namespace

void start_threads(unsigned process, unsigned first) {
  for (unsigned thread = first; thread < stage->threads; ++thread) {
    const uint32_t turns = stage->actors[process * kThreadsMax + thread].turns;
    pthread_t id;
    if (::pthread_create(&id, nullptr, run_thread, new Start{process, thread, turns}) != 0)
      mismatch("a thread cannot be made: errno %d", errno);
    ::pthread_detach(id);
  }
}

void be_actor(unsigned process) {
  const uint32_t turns = stage->actors[process * kThreadsMax].turns;
  end_turn();  // the next one may be given from now on
  wait_for_turns({process, 0, turns});
}

void end_turn() {
  if (stage->at_work.fetch_sub(1) == 1) wake(stage->at_work);
}

bool give_turns(const unsigned* actors, unsigned count, Phase phase) {
  stage->phase = phase;
  stage->at_work = count;
  for (unsigned i = 0; i < count; ++i) {
    ++stage->actors[actors[i]].turns;
    wake(stage->actors[actors[i]].turns);
  }
  const auto now = [] {
    timespec t;
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
  };
  const auto began = now();
  for (uint32_t left; (left = stage->at_work) != 0;) {
    sleep_on(stage->at_work, left);
    if (stage->at_work != 0 && is_lost(static_cast<unsigned>(now() - began))) return false;
  }
  return stage->has_failed == 0;
}

unsigned free_process() {
  unsigned p = 1;
  while (p < kProcessesMax && stage->processes[p].is_alive) ++p;
  return p;
}

int mailbox() { return mailbox_number; }

void make_mailbox() {
  if (mailbox_number >= 0) ::close(mailbox_number);
  mailbox_number = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "storm-%d-%d", stage->conductor,
                ::getpid());
  if (::bind(mailbox_number, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    mismatch("a socket cannot be bound: errno %d", errno);
}

void begin_process(unsigned process, unsigned parent) {
  me = {process, 0};
  make_mailbox();
  start_threads(process, 1);
  Process& p = stage->processes[process];
  p.pid = ::getpid();
  p.parent = parent;
  p.is_alive = true;
}

void prepare_execution(Execution& e, unsigned process, unsigned parent) {
  e.inherited_count = 0;
  std::snprintf(e.arguments[0], sizeof e.arguments[0], "storm");
  std::snprintf(e.arguments[1], sizeof e.arguments[1], "--process");
  std::snprintf(e.arguments[2], sizeof e.arguments[2], "%u,%u", process, parent);
  std::snprintf(e.arguments[3], sizeof e.arguments[3], "%d,%d", stage->conductor, stage_number());
  char* list = e.arguments[4];
  *list = 0;
  for (const Descriptor& d : own.descriptors) {
    if (!d.is_used || e.inherited_count == 3 || !random.chance(50)) continue;
    e.inherited[e.inherited_count++] = d.number;
    const size_t length = std::strlen(list);
    std::snprintf(list + length, sizeof e.arguments[4] - length, "%d,%u,%d,", d.number, d.file,
                  (d.may_read ? 1 : 0) | (d.may_write ? 2 : 0) | (d.is_appending ? 4 : 0));
    say(" with d%u f%u", static_cast<unsigned>(&d - own.descriptors), d.file);
  }
  for (unsigned i = 0; i < 5; ++i) e.pointers[i] = e.arguments[i];
  e.pointers[5] = nullptr;
}

void let_inherit(const Execution& e, bool is_on) {
  for (unsigned i = 0; i < e.inherited_count; ++i)
    ::fcntl(e.inherited[i], F_SETFD, is_on ? 0 : FD_CLOEXEC);
}

void be_executed(int count, char** arguments) {
  unsigned process = 0, parent = 0;
  int conductor = 0, number = 0;
  if (count != 5 || std::sscanf(arguments[2], "%u,%u", &process, &parent) != 2 ||
      std::sscanf(arguments[3], "%d,%d", &conductor, &number) != 2)
    ::_exit(2);
  open_stage(conductor, number);
  install_handlers();
  unsigned used = 0;
  for (const char* at = arguments[4]; *at != 0;) {
    Descriptor d = {};
    int rights = 0, length = 0;
    if (std::sscanf(at, "%d,%u,%d,%n", &d.number, &d.file, &rights, &length) != 3) ::_exit(2);
    at += length;
    d.is_used = true;
    d.may_read = (rights & 1) != 0;
    d.may_write = (rights & 2) != 0;
    d.is_appending = (rights & 4) != 0;
    ::fcntl(d.number, F_SETFD, FD_CLOEXEC);
    own.descriptors[used++] = d;
  }
  begin_process(process, parent);
  be_actor(process);
}

}  // namespace storm
