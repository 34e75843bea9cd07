#include "sight/commands/observed.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <utility>

#include "cli/assert.h"
#include "cli/interrupts.h"
#include "cli/text.h"
#include "outcore/sight.h"
#include "sight/commands/process_facts.h"

namespace outcore::cli {
namespace {

constexpr size_t kNamedMax = 8;  // in a message

struct Unit {
  std::string_view name;
  double ms;
};
constexpr Unit kUnits[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"min", 60'000}, {"h", 3'600'000}};

struct Candidate {
  pid_t pid;
  std::string name, called;
};

std::vector<Candidate> candidates() {
  std::vector<Candidate> all;
  for (const pid_t pid : list_published()) {
    ProcessFacts facts = facts_of(pid);
    all.push_back({pid, std::move(facts.name), std::move(facts.called)});
  }
  return all;
}

std::string text_of(const std::vector<Candidate>& all) {
  std::string text;
  for (size_t i = 0; i < std::min(all.size(), kNamedMax); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(all[i].pid) + " (" + all[i].name + ")";
  return all.size() <= kNamedMax
             ? text
             : text + " and " + std::to_string(all.size() - kNamedMax) + " more";
}

}  // namespace

Result<std::chrono::milliseconds> parse_interval(const std::string& text) {
  static constexpr double kLeastMs = 50, kMostMs = 3'600'000;
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (read.ec == std::errc())
    for (const Unit& unit : kUnits) {
      if (unit.name != std::string_view(read.ptr, static_cast<size_t>(end - read.ptr))) continue;
      const double ms = number * unit.ms;
      if (ms >= kLeastMs && ms <= kMostMs)
        return std::chrono::milliseconds(static_cast<int64_t>(ms));
    }
  return Error{EINVAL,
               "'" + text +
                   "' is not an interval: write a time from 50ms to 1h, as in 2, 0.5, 500ms "
                   "or 1min"};
}

Result<pid_t> find_process(const std::string& text) {
  const std::string attempt = "find process '" + text + "'";
  if (!text.empty() &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) {
    pid_t pid = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (read.ec == std::errc() && pid > 0) return pid;
    return Error{EINVAL, attempt + ": it is not the number of a process"};
  }
  if (text.empty()) return Error{EINVAL, attempt + ": write a number, or the name of a program"};
  const std::vector<Candidate> all = candidates();
  std::vector<Candidate> named;
  for (const Candidate& one : all)
    if (one.name == text || one.called == text) named.push_back(one);
  if (named.size() == 1) return named.front().pid;
  if (!named.empty())
    return Error{ENOTUNIQ, attempt + ": " + std::to_string(named.size()) +
                               " have that name: write one of the numbers " + text_of(named)};
  const std::string remedy =
      all.empty() ? "none is running: start one by `outcore run`" : "there are " + text_of(all);
  return Error{ENOENT, attempt + ": no process of that name has a runtime of Outcore; " + remedy};
}

Result<std::vector<pid_t>> find_processes(const std::vector<std::string>& texts) {
  std::vector<pid_t> all;
  for (const std::string& text : texts) {
    Result<pid_t> found = find_process(text);
    if (!found) return found.error();
    CLI_CHECK(*found > 0);
    if (std::find(all.begin(), all.end(), *found) == all.end()) all.push_back(*found);
  }
  return all;
}

Waited wait_for(std::chrono::milliseconds time, int process_fd, int reader_fd) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + time;
  while (!is_interrupted()) {
    std::array<pollfd, 2> files{pollfd{process_fd, POLLIN, 0}, pollfd{reader_fd, 0, 0}};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    const int wait_ms = static_cast<int>(std::max<int64_t>(0, left));
    const int ready = ::poll(files.data(), files.size(), wait_ms);
    if (ready > 0) return files[1].revents != 0 ? Waited::kNoReader : Waited::kProcessEnded;
    if (ready == 0 && Clock::now() >= until) return Waited::kTimePassed;
  }
  return Waited::kInterrupted;
}

}  // namespace outcore::cli
