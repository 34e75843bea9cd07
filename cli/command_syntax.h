// CommandSyntax: what a command of `outcore` takes (options, words, commands of its own), what its
// help says, and what it runs. The library that parses takes seconds to compile in each source that
// includes it: command_syntax.cc alone does. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace outcore::cli {

class CommandSyntax {
 public:
  // Empty: the text will do; else what is wrong with it.
  using Check = std::function<std::string(const std::string&)>;

  // The whole command line. `version`: what --version prints.
  CommandSyntax(std::string_view name, std::string_view help, std::string_view version);
  CommandSyntax(const CommandSyntax&) = delete;
  CommandSyntax& operator=(const CommandSyntax&) = delete;

  // A command of this one, which owns it. Whoever gives this one must then name one of them.
  CommandSyntax& add(std::string_view name, std::string_view help);

  // All that follow return this command, so that they can be written in a row. The help has them in
  // the order of the calls. A value is set by parse(), and keeps what it has if nothing is given;
  // it must live until then.
  CommandSyntax& flag(std::string_view name, bool& value, std::string_view help);
  // An empty value is refused.
  CommandSyntax& option(std::string_view name, std::string& value, std::string_view help);
  CommandSyntax& option(std::string_view name, unsigned& value, std::string_view help);
  CommandSyntax& option(std::string_view name, double& value, std::string_view help);
  CommandSyntax& option(std::string_view name, std::optional<std::string>& value,
                        std::string_view help);
  // It may be given again, each time with one value.
  CommandSyntax& option(std::string_view name, std::vector<std::string>& values,
                        std::string_view help);
  // A number of bytes: "64k", "1.5G" or "4096".
  CommandSyntax& size(std::string_view name, uint64_t& bytes, std::string_view help);
  // A whole number of 0 or more.
  CommandSyntax& number(std::string_view name, uint64_t& value, std::string_view help);
  // A word at its place, or all that follow; and one that may be left out.
  CommandSyntax& word(std::string_view name, std::string& value, std::string_view help);
  CommandSyntax& word(std::string_view name, std::vector<std::string>& values,
                      std::string_view help);
  CommandSyntax& optional_word(std::string_view name, std::string& value, std::string_view help);
  CommandSyntax& optional_word(std::string_view name, std::vector<std::string>& values,
                               std::string_view help);

  // Of the option or word before. REQUIRES: there is one.
  CommandSyntax& required();
  CommandSyntax& may_be_empty();               // REQUIRES: it is a text
  CommandSyntax& type(std::string_view name);  // how the help calls its value
  CommandSyntax& range(int first, int last);
  CommandSyntax& at_least(uint64_t least);  // of a whole number
  CommandSyntax& one_of(const std::vector<std::string>& texts);
  CommandSyntax& file();  // it is there
  CommandSyntax& folder();
  CommandSyntax& check(Check check);

  // The end of the help: what it means, and examples.
  CommandSyntax& footer(std::string_view text);
  // What the command does; it returns the exit status.
  CommandSyntax& runs(std::function<int()> run);

  // Whether there is such an option, as "--budget" or "-q"; and whether a value follows it.
  bool has_option(std::string_view name) const;
  bool takes_value(std::string_view name) const;
  // Says on standard error that the option is unknown, and what was perhaps meant; kUsage.
  int tell_unknown(std::string_view option) const;

  // Of the whole command line: asked before the command runs, by its name; not 0: it does not run,
  // and this is the exit status.
  void before(std::function<int(const std::string& command)> ask);
  // Sets the values and runs the command; its exit status. Errors in the words are printed on
  // standard error, in one line with the remedy: kUsage.
  int parse(int argc, char** argv);

 private:
  CommandSyntax(CLI::App& app, CommandSyntax& root) : app_(&app), root_(&root) {}
  CommandSyntax& declared(CLI::Option* option);
  CommandSyntax& refused_if_empty(CLI::Option* option);

  std::shared_ptr<CLI::App> own_;  // of the whole command line only
  CLI::App* app_;
  CLI::Option* last_ = nullptr;  // declared last
  CommandSyntax* root_;
  int status_ = 0;  // of the whole command line only
  std::vector<std::unique_ptr<CommandSyntax>> commands_;
};

}  // namespace outcore::cli
