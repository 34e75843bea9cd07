// checkpoint --kills: a program that checkpoints without end dies at random instants.
//
// It writes page after page of a region, in an order that the seed gives, each with the number of
// the write, and counts the writes in ordinary memory; so the count says what every page must
// hold. With --memory-part it writes a page of ordinary memory with each. It tells the parent of
// each checkpoint that was made: none of these may be lost.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string>
#include <vector>

#include "bench/anonymous_memory.h"
#include "bench/checkpoints.h"
#include "bench/clock.h"
#include "bench/random.h"
#include "cli/interrupts.h"
#include "cli/text.h"
#include "outcore/checkpoint.h"
#include "outcore/runtime.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kUnit = 4096, kPeriodNs = 100'000'000, kKept = 3;

// Pages of one part of the program, and which of them a write is of.
struct Pages {
  uint64_t count = 0, seed = 0;

  uint64_t bytes() const { return count * kUnit; }
  uint64_t page_of(uint64_t write) const { return mix(mix(seed) + write) % count; }
};

struct Place {
  std::string pool;
  Pages region, memory;  // the memory may have none

  std::string uri() const { return pool + "?object=pages"; }
};

Error wrong_after_kill(const std::string& what) { return {EILSEQ, "after a kill " + what}; }

// What every page must hold after so many writes.
std::vector<uint64_t> expected(const Pages& pages, uint64_t count) {
  std::vector<uint64_t> last(pages.count);
  if (!last.empty())
    for (uint64_t write = 1; write <= count; ++write) last[pages.page_of(write)] = write;
  return last;
}

Status verify(const Pages& pages, const std::byte* bytes, uint64_t count, const char* what) {
  const std::vector<uint64_t> last = expected(pages, count);
  for (uint64_t page = 0; page < pages.count; ++page) {
    const auto* const words = reinterpret_cast<const uint64_t*>(bytes + page * kUnit);
    for (uint64_t i = 0; i < kUnit / sizeof(uint64_t); ++i)
      if (words[i] != (last[page] == 0 ? 0 : last[page] + i))
        return wrong_after_kill("page " + std::to_string(page) + " of the " + what + " holds " +
                                std::to_string(words[i]) + " and should hold " +
                                std::to_string(last[page] + i) + ", after " +
                                std::to_string(count) + " writes");
  }
  return {};
}

void write_page(const Pages& pages, std::byte* bytes, uint64_t write) {
  if (pages.count == 0) return;
  auto* const words = reinterpret_cast<uint64_t*>(bytes + pages.page_of(write) * kUnit);
  for (uint64_t i = 0; i < kUnit / sizeof(uint64_t); ++i) words[i] = write + i;
}

struct Told {
  uint64_t count = 0;  // of the writes that a checkpoint has
  uint64_t open_ns = 0;
};

// What the newest checkpoint has of ordinary memory; zeros and no writes, if there is none.
Status go_back(const Place& place, uint64_t at_least, std::span<std::byte> memory, Told& news) {
  const uint64_t start_ns = now_ns();
  const auto last = restart(place.pool);
  news.open_ns = now_ns() - start_ns;
  if (!last && last.code() != ENOENT) return last.error();
  if (!last && at_least != 0)
    return wrong_after_kill("there is no checkpoint, and one of " + std::to_string(at_least) +
                            " writes was made: " + last.message());
  if (!last) return {};
  if (Status s = last->read("count", news.count); !s) return s;
  if (news.count < at_least)
    return wrong_after_kill("the newest checkpoint is of " + std::to_string(news.count) +
                            " writes, and one of " + std::to_string(at_least) +
                            " was made: it is lost");
  return memory.empty() ? Status() : last->read("memory", memory);
}

Status prune(const std::string& pool) {
  const auto all = list_checkpoints(pool);
  if (!all) return all.error();
  const auto pruned = choose_to_prune(all.value(), {.last = kKept});
  return pruned ? remove_checkpoints(pool, pruned.value()) : pruned.status();
}

// The program: restarts, looks at every byte, and goes on until it is killed.
Status live(const Place& place, uint64_t at_least, int told) {
  const AnonymousMemory memory(nullptr, place.memory.bytes());  // of no bytes: there is none
  std::byte* const own = memory.bytes().data();
  if (memory.bytes().size() != place.memory.bytes())
    return cli::failure(ENOMEM, "make the memory part of the program",
                        "use a smaller --memory-part");
  Told news;
  if (Status s = go_back(place, at_least, memory.bytes(), news); !s) return s;
  RuntimeOptions options;
  options.budget_bytes =
      std::max<uint64_t>(place.region.bytes() / 4, 2 << 20) + place.memory.bytes();
  auto runtime = Runtime::start(options);
  if (!runtime) return runtime.error();
  MapOptions map;
  map.access = Access::kReadWrite;
  map.size_bytes = place.region.bytes();
  map.may_create = true;
  auto region = runtime->map(place.uri(), map);
  if (!region) return region.error();
  uint64_t count = news.count;
  if (Status s = verify(place.region, region->data(), count, "region"); !s) return s;
  if (Status s = verify(place.memory, own, count, "memory part"); !s) return s;
  if (::write(told, &news, sizeof news) != sizeof news) return {};
  std::vector<CheckpointPart> parts{region.value(), {"count", count}};
  if (own != nullptr) parts.emplace_back("memory", own, place.memory.bytes());
  uint64_t next_ns = now_ns() + kPeriodNs;
  for (;;) {
    write_page(place.region, region->data(), count + 1);
    write_page(place.memory, own, count + 1);
    ++count;
    if (now_ns() < next_ns) continue;
    const auto made = checkpoint(std::to_string(count), parts);
    if (!made) return made.error();
    news.count = count;
    if (::write(told, &news, sizeof news) != sizeof news) return {};  // nobody listens any more
    if (Status s = prune(place.pool); !s) return s;
    next_ns = now_ns() + kPeriodNs;
  }
}

// One life. *told becomes the news of its last checkpoint; an error is the child's own.
Status live_and_die(const Place& place, uint64_t life_ns, Told* told, uint64_t* open_ns_max) {
  int news[2], trouble[2];
  if (::pipe2(news, O_CLOEXEC) != 0 || ::pipe2(trouble, O_CLOEXEC) != 0)
    return Error{errno, "make a pipe"};
  const uint64_t at_least = told->count;
  const pid_t child = ::fork();
  if (child < 0) return Error{errno, "start the program that is to be killed"};
  if (child == 0) {
    end_with_parent();
    ::close(news[0]);
    ::close(trouble[0]);
    const Status s = live(place, at_least, news[1]);
    const std::string text = std::to_string(s.code()) + " " + s.message();
    ::_exit(::write(trouble[1], text.data(), text.size()) > 0 ? 1 : 2);
  }
  ::close(news[1]);
  ::close(trouble[1]);
  // Its life begins when it has looked at everything; before that it may die, too, in every fourth.
  pollfd ready{news[0], POLLIN, 0};
  if (life_ns % 4 != 0) ::poll(&ready, 1, 60'000);
  const timespec pause{static_cast<time_t>(life_ns / 1'000'000'000),
                       static_cast<long>(life_ns % 1'000'000'000)};
  ::nanosleep(&pause, nullptr);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  for (Told one; ::read(news[0], &one, sizeof one) == sizeof one;) {
    *told = one;
    *open_ns_max = std::max(*open_ns_max, one.open_ns);
  }
  char text[1024];
  const ssize_t size = ::read(trouble[0], text, sizeof text);
  ::close(news[0]);
  ::close(trouble[0]);
  if (size <= 0) return {};
  const std::string said(text, static_cast<size_t>(size));
  return Error{static_cast<int>(std::strtol(said.c_str(), nullptr, 10)),
               said.substr(said.find(' ') + 1)};
}

}  // namespace

Status measure_kills(const CheckpointOptions& options, const SeeFigure& see,
                     const std::function<void(uint64_t)>& progress) {
  auto folder = OwnFolder::make(options.dir);
  if (!folder) return folder.error();
  const Place place{"versioned:" + folder->path() + "/pool",
                    {std::max<uint64_t>(options.kill_bytes / kUnit, 1), options.seed},
                    {(options.memory_bytes + kUnit - 1) / kUnit, mix(options.seed)}};
  Random random(options.seed);
  Told told;
  uint64_t open_ns_max = 0, checkpoints = 0;
  for (uint64_t done = 0; done < options.kills; ++done) {
    const uint64_t before = told.count;
    if (Status s = live_and_die(place, random.below(400'000'000), &told, &open_ns_max); !s)
      return Error{s.code(), "kill " + std::to_string(done + 1) + " of seed " +
                                 std::to_string(options.seed) + ": " + s.message()};
    if (cli::is_interrupted()) return Error{EINTR, "interrupted"};
    checkpoints += told.count != before;
    progress(done + 1);
  }
  const auto damaged = verify_checkpoints(place.pool);
  if (!damaged) return damaged.error();
  if (!damaged->empty())
    return Error{EILSEQ, "verify: " + damaged->front().object + ": " + damaged->front().why};
  if (options.kills != 0 && checkpoints == 0)
    return Error{ETIME,
                 "no life was long enough for a checkpoint: use a smaller --memory-part, or more "
                 "--kills"};
  see({"kills, each followed by a restart with every byte right", double(options.kills),
       double(options.kills), false, "",
       std::to_string(told.count) + " writes, " + std::to_string(checkpoints) +
           " lives with checkpoints"});
  see({"longest opening after a kill", double(open_ns_max) / 1e9, 1, true, "s", ""});
  return {};
}

}  // namespace outcore::bench
