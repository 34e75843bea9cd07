// storm --dir DIR [--seed N] [--steps N] [--threads T] [--level 1…3] [--only NAME,…] [--not NAME,…]
//       [--skip STEP,…] | --list
//
// Random steps of several processes with several threads on mapped files, descriptors and allocated
// memory, the same for the same seed. A conductor gives turns: one actor acts at a time, or several
// on ranges of their own, so that nothing depends on scheduling, and two runs may be compared. Each
// step prints a line. All bytes are known in a model beside; where something else is seen, a line
// MISMATCH tells, and the exit code is 1.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "actors.h"
#include "steps.h"

namespace storm {

const Kind kKinds[] = {
    {"map", 1, 14, step_map},
    {"map_over", 1, 5, step_map_over},
    {"unmap", 1, 7, step_unmap},
    {"protect", 1, 6, step_protect},
    {"remap", 1, 5, step_remap},
    {"advise", 1, 8, step_advise},
    {"sync", 1, 4, step_sync},
    {"touch_read", 1, 14, step_touch_read},
    {"touch_write", 1, 18, step_touch_write},
    {"touch_many", 1, 8, step_touch_many},
    {"new_file", 1, 4, step_new_file},
    {"open", 1, 8, step_open},
    {"close", 1, 5, step_close},
    {"dup", 1, 5, step_dup},
    {"read", 1, 10, step_read},
    {"write", 1, 14, step_write},
    {"truncate", 1, 6, step_truncate},
    {"fallocate", 1, 5, step_fallocate},
    {"move_bytes", 1, 2, step_move_bytes},
    {"fsync", 1, 3, step_fsync},
    {"copy", 1, 5, step_copy},
    {"seek_data", 1, 3, step_seek_data},
    {"allocate", 1, 4, step_allocate},
    {"resize_block", 1, 3, step_resize_block},
    {"free", 1, 2, step_free},
    {"write_block", 1, 4, step_write_block},
    {"file_to_block", 1, 3, step_file_to_block},
    {"block_to_file", 1, 3, step_block_to_file},
    {"together", 1, 14, step_together},
    {"fork", 2, 4, step_fork},
    {"spawn", 2, 4, step_spawn},
    {"exec", 2, 2, step_exec},
    {"end", 2, 4, step_end},
    {"vfork_tables", 2, 4, step_vfork_tables},
    {"clone_memory", 2, 2, step_clone_memory},
    {"short_child", 2, 4, step_short_child},
    {"pass", 2, 5, step_pass},
    {"signal", 3, 6, step_signal},
    {"timer", 3, 4, step_timer},
    {"cancel", 3, 6, step_cancel},
    {"blocked", 3, 3, step_blocked},
    {"aio", 3, 4, step_aio},
};
const unsigned kKindsCount = sizeof kKinds / sizeof kKinds[0];

namespace {

struct Options {
  uint64_t seed = 1;
  uint64_t steps = 120;
  unsigned threads = 2;
  unsigned level = 3;
  const char* folder = nullptr;
  const char* only = nullptr;
  const char* without = nullptr;
  const char* skip = nullptr;
};
Options options;

[[noreturn]] void end_with_usage(const char* what) {
  std::fprintf(stderr,
               "storm: %s\nusage: storm --dir DIR [--seed N] [--steps N] [--threads T] [--level L] "
               "[--only NAME,...] [--not NAME,...] [--skip STEP,...] | --list\n",
               what);
  std::exit(2);
}

uint64_t number_of(const char* text) {
  char* end;
  errno = 0;
  const uint64_t value = std::strtoull(text, &end, 0);
  if (errno != 0 || end == text || *end != 0) end_with_usage("that is no number");
  return value;
}

// Whether a list of words, with commas between, has this one.
bool has_word(const char* list, const char* word) {
  const size_t length = std::strlen(word);
  for (const char* at = list; at != nullptr && *at != 0;) {
    const char* end = std::strchr(at, ',');
    const size_t n = end != nullptr ? static_cast<size_t>(end - at) : std::strlen(at);
    if (n == length && std::strncmp(at, word, n) == 0) return true;
    at = end != nullptr ? end + 1 : nullptr;
  }
  return false;
}

void check_names(const char* list) {
  for (const char* at = list; at != nullptr && *at != 0;) {
    const size_t n = std::strcspn(at, ",");
    bool is_known = false;
    for (const Kind& kind : kKinds)
      is_known |= std::strlen(kind.name) == n && std::strncmp(kind.name, at, n) == 0;
    if (!is_known) end_with_usage("there is no such kind: see --list");
    at += n + (at[n] == ',' ? 1 : 0);
  }
}

void read_options(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    const char* name = arguments[i];
    const auto is = [name](const char* option) { return std::strcmp(name, option) == 0; };
    if (is("--list")) {
      for (const Kind& kind : kKinds) std::printf("%u %s\n", kind.level, kind.name);
      std::exit(0);
    }
    if (i + 1 == count) end_with_usage("an option lacks its value");
    const char* value = arguments[++i];
    if (is("--dir"))
      options.folder = value;
    else if (is("--only"))
      options.only = value;
    else if (is("--not"))
      options.without = value;
    else if (is("--skip"))
      options.skip = value;
    else if (is("--seed"))
      options.seed = number_of(value);
    else if (is("--steps"))
      options.steps = number_of(value);
    else if (is("--threads"))
      options.threads = static_cast<unsigned>(number_of(value));
    else if (is("--level"))
      options.level = static_cast<unsigned>(number_of(value));
    else
      end_with_usage("there is no such option");
  }
  if (options.folder == nullptr) end_with_usage("--dir is missing");
  if (options.threads < 1 || options.threads > kThreadsMax) end_with_usage("--threads is 1 to 3");
  check_names(options.only);
  check_names(options.without);
}

bool is_chosen(const Kind& kind) {
  if (kind.level > options.level) return false;
  if (options.only != nullptr && !has_word(options.only, kind.name)) return false;
  return options.without == nullptr || !has_word(options.without, kind.name);
}

unsigned pick_kind() {
  uint64_t sum = 0;
  for (const Kind& kind : kKinds) sum += is_chosen(kind) ? kind.weight : 0;
  if (sum == 0) end_with_usage("nothing is left to do");
  uint64_t at = random.below(sum);
  for (unsigned i = 0;; ++i) {
    if (!is_chosen(kKinds[i])) continue;
    if (at < kKinds[i].weight) return i;
    at -= kKinds[i].weight;
  }
}

unsigned alive_actors(unsigned (&actors)[kActorsMax]) {
  unsigned count = 0;
  for (unsigned p = 0; p < kProcessesMax; ++p)
    for (unsigned t = 0; stage->processes[p].is_alive && t < stage->threads; ++t)
      actors[count++] = p * kThreadsMax + t;
  return count;
}

// Waits for a process that ended: its parent does, or who adopts orphans, which is this process.
bool reap() {
  const unsigned parent = stage->processes[stage->reaped].parent;
  const unsigned actor = parent * kThreadsMax;
  return give_turns(&actor, 1, Phase::kReap);
}

// One step; false: it failed.
bool run_step() {
  random = Random(options.seed, stage->step);
  unsigned actors[kActorsMax];
  const unsigned count = alive_actors(actors);
  stage->kind = pick_kind();
  stage->is_for_all = false;
  stage->receiver = stage->reaped = kProcessesMax;
  const unsigned leader = actors[random.below(count)];
  if (!give_turns(&leader, 1, Phase::kStep)) return false;
  if (stage->is_for_all && !give_turns(actors, count, Phase::kTogether)) return false;
  if (stage->receiver != kProcessesMax) {
    const unsigned actor = stage->receiver * kThreadsMax;
    if (!give_turns(&actor, 1, Phase::kReceive)) return false;
  }
  return stage->reaped == kProcessesMax || reap();
}

// All processes look at all they have, and end; those forked last first.
bool end_run() {
  for (unsigned p = kProcessesMax; p-- > 0;) {
    if (!stage->processes[p].is_alive) continue;
    stage->reaped = kProcessesMax;
    const unsigned actor = p * kThreadsMax;
    if (!give_turns(&actor, 1, Phase::kEnd)) return false;
    if (stage->reaped != kProcessesMax && !reap()) return false;
  }
  begin_line("files");
  for (unsigned file = 0; file < stage->files; ++file) check_file(file, 0, kFileBytesMax);
  end_line();
  return true;
}

// Nobody of a storm that failed is left behind.
int fail() {
  stage->has_failed = 1;
  for (unsigned p = 1; p < kProcessesMax; ++p)
    if (stage->processes[p].is_alive) ::kill(stage->processes[p].pid, SIGKILL);
  ::_exit(1);
}

int run(int count, char** arguments) {
  read_options(count, arguments);
  // Paths are relative, so that what is printed does not depend on where the files are.
  if (::chdir(options.folder) != 0) end_with_usage("--dir is no folder");
  const rlimit none = {0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  make_stage();
  stage->seed = options.seed;
  stage->threads = options.threads;
  stage->level = options.level;
  stage->conductor = ::getpid();
  if (::readlink("/proc/self/exe", stage->program, sizeof stage->program - 1) < 0)
    end_with_usage("/proc is not there");
  install_handlers();
  random = Random(options.seed, ~uint64_t{0});
  make_file();
  make_file();
  make_mailbox();
  stage->processes[0].pid = stage->conductor;
  stage->processes[0].is_alive = true;
  start_threads(0, 0);
  for (; stage->step < options.steps; ++stage->step) {
    char number[24];
    std::snprintf(number, sizeof number, "%lu", stage->step);
    if (!has_word(options.skip, number) && !run_step()) return fail();
  }
  return end_run() ? 0 : fail();
}

}  // namespace
}  // namespace storm

int main(int count, char** arguments) {
  if (count > 1 && std::strcmp(arguments[1], "--process") == 0)
    storm::be_executed(count, arguments);
  return storm::run(count, arguments);
}
