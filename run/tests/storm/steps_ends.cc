// The ends of processes: what was written through mappings is in the files after each of them.
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "actors.h"
#include "steps.h"

namespace storm {

namespace {

void leave_from_handler(int) { ::_exit(9); }

void end_by(int signal) {
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

// Ways to end, and the status by which a parent hears of them.
struct End {
  int status;
  void (*run)();
};
constexpr End kEnds[] = {
    {0, [] { std::exit(0); }},
    {5 << 8, [] { std::exit(5); }},
    {3 << 8, [] { ::_exit(3); }},
    {4 << 8, [] { std::quick_exit(4); }},
    {SIGABRT, [] { std::abort(); }},
    {SIGTERM, [] { end_by(SIGTERM); }},
    {SIGTERM,
     [] {
       ::kill(::getpid(), SIGTERM);
       for (;;) ::pause();  // another thread may be the one that it ends the process in
     }},
    {SIGINT, [] { end_by(SIGINT); }},
    {SIGUSR2, [] { end_by(SIGUSR2); }},
    {SIGALRM,
     [] {
       ::signal(SIGALRM, SIG_DFL);
       const itimerval soon = {{0, 0}, {0, 10000}};
       ::setitimer(ITIMER_REAL, &soon, nullptr);
       for (;;) ::pause();
     }},
    {SIGSEGV,
     [] {
       ::signal(SIGSEGV, SIG_DFL);
       *reinterpret_cast<volatile int*>(8) = 1;
     }},
    {9 << 8,
     [] {
       ::signal(SIGUSR1, leave_from_handler);
       ::raise(SIGUSR1);
     }},
};

}  // namespace

// A step of chance, or the last one: then by exit().
void step_end() {
  const bool is_last = stage->phase == Phase::kEnd;
  if (is_last) {
    begin_line("end");
    check_all_of_mine();
  }
  if (me.process == 0) {
    if (is_last) end_line();
    return;
  }
  const uint64_t way = is_last ? 0 : random.below(sizeof kEnds / sizeof kEnds[0]);
  say(" way %lu", way);
  stage->processes[me.process].is_alive = false;
  for (Process& p : stage->processes)
    if (p.parent == me.process) p.parent = 0;
  stage->expected_status = kEnds[way].status;
  stage->reaped = me.process;
  end_line();
  end_turn();
  kEnds[way].run();
  ::_exit(77);  // the signal did not end it
}

}  // namespace storm
