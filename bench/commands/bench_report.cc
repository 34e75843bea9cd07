// outcore bench report: figures of files of --json lines, drawn by gnuplot.
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <vector>

#include "bench/runner.h"
#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/text.h"

namespace outcore::cli {
namespace {

using bench::RunResult;
using bench::Series;

// One figure: groups of bars, a bar for each memory.
struct Figure {
  std::string title, unit;
  std::vector<std::string> groups, memories;                   // in the order of the file
  std::map<std::pair<std::string, std::string>, Series> bars;  // by group and memory

  bool has_bars() const {
    return std::any_of(bars.begin(), bars.end(),
                       [](const auto& bar) { return !bar.second.is_stopped(); });
  }
};

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

std::string title_of(const RunResult& run) {
  std::string title = run.extra.value("row", std::string());
  if (title.empty()) title = run.workload;
  return title + ": " + format_bytes(run.data_bytes) + " in " + format_bytes(run.budget_bytes) +
         " on " + run.device;
}

std::string group_of(const RunResult& run) {
  const unsigned threads = run.threads * run.processes;
  std::string group = std::to_string(threads) + (threads == 1 ? " thread" : " threads");
  if (const std::string variant = run.extra.value("variant", std::string()); !variant.empty())
    group += ", " + variant;
  return group;
}

std::vector<Figure> figures_of(const std::vector<RunResult>& runs) {
  std::vector<Figure> figures;
  for (const RunResult& run : runs) {
    const std::string title = title_of(run), group = group_of(run);
    auto found = std::find_if(figures.begin(), figures.end(), [&](const Figure& f) {
      return f.title == title && f.unit == run.unit;
    });
    if (found == figures.end())
      found = figures.insert(figures.end(), Figure{title, run.unit, {}, {}, {}});
    std::string memory = run.memory;
    if (memory == "outcore" && run.page_bytes != 4096)
      memory += ", pages of " + format_bytes(run.page_bytes);
    add_once(found->groups, group);
    add_once(found->memories, memory);
    Series& series = found->bars[{group, memory}];
    series.memory = memory;
    series.runs.push_back(run);
  }
  return figures;
}

const char* colour_of(const std::string& memory) {
  if (memory == "outcore") return "#1b7f5c";
  if (memory.rfind("outcore", 0) == 0) return "#7cc4a8";
  if (memory == "mmap") return "#d98b2b";
  if (memory == "mmap-random") return "#b5523b";
  if (memory == "mmap-dontneed") return "#a08030";
  if (memory == "direct") return "#4a6fa5";
  if (memory == "two-pass") return "#7d5ba6";
  return "#8c8c8c";
}

// What a file of runs says is data, never a command of gnuplot's: a text must not end its line nor
// its quotes, and gnuplot runs what it finds between backquotes but in single quotes.
std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  return text;
}

// In a command: single quotes, in which nothing but a single quote means anything.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : printable(text)) {
    if (c == '\'') out += c;
    out += c;
  }
  return out + "'";
}

// In a block of data, which knows double quotes only, and backslashes in them.
std::string cell(const std::string& text) {
  std::string out = printable(text);
  for (char& c : out) {
    if (c == '"' || c == '`') c = '\'';
    if (c == '\\') c = '/';
  }
  return "\"" + out + "\"";
}

std::string name_of(const std::string& title) {
  static constexpr size_t kNameMax = 100;
  std::string name;
  for (const char c : title.substr(0, title.find(": "))) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (is_plain) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!is_plain && !name.empty() && name.back() != '-') name += '-';
  }
  name.resize(std::min(name.size(), kNameMax));
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "figure" : name;
}

// Medians as bars, the extremes as error bars. A run that was stopped has no rate: no bar. The
// picture goes to standard output.
std::string script_of(const Figure& figure) {
  static constexpr size_t kWidthMin = 640, kWidthMax = 20'000;
  std::ostringstream out;
  const size_t width =
      std::clamp(160 + 70 * figure.groups.size() * figure.memories.size(), kWidthMin, kWidthMax);
  out << "set terminal pngcairo size " << width << ",420 noenhanced font 'sans,10'\n"
      << "set title " << quoted(figure.title) << "\nset ylabel "
      << quoted(figure.unit + ", higher is better")
      << "\nset style data histogram\nset style histogram errorbars gap 1 lw 1\n"
         "set style fill solid 0.9 noborder\nset yrange [0:*]\nset format y '%.1s %c'\n"
         "set grid y lc '#dddddd'\nset border 3\nset tics nomirror\n"
         "set key outside right top reverse Left\nset bars 0.6\nset rmargin 24\ndo for [i=1:16] { "
         "set linetype i lc rgb '#333333' }\n$runs << EOD\n";
  for (const std::string& group : figure.groups) {
    out << cell(group);
    for (const std::string& memory : figure.memories) {
      const auto found = figure.bars.find({group, memory});
      std::vector<double> rates;
      if (found != figure.bars.end())
        for (const RunResult& run : found->second.runs)
          if (!run.is_stopped) rates.push_back(run.rate());
      if (rates.empty()) {
        out << " NaN NaN NaN";
        continue;
      }
      const auto [low, high] = std::minmax_element(rates.begin(), rates.end());
      out << ' ' << found->second.median_rate() << ' ' << *low << ' ' << *high;
    }
    out << '\n';
  }
  out << "EOD\nplot";
  for (size_t i = 0; i < figure.memories.size(); ++i) {
    const size_t column = 2 + 3 * i;
    out << (i == 0 ? " " : ", ") << "$runs using " << column << ':' << column + 1 << ':'
        << column + 2 << (i == 0 ? ":xtic(1)" : "") << " title " << quoted(figure.memories[i])
        << " lc '" << colour_of(figure.memories[i]) << '\'';
  }
  out << '\n';
  return out.str();
}

// A file in memory, for what gnuplot reads, draws and says: nothing to take away, however it ends.
class MemoryFile {
 public:
  MemoryFile() : file_(::memfd_create("outcore-report", MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (file_ >= 0) ::close(file_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  int file() const { return file_; }
  std::string text() const {
    std::string all;
    char part[16384];
    ssize_t n = 0;
    while ((n = ::pread(file_, part, sizeof part, static_cast<off_t>(all.size()))) > 0)
      all.append(part, static_cast<size_t>(n));
    return all;
  }

 private:
  int file_;
};

// 0, or why not.
int write_all(int file, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::write(file, bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno != EINTR) return errno;
    if (n == 0) return EIO;
    if (n > 0) at += static_cast<size_t>(n);
  }
  return 0;
}

// gnuplot repeats a command and points at the place; what is wrong follows "line 3: ".
std::string first_error(const std::string& said) {
  const std::vector<std::string> lines = split(said, '\n');
  for (const std::string& line : lines) {
    const size_t at = line.find(" line "), colon = line.find(": ", at);
    if (!line.starts_with("gnuplot>") && at != std::string::npos && colon != std::string::npos)
      return line.substr(colon + 2);
  }
  return lines.empty() ? "it failed and said nothing" : lines.front();
}

// Runs gnuplot on the script, without a shell and without its settings files; what it drew.
Result<std::string> draw(const std::string& script) {
  const MemoryFile in, out, said;
  if (in.file() < 0 || out.file() < 0 || said.file() < 0)
    return failure(errno, "make a file in memory");
  if (const int why = write_all(in.file(), script); why != 0)
    return failure(why, "write to a file in memory");
  ::lseek(in.file(), 0, SEEK_SET);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in.file(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out.file(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, said.file(), STDERR_FILENO);
  char name[] = "gnuplot", defaults[] = "-d";
  char* const arguments[] = {name, defaults, nullptr};
  pid_t id = -1;
  const int failed = ::posix_spawnp(&id, name, &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed == ENOENT)
    return Error{ENOENT,
                 "bench report draws with gnuplot, which is not here: apt-get install gnuplot-nox"};
  if (failed != 0) return failure(failed, "start gnuplot");
  int status = 0;
  while (::waitpid(id, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFSIGNALED(status))
    return Error{EIO, format("gnuplot was ended by signal %d", WTERMSIG(status))};
  if (WEXITSTATUS(status) != 0) return Error{EIO, "gnuplot: " + first_error(said.text())};
  return out.text();
}

// gnuplot does not tell when a picture is cut short; the picture does.
bool is_whole(const std::string& png) {
  static const std::string first("\x89PNG\r\n\x1a\n"), last("IEND\xae\x42\x60\x82");
  return png.starts_with(first) && png.ends_with(last);
}

// The file is there as a whole, or not at all.
Status save(const std::string& path, const std::string& bytes) {
  const std::string part = path + ".part-" + std::to_string(::getpid());
  const int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return failure(errno, "write " + path, "name another directory with --out");
  int why = write_all(file, bytes);
  if (::close(file) != 0 && why == 0) why = errno;
  if (why == 0 && ::rename(part.c_str(), path.c_str()) != 0) why = errno;
  if (why == 0) return {};
  ::unlink(part.c_str());
  return failure(why, "write " + path, "make room, or name another directory with --out");
}

struct Request {
  std::vector<std::string> files;
  std::string out = "bench-report";
};

int make_report(const Request& request) {
  std::vector<RunResult> runs;
  for (const std::string& file : request.files) {
    auto more = bench::read_runs(file);
    if (!more) return report(more.error());
    runs.insert(runs.end(), more->begin(), more->end());
  }
  // Before a directory is made for nothing.
  if (const auto nothing = draw(""); !nothing) return report(nothing.error());
  std::error_code failed;
  std::filesystem::create_directories(request.out, failed);
  if (failed)
    return report(
        failure(failed.value(), "make " + request.out, "name another directory with --out"));
  std::map<std::string, unsigned> names;
  unsigned drawn = 0;
  for (const Figure& figure : figures_of(runs)) {
    if (!figure.has_bars()) {
      std::fprintf(stderr, "outcore: no figure of %s: all its runs were stopped\n",
                   printable(figure.title).c_str());
      continue;
    }
    const std::string name = name_of(figure.title);
    const unsigned again = names[name]++;
    const std::string path =
        request.out + "/" + name + (again == 0 ? "" : "-" + std::to_string(again + 1)) + ".png";
    const auto png = draw(script_of(figure));
    if (!png) return report(Error{png.error().code, "draw " + path + ": " + png.error().message});
    if (!is_whole(png.value()))
      return report(
          Error{EIO, "draw " + path + ": gnuplot gave no whole picture: reinstall gnuplot-nox"});
    if (Status s = save(path, png.value()); !s) return report(s.error());
    std::printf("%s\n", path.c_str());
    ++drawn;
  }
  return drawn != 0 ? 0 : kFailed;
}

}  // namespace

void add_bench_report(CommandSyntax& bench_part) {
  auto request = std::make_shared<Request>();
  bench_part.add("report", "draws figures of files of --json lines (with gnuplot)")
      .word("FILE", request->files, "files that --json or `bench table` wrote")
      .option("--out", request->out, "the directory that the figures go to (bench-report)")
      .footer(
          "Example:\n"
          "  outcore bench sort --size 1G --budget 256M --repeat 3 --json > sort.json\n"
          "  outcore bench report sort.json")
      .runs([request] { return make_report(*request); });
}

}  // namespace outcore::cli
