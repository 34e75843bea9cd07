// outcore top: all processes with a runtime, their files, and what paging costs them, on a terminal
// or as text.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/interrupts.h"
#include "cli/json.h"
#include "sight/commands/columns.h"
#include "sight/commands/observed.h"
#include "sight/commands/pages.h"
#include "sight/commands/terminal.h"
#include "sight/commands/top_window.h"
#include "sight/commands/watch.h"
#include "sight/commands/watch_json.h"

namespace outcore::cli {
namespace {

constexpr size_t kWidthOfFiles = 200;  // where text goes that has no width

struct Words {
  std::string interval = "1s", sort = "stalled";
  std::vector<std::string> processes;
  bool is_once = false, is_json = false;
};

// Two looks, as most figures are of the time between them. False: it was told to end.
Result<bool> look_twice(Watch& watch, std::chrono::milliseconds interval) {
  catch_interrupts();
  if (const Status seen = watch.look(); !seen.ok()) return seen.error();
  if (wait_for(interval, -1, STDOUT_FILENO) != Waited::kTimePassed) return false;
  if (const Status seen = watch.look(); !seen.ok()) return seen.error();
  for (const ProcessView& process : watch.processes()) watch.ask_dirty(process.pid);
  return true;
}

void print_json(const Watch& watch) {
  Json processes = Json::array(), buffers = Json::array();
  for (const ProcessView& process : watch.processes()) processes.push_back(json_of(process));
  for (const BufferView& buffer : watch.buffers()) buffers.push_back(json_of(buffer));
  Json others = Json::array();
  for (const OtherLibrary& other : watch.others())
    others.push_back({{"pid", static_cast<int64_t>(other.process)}, {"version", other.version}});
  show_json({{"seconds", watch.seconds()},
             {"processes", processes},
             {"buffers", buffers},
             {"of_other_versions", others}});
}

void print_text(const Watch& watch, PageStyle style, bool has_files) {
  winsize size{};
  style.has_history = false;
  const bool is_terminal = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0;
  style.width = is_terminal ? size.ws_col : kWidthOfFiles;
  Page page = list_page(watch, style);
  if (has_files && watch.processes().size() == 1) {
    style.sort = "stalled";
    page = process_page(watch.processes().front(), style, {});
  }
  for (const Line& line : page.head) std::printf("%s\n", text_of(line).c_str());
  for (const Line& line : page.rows) std::printf("%s\n", text_of(line).c_str());
}

int run(const Words& words) {
  const auto interval = parse_interval(words.interval);
  if (!interval) return report(interval.error());
  Result<std::vector<pid_t>> only = find_processes(words.processes);
  if (!only) return report(only.error());
  PageStyle style;
  style.glyphs = Glyphs::of_locale();
  style.sort = words.sort;
  style.interval = interval.value();
  Watch watch(*only);
  if (words.is_once || words.is_json) {
    const Result<bool> seen = look_twice(watch, style.interval);
    if (!seen) return report(seen.error());
    if (!seen.value()) return 0;
    if (words.is_json)
      print_json(watch);
    else
      print_text(watch, style, only->size() == 1);
    return 0;
  }
  if (const Status seen = watch.look(); !seen.ok()) return report(seen.error());
  auto terminal = Terminal::open(style.glyphs);
  if (!terminal) return report(terminal.error());
  TopWindow(watch, std::move(*terminal), style).run();
  return 0;
}

}  // namespace

void add_top(CommandSyntax& outcore) {
  const auto words = std::make_shared<Words>();
  outcore.add("top", "Watch all processes with a runtime, their files, and what paging costs them")
      .option("--interval", words->interval, "between two looks, as in 500ms, 2s or 1min (1s)")
      .type("TIME")
      .option("--sort", words->sort, "by this column (stalled)")
      .type("COLUMN")
      .one_of(keys_of(process_columns()))
      .option("--pid", words->processes, "only this process, by number or name; may be repeated")
      .type("PID|NAME")
      .flag("--once", words->is_once, "one sample as text, of one interval; of one --pid its files")
      .flag("--json", words->is_json, "the same as one JSON object, with all counters")
      .footer(
          "STALL: time in faults and calls that wait for pages, of all threads, 100% for one that\n"
          "does nothing else; AGAIN: pages that came in and had been in memory before; AMPL: "
          "bytes\n"
          "read by bytes needed.\n"
          "On the terminal h lists the keys. Processes of other users are seen by root alone.\n"
          "Exit status: 0 done; 1 no terminal, or no process of --pid can be looked at; 2 usage.\n"
          "Examples:\n  outcore top\n  outcore top --once --sort read\n"
          "  outcore top --pid kraken2 --json | jq .processes[0].interval.stalled")
      .runs([words] { return run(*words); });
}

}  // namespace outcore::cli
