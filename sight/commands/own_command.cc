#include "sight/commands/own_command.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>

#include "cli/shell_word.h"
#include "cli/text.h"
#include "outcore/store_catalog.h"
#include "sight/commands/process_facts.h"

namespace outcore::cli {
namespace {

constexpr std::string_view kVariablePrefix = "OUTCORE_", kRunVariablePrefix = "OUTCORE_RUN_";
constexpr const char* kTheProgram = "the program";

// "--scratch-dir": "scratch_dir".
std::string name_of(const std::string& option) {
  std::string name = option.substr(std::min<size_t>(2, option.size()));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string variable_of(const std::string& option) {
  std::string variable{kVariablePrefix};
  for (const char c : name_of(option))
    variable += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return variable;
}

// "OUTCORE_BUDGET: 25% of …": the variable; empty: it was set elsewhere.
std::string variable_in(const std::string& source) {
  if (!source.starts_with(kVariablePrefix)) return {};
  return source.substr(0, source.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_"));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);)
    if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

// Those of Outcore, as they were when it began. Nothing else: nobody could be asked, or the process
// has written over them.
std::map<std::string, std::string> environment_of(pid_t process) {
  std::map<std::string, std::string> all;
  for (const std::string& entry : proc_texts(process, "environ")) {
    const size_t equals = entry.find('=');
    if (entry.starts_with(kVariablePrefix) && equals != std::string::npos)
      all[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return all;
}

// One word as shell_word() makes it, from `at` on: where it ends; npos: it is none.
size_t end_of_word(const std::string& line, size_t at) {
  constexpr std::string_view kMeans = "\\\"`$&|;<>()*?[]{}~#!=";  // something to a shell
  const bool is_option = at < line.size() && line[at] == '-';
  const size_t begin = at;
  while (at < line.size() && line[at] != ' ') {
    const bool is_escaped = line.compare(at, 2, "$'") == 0;
    if (is_escaped || line[at] == '\'') {
      for (at += is_escaped ? 2 : 1; at < line.size() && line[at] != '\''; ++at)
        if (is_escaped && line[at] == '\\') ++at;
      if (at >= line.size()) return std::string::npos;
    } else if (line.compare(at, 2, "\\'") == 0) {
      ++at;
    } else if (kMeans.find(line[at]) != std::string_view::npos && !(is_option && line[at] == '=')) {
      return std::string::npos;
    }
    ++at;
  }
  return at == begin ? std::string::npos : at;
}

// No shell does anything else with it than to read words.
bool has_words_alone(const std::string& line) {
  if (line.empty() || line != one_line(line)) return false;
  for (size_t at = 0;; ++at) {
    at = end_of_word(line, at);
    if (at == std::string::npos || at >= line.size()) return at == line.size();
  }
}

// As run/commands/run_command.h makes them. Nobody shall be told to type what somebody has written
// into a record.
bool is_run_command(const std::vector<std::string>& lines) {
  constexpr std::string_view kRun = " run", kRest = "…";
  if (lines.size() < 2 || !std::all_of(lines.begin(), lines.end(), has_words_alone)) return false;
  std::string command = lines.front();
  if (!command.ends_with(kRun)) return false;
  command.resize(command.size() - kRun.size());
  if (end_of_word(command, 0) != command.size()) return false;
  if (command.ends_with('\'')) command.pop_back();
  const size_t name = command.find_last_of("/'");
  if (command.substr(name == std::string::npos ? 0 : name + 1) != "outcore") return false;
  if (lines.back() != kRest && !lines.back().starts_with("-- ")) return false;
  return std::all_of(lines.begin() + 1, lines.end() - 1,
                     [](const std::string& line) { return line.starts_with('-'); });
}

// Nothing: one of them is no text.
std::vector<std::string> texts_of(const Json& list) {
  return list.as<std::vector<std::string>>().value_or(std::vector<std::string>());
}

std::string program_of(pid_t process) {
  std::string command;
  for (const std::string& word : proc_texts(process, "cmdline"))
    command += (command.empty() ? "" : " ") + shell_word(word);
  return command;
}

}  // namespace

bool OwnCommand::has(const std::string& option) const {
  const bool is_of_run = std::any_of(run.begin(), run.end(), [&](const std::string& given) {
    return given.starts_with(option + " ");
  });
  return is_of_run || variables.contains(variable_of(option)) || sources.contains(name_of(option));
}

std::string OwnCommand::with(const base::NextChange& change) const {
  const auto source = sources.find(name_of(change.option));
  if (source != sources.end() && source->second == kTheProgram)
    return "in the program: " + name_of(change.option) + " = " + change.value;
  if (!run.empty()) return base::changed_command(run, change);
  const std::string what = program.empty() ? "PROGRAM" : program;
  if (!is_whole) return "outcore run " + change.option + " " + change.value + " -- " + what;
  auto all = variables;
  all[variable_of(change.option)] = change.value;
  std::string command;
  for (const auto& [name, value] : all)
    command += name + "=" + shell_word(without_password(value)) + " ";
  return command + what;
}

OwnCommand own_command_of(const Json& record) {
  OwnCommand own;
  const Json& program = record["program"];
  for (const std::string& word : texts_of(program["arguments"]))
    own.program += (own.program.empty() ? "" : " ") + shell_word(word);
  own.run = texts_of(program["run_command"]);
  if (!is_run_command(own.run)) own.run.clear();
  const Json& sources = record["sources"];
  own.is_whole = sources.is_object();
  if (!own.is_whole) return own;
  for (const auto& [name, where] : sources.members()) {
    const std::string source = where.as<std::string>().value_or("");
    const std::string variable = variable_in(source);
    if (!variable.empty()) own.variables[variable] = record["settings"].value(name, "");
    own.sources[name] = source;
  }
  return own;
}

OwnCommand own_command_of(pid_t process, const std::string& budget_source) {
  OwnCommand own;
  own.program = program_of(process);
  own.variables = environment_of(process);
  own.run = run_command_of(process);
  if (!is_run_command(own.run)) own.run.clear();
  // What the command hands to its program is none of the user's words.
  std::erase_if(own.variables,
                [](const auto& one) { return one.first.starts_with(kRunVariablePrefix); });
  if (!budget_source.starts_with("default")) own.sources["budget"] = budget_source;
  own.is_whole = true;
  return own;
}

std::vector<std::string> run_command_of(pid_t process) {
  const auto all = environment_of(process);
  const auto found = all.find(base::kRunCommandVariable);
  return found == all.end() ? std::vector<std::string>() : lines_of(found->second);
}

}  // namespace outcore::cli
