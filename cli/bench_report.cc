// outcore bench report: figures of files of --json lines, drawn by gnuplot.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <vector>

#include "bench/runner.h"
#include "bench/text.h"
#include "cli/command.h"

namespace outcore::cli {
namespace {

using bench::RunResult;
using bench::Series;

// One figure: groups of bars, a bar for each memory.
struct Figure {
  std::string title, unit;
  std::vector<std::string> groups, memories;                   // in the order of the file
  std::map<std::pair<std::string, std::string>, Series> bars;  // by group and memory
};

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

std::string text_of(const nlohmann::json& extra, const char* key) {
  const auto found = extra.find(key);
  return found != extra.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string title_of(const RunResult& run) {
  std::string title = text_of(run.extra, "row");
  if (title.empty()) title = run.workload;
  return title + ": " + bench::format_bytes(run.data_bytes) + " in " +
         bench::format_bytes(run.budget_bytes) + " on " + run.device;
}

std::string group_of(const RunResult& run) {
  const unsigned threads = run.threads * run.processes;
  std::string group = std::to_string(threads) + (threads == 1 ? " thread" : " threads");
  if (const std::string variant = text_of(run.extra, "variant"); !variant.empty())
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
      memory += ", pages of " + bench::format_bytes(run.page_bytes);
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
  if (memory == "direct") return "#4a6fa5";
  return "#8c8c8c";
}

// For gnuplot: a text in double quotes.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string name_of(const std::string& title) {
  std::string name;
  for (const char c : title.substr(0, title.find(": "))) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (is_plain) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!is_plain && !name.empty() && name.back() != '-') name += '-';
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "figure" : name;
}

// Medians as bars, the extremes as error bars. A run that was stopped has no rate: no bar.
std::string script_of(const Figure& figure, const std::string& path) {
  std::ostringstream out;
  const size_t width =
      std::max<size_t>(640, 160 + 70 * figure.groups.size() * figure.memories.size());
  out << "set terminal pngcairo size " << width << ",420 noenhanced font 'sans,10'\n"
      << "set output " << quoted(path) << "\nset title " << quoted(figure.title) << "\nset ylabel "
      << quoted(figure.unit + ", higher is better")
      << "\nset style data histogram\nset style histogram errorbars gap 1 lw 1\n"
         "set style fill solid 0.9 noborder\nset yrange [0:*]\nset format y '%.1s %c'\n"
         "set grid y lc '#dddddd'\nset border 3\nset tics nomirror\n"
         "set key outside right top reverse Left\nset bars 0.6\nset rmargin 24\ndo for [i=1:16] { "
         "set linetype i lc rgb '#333333' }\n$runs << EOD\n";
  for (const std::string& group : figure.groups) {
    out << quoted(group);
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

Status draw(const std::string& script) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> gnuplot(::popen("gnuplot", "w"), ::pclose);
  if (gnuplot == nullptr) return Error{errno, "start gnuplot: install gnuplot-nox"};
  if (std::fwrite(script.data(), 1, script.size(), gnuplot.get()) != script.size())
    return Error{EPIPE, "write to gnuplot: install gnuplot-nox"};
  return {};
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
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0)
    return report(Error{ENOENT,
                        "bench report draws with gnuplot, which is not here: apt-get install "
                        "gnuplot-nox"});
  std::error_code failed;
  std::filesystem::create_directories(request.out, failed);
  if (failed) return report(Error{failed.value(), "make " + request.out + ": " + failed.message()});
  std::map<std::string, unsigned> names;
  for (const Figure& figure : figures_of(runs)) {
    const std::string name = name_of(figure.title);
    const unsigned again = names[name]++;
    const std::string path =
        request.out + "/" + name + (again == 0 ? "" : "-" + std::to_string(again + 1)) + ".png";
    if (Status s = draw(script_of(figure, path)); !s) return report(s.error());
    if (!std::filesystem::exists(path))
      return report(Error{EIO, "gnuplot did not draw " + path + " (its words are above)"});
    std::printf("%s\n", path.c_str());
  }
  return 0;
}

}  // namespace

void add_bench_report(CLI::App& bench_app, int& status) {
  auto request = std::make_shared<Request>();
  CLI::App* const app =
      bench_app.add_subcommand("report", "draws figures of files of --json lines (with gnuplot)");
  app->add_option("FILE", request->files, "files that --json or `bench table` wrote")->required();
  app->add_option("--out", request->out, "the directory that the figures go to (bench-report)");
  app->footer(
      "Example:\n  outcore bench sort --size 1G --budget 256M --repeat 3 --json > sort.json\n"
      "  outcore bench report sort.json");
  app->callback([request, &status] { status = make_report(*request); });
}

}  // namespace outcore::cli
