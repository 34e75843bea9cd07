#include "cli/command_syntax.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <sstream>
#include <utility>

#include "cli/assert.h"
#include "cli/command.h"
#include "cli/text.h"
#include "outcore/options.h"

namespace outcore::cli {
namespace {

// The verb that the user was in when parsing failed, for the remedy: "outcore bench sort".
std::string verb_of(const CLI::App& app) {
  std::string verb = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    verb += " " + at->get_name();
  }
  return verb;
}

const CLI::App& deepest(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return *at;
}

std::vector<const CLI::App*> commands_of(const CLI::App& part) {
  return part.get_subcommands([](const CLI::App*) { return true; });
}

std::string names_of(const std::vector<const CLI::App*>& commands) {
  std::string names;
  for (const CLI::App* command : commands)
    names += (names.empty() ? "" : ", ") + command->get_name();
  return names;
}

// What the user wrote and nobody takes.
struct Stray {
  const CLI::App* part = nullptr;  // what was to take it; nullptr: there is no such word
  std::string verb, word;
};

Stray find_stray(const CLI::App& app) {
  Stray stray{&app, app.get_name(), {}};
  while (true) {
    for (const std::string& word : stray.part->remaining()) {
      if (word == "--") continue;
      stray.word = word;
      return stray;
    }
    const std::vector<CLI::App*> parsed = stray.part->get_subcommands();
    if (parsed.empty()) return {};
    stray.part = parsed.front();
    stray.verb += " " + stray.part->get_name();
  }
}

// The word that "… not expected: WORD WORD" is about: an option before others.
std::string unexpected_word(const std::string& text) {
  std::istringstream words(text.substr(text.rfind(": ") + 1));
  std::string first;
  for (std::string word; words >> word;) {
    if (word.starts_with("-")) return word;
    if (first.empty()) first = word;
  }
  return first;
}

// The option of this command that was perhaps meant, as a question; empty if none is near.
std::string did_you_mean(const CLI::App& part, const std::string& name) {
  std::vector<std::string> names;
  for (const CLI::Option* option : part.get_options())
    for (const std::string& known : option->get_lnames()) names.push_back("--" + known);
  const std::string near = nearest_name(name, names);
  return near.empty() ? "" : "; did you mean " + near + "?";
}

std::string text_of(const Stray& stray) {
  const auto commands = commands_of(*stray.part);
  if (!stray.word.starts_with("-")) {
    const std::string word = "'" + stray.word + "' is ";
    if (commands.empty()) return word + "one word too many for " + stray.verb + ": leave it out";
    return word + "no command: use one of " + names_of(commands);
  }
  const std::string name = stray.word.substr(0, stray.word.find('='));
  for (const CLI::App* command : commands)
    if (command->get_option_no_throw(name) != nullptr)
      return std::string("'").append(name).append("' goes after the command, as in ") + stray.verb +
             " " + command->get_name() + " " + name;
  return "'" + name + "' is not an option of " + stray.verb + did_you_mean(*stray.part, name) +
         (commands.empty() ? "" : ": use one of " + names_of(commands));
}

// CLI11's words for an option that is given twice, or without its value, as people say them.
std::string plain(const CLI::ParseError& error) {
  std::string text = one_line(error.what());
  static const std::string again = ": At Most 1 required but received ";
  if (const size_t at = text.find(again); at != std::string::npos) {
    const std::string count = text.substr(at + again.size());
    return text.substr(0, at) + " is given " + (count == "2" ? "twice" : count + " times") +
           ": say it once";
  }
  if (const size_t at = text.find(": 1 required "); at != std::string::npos)
    if (text.ends_with(" missing")) return text.substr(0, at) + " needs a value";
  return text;
}

int tell_usage(const std::string& text, const std::string& verb) {
  std::fprintf(stderr, "outcore: %s; see %s --help\n", text.c_str(), verb.c_str());
  return kUsage;
}

int tell_stray(const Stray& stray) { return tell_usage(one_line(text_of(stray)), stray.verb); }

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  std::string text = plain(error), verb = verb_of(app);
  // What is missing may be what a word that nobody takes was meant to be: that word is told first.
  const bool is_required = error.get_name() == "RequiredError";
  const bool is_about_words =
      is_required || error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  Stray stray = is_about_words ? find_stray(app) : Stray{};
  if (stray.part == nullptr && !is_required && is_about_words)
    stray = {&deepest(app), verb, unexpected_word(text)};
  if (stray.part != nullptr) return tell_stray(stray);
  if (const auto commands = commands_of(deepest(app)); is_required && !commands.empty()) {
    text = "a command is missing: use one of " + names_of(commands);
  }
  return tell_usage(text, verb);
}

// CLI11 takes "-1" for the largest number of 64 bits, and cuts what is larger.
template <typename Number>
Number whole_number(const std::string& option, const std::string& text) {
  const char* const end = text.data() + text.size();
  Number number = 0;
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end) return number;
  throw CLI::ValidationError(
      option, "'" + text + "' is not a whole number" +
                  (parsed.ec == std::errc::result_out_of_range ? " that it takes" : "") +
                  ": write one of 0 or more, as in 1000");
}

// CLI11 looks no further than the flag.
int tell_version(const char* text, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--version"))
      return report(Error{EINVAL, "--version stands alone: leave out '" + word + "'"});
  }
  std::printf("%s\n", text);
  return 0;
}

constexpr const char* kNotEmpty = "not empty";

}  // namespace

CommandSyntax::CommandSyntax(std::string_view name, std::string_view help, std::string_view version)
    : own_(std::make_shared<CLI::App>(std::string(help), std::string(name))),
      app_(own_.get()),
      root_(this) {
  app_->set_version_flag("--version", std::string(version));
}

CommandSyntax& CommandSyntax::add(std::string_view name, std::string_view help) {
  CLI_CHECK(!name.empty() && !help.empty());
  app_->require_subcommand(1);
  CLI::App* const app = app_->add_subcommand(std::string(name), std::string(help));
  if (root_ == this) app->footer("");  // not the examples of all commands
  commands_.emplace_back(new CommandSyntax(*app, *root_));
  return *commands_.back();
}

// -- Options and words --

CommandSyntax& CommandSyntax::declared(CLI::Option* option) {
  CLI_CHECK(option != nullptr);
  last_ = option;
  return *this;
}

// As from a variable of a shell that is not set: what it would mean is not what was meant.
CommandSyntax& CommandSyntax::refused_if_empty(CLI::Option* option) {
  const auto refuse = [option](std::string& text) -> std::string {
    if (!text.empty()) return {};
    return std::string("it is empty: ") + (option->get_required() ? "" : "leave it out, or ") +
           "give it a value";
  };
  return declared(option->check(CLI::Validator(refuse, "", kNotEmpty)));
}

CommandSyntax& CommandSyntax::may_be_empty() {
  CLI_CHECK(last_ != nullptr);
  last_->get_validator(kNotEmpty)->active(false);
  return *this;
}

CommandSyntax& CommandSyntax::flag(std::string_view name, bool& value, std::string_view help) {
  return declared(app_->add_flag(std::string(name), value, std::string(help)));
}

CommandSyntax& CommandSyntax::option(std::string_view name, std::string& value,
                                     std::string_view help) {
  return refused_if_empty(app_->add_option(std::string(name), value, std::string(help)));
}

CommandSyntax& CommandSyntax::option(std::string_view name, unsigned& value,
                                     std::string_view help) {
  const auto parse = [&value, name = std::string(name)](const std::string& text) {
    value = whole_number<unsigned>(name, text);
  };
  return declared(
             app_->add_option_function<std::string>(std::string(name), parse, std::string(help)))
      .type("UINT");
}

CommandSyntax& CommandSyntax::option(std::string_view name, double& value, std::string_view help) {
  return declared(app_->add_option(std::string(name), value, std::string(help)));
}

CommandSyntax& CommandSyntax::option(std::string_view name, std::optional<std::string>& value,
                                     std::string_view help) {
  return refused_if_empty(app_->add_option(std::string(name), value, std::string(help)));
}

CommandSyntax& CommandSyntax::option(std::string_view name, std::vector<std::string>& values,
                                     std::string_view help) {
  optional_word(name, values, help);
  return declared(last_->allow_extra_args(false));
}

CommandSyntax& CommandSyntax::size(std::string_view name, uint64_t& bytes, std::string_view help) {
  const auto parse = [&bytes, name = std::string(name)](const std::string& text) {
    const Result<uint64_t> size = parse_size(text);
    if (!size) throw CLI::ValidationError(name, size.message());
    bytes = size.value();
  };
  return declared(
             app_->add_option_function<std::string>(std::string(name), parse, std::string(help)))
      .type("SIZE");
}

CommandSyntax& CommandSyntax::number(std::string_view name, uint64_t& value,
                                     std::string_view help) {
  const auto parse = [&value, name = std::string(name)](const std::string& text) {
    value = whole_number<uint64_t>(name, text);
  };
  return declared(
             app_->add_option_function<std::string>(std::string(name), parse, std::string(help)))
      .type("UINT");
}

CommandSyntax& CommandSyntax::word(std::string_view name, std::string& value,
                                   std::string_view help) {
  return option(name, value, help).required();
}

CommandSyntax& CommandSyntax::word(std::string_view name, std::vector<std::string>& values,
                                   std::string_view help) {
  return optional_word(name, values, help).required();
}

CommandSyntax& CommandSyntax::optional_word(std::string_view name, std::string& value,
                                            std::string_view help) {
  return option(name, value, help);
}

CommandSyntax& CommandSyntax::optional_word(std::string_view name, std::vector<std::string>& values,
                                            std::string_view help) {
  return declared(app_->add_option(std::string(name), values, std::string(help)));
}

CommandSyntax& CommandSyntax::required() {
  CLI_CHECK(last_ != nullptr);
  return declared(last_->required());
}

CommandSyntax& CommandSyntax::type(std::string_view name) {
  return declared(last_->type_name(std::string(name)));
}

CommandSyntax& CommandSyntax::range(int first, int last) {
  CLI_CHECK(last_ != nullptr && first <= last);
  return declared(last_->check(CLI::Range(first, last)));
}

CommandSyntax& CommandSyntax::at_least(uint64_t least) {
  return check([least](const std::string& text) -> std::string {
    uint64_t number = least;  // of what is none the option itself tells
    static_cast<void>(std::from_chars(text.data(), text.data() + text.size(), number));
    if (number >= least) return {};
    return "'" + text + "' is less than it takes: write " + std::to_string(least) +
           " or more, or leave it out";
  });
}

CommandSyntax& CommandSyntax::one_of(const std::vector<std::string>& texts) {
  CLI_CHECK(last_ != nullptr && !texts.empty());
  return declared(last_->check(CLI::IsMember(texts)));
}

CommandSyntax& CommandSyntax::file() { return declared(last_->check(CLI::ExistingFile)); }

CommandSyntax& CommandSyntax::folder() { return declared(last_->check(CLI::ExistingDirectory)); }

CommandSyntax& CommandSyntax::check(Check check) {
  return declared(last_->check(std::move(check)));
}

// -- The command --

CommandSyntax& CommandSyntax::footer(std::string_view text) {
  app_->footer(std::string(text));
  return *this;
}

CommandSyntax& CommandSyntax::runs(std::function<int()> run) {
  CLI_CHECK(run != nullptr);
  app_->callback([root = root_, run = std::move(run)] { root->status_ = run(); });
  return *this;
}

bool CommandSyntax::has_option(std::string_view name) const {
  return std::as_const(*app_).get_option_no_throw(std::string(name)) != nullptr;
}

bool CommandSyntax::takes_value(std::string_view name) const {
  const CLI::Option* const option = std::as_const(*app_).get_option_no_throw(std::string(name));
  return option != nullptr && option->get_items_expected_max() != 0;
}

int CommandSyntax::tell_unknown(std::string_view option) const {
  std::string verb = app_->get_name();
  for (const CLI::App* part = app_->get_parent(); part != nullptr; part = part->get_parent())
    verb = part->get_name() + " " + verb;
  return tell_stray({app_, verb, std::string(option)});
}

void CommandSyntax::before(std::function<int(const std::string& command)> ask) {
  app_->parse_complete_callback([app = app_, ask = std::move(ask)] {
    const auto commands = app->get_subcommands();
    const int refused = ask(commands.empty() ? "" : commands.front()->get_name());
    if (refused != 0) throw CLI::RuntimeError(refused);
  });
}

int CommandSyntax::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::CallForVersion& asked) {
    return tell_version(asked.what(), argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->exit(error);              // the help
    if (error.get_name() == "RuntimeError") return error.get_exit_code();  // it was told
    return usage_error(*app_, error);
  } catch (const std::exception& error) {
    return report(Error{EIO, error.what()});
  }
  return status_;
}

}  // namespace outcore::cli
