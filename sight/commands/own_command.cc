#include "sight/commands/own_command.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>
#include <string_view>

#include "cli/shell_word.h"
#include "outcore/store_catalog.h"

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
  std::ifstream file("/proc/" + std::to_string(process) + "/environ", std::ios::binary);
  std::map<std::string, std::string> all;
  for (std::string entry; std::getline(file, entry, '\0');) {
    const size_t equals = entry.find('=');
    if (entry.starts_with(kVariablePrefix) && equals != std::string::npos)
      all[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return all;
}

std::string program_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/cmdline", std::ios::binary);
  std::string command;
  for (std::string word; std::getline(file, word, '\0');)
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
  for (const Json& word : program["arguments"])
    own.program +=
        (own.program.empty() ? "" : " ") + shell_word(word.as<std::string>().value_or(""));
  for (const Json& line : program["run_command"])
    own.run.push_back(line.as<std::string>().value_or(""));
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
