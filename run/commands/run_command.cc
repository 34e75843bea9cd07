#include "run/commands/run_command.h"

#include <cstdint>
#include <fstream>
#include <string_view>

#include "cli/command_syntax.h"
#include "cli/shell_word.h"
#include "outcore/store_catalog.h"

namespace outcore::cli {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
  return text;
}

}  // namespace

std::string run_command(const CommandSyntax& run, const std::vector<std::string>& own,
                        char* const* program) {
  std::vector<std::string> lines{shell_word(own[0]) + " " + shell_word(own[1])};
  for (size_t i = 2; i < own.size(); ++i) {
    const size_t equals = own[i].find('=');
    const std::string name = own[i].substr(0, equals);
    if (!run.takes_value(name))
      lines.push_back(shell_word(own[i]));
    else if (equals != std::string::npos)
      lines.push_back(name + " " + shell_word(without_password(own[i].substr(equals + 1))));
    else
      lines.push_back(name + " " +
                      shell_word(i + 1 < own.size() ? without_password(own[++i]) : ""));
  }
  const std::string start = "-- " + shell_word(*program);
  std::string end = start;
  while (*++program != nullptr) end += " " + shell_word(*program);
  lines.push_back(end);
  std::string text = joined(lines);
  if (text.size() <= kRunCommandBytesMax) return text;
  lines.back() = start + " …";
  text = joined(lines);
  return text.size() <= kRunCommandBytesMax ? text : lines[0] + "\n…";
}

std::vector<std::string> own_words(char* const* program) {
  std::ifstream file("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  size_t count = 0;
  while (program[count] != nullptr) ++count;
  if (words.size() < count + 2) return {"outcore", "run"};
  words.resize(words.size() - count);
  if (words.back() == "--") words.pop_back();
  return words;
}

}  // namespace outcore::cli
