// outcore: the command.
#include <fcntl.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>

#include "cli/command.h"
#include "cli/text.h"
#include "heaps/commands/heap_command.h"
#include "outcore/runtime.h"
#include "run/commands/check_environment.h"

namespace outcore::cli {

std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

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
  return "'" + name + "' is no option of " + stray.verb + did_you_mean(*stray.part, name) +
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

// Digits, perhaps a fraction, perhaps a blank, perhaps a unit: "4096", "64k", "1.5GiB", "4 KiB". No
// sign, no exponent, no hexadecimal number. A fraction needs a unit.
std::optional<uint64_t> read_size(const std::string& text) {
  static constexpr std::string_view kDigits = "0123456789", kUnits = "kmgtp";
  static constexpr uint64_t kSizeMax = std::numeric_limits<int64_t>::max();
  const size_t whole_end = std::min(text.find_first_not_of(kDigits), text.size());
  size_t end = whole_end;
  if (end == 0) return std::nullopt;
  if (end < text.size() && text[end] == '.') {
    end = std::min(text.find_first_not_of(kDigits, end + 1), text.size());
    if (end == whole_end + 1) return std::nullopt;
  }
  std::string unit;
  for (const char c : text.substr(end < text.size() && text[end] == ' ' ? end + 1 : end))
    unit += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  unsigned shift = 0;
  if (!unit.empty() && unit != "b") {
    const size_t power = kUnits.find(unit[0]);
    const std::string rest = unit.substr(1);
    if (power == std::string_view::npos || !(rest.empty() || rest == "b" || rest == "ib"))
      return std::nullopt;
    shift = 10 * (static_cast<unsigned>(power) + 1);
  }
  if (end != whole_end) {
    const double bytes = std::strtod(text.substr(0, end).c_str(), nullptr) *
                         static_cast<double>(uint64_t{1} << shift);
    if (shift == 0 || !(bytes < 9.2e18)) return std::nullopt;
    return static_cast<uint64_t>(bytes);
  }
  uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + whole_end, number);
  if (parsed.ec != std::errc() || number > (kSizeMax >> shift)) return std::nullopt;
  return number << shift;
}

// A file that is opened in place of a closed standard one would get what is printed. These can be
// neither read nor written: whoever tries hears of it. The program of `outcore run` gets its own as
// they were: closed.
void keep_standard_files(bool is_run) {
  const int flags = is_run ? O_CLOEXEC : 0;
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file)
    if (::fcntl(file, F_GETFD) == -1)
      static_cast<void>(::open("/dev/null", flags | (file == STDIN_FILENO ? O_WRONLY : O_RDONLY)));
}

// Where the words of `outcore run` end that are its own: at "--" or at the first that is no option.
// `unknown`: an option that `run` does not have. Whether the next word is its value cannot be
// known.
int find_program_word(const CLI::App& run, int argc, char** argv, std::string* unknown) {
  int at = 2;
  while (at < argc && argv[at][0] == '-' && argv[at][1] != 0) {
    const std::string word = argv[at], name = word.substr(0, word.find('='));
    if (word == "--") return at;
    const CLI::Option* const option = run.get_option_no_throw(name);
    if (option == nullptr) {
      *unknown = name;
      return argc;
    }
    const bool takes_next = option->get_items_expected_max() != 0 && name == word;
    // "--" is nobody's value: it ends the words, and CLI11 tells what is missing.
    const bool is_at_end = at + 1 < argc && std::string_view(argv[at + 1]) == "--";
    at += takes_next && !is_at_end ? 2 : 1;
  }
  return std::min(at, argc);
}

// A full disk, or a reader that has gone, may show only here.
int finish_output(int status) {
  const bool is_flushed = std::fflush(stdout) == 0;
  const int why = is_flushed ? 0 : errno;
  if (is_flushed && std::ferror(stdout) == 0) return status;
  const std::string what = "write standard output",
                    remedy = "what was printed is not complete: send it elsewhere";
  // Whoever has read enough (`| head`) need not be told.
  if (why != EPIPE)
    report(Error{EIO, why != 0 ? failure(why, what, remedy).message : what + " failed; " + remedy});
  return status != 0 ? status : kFailed;
}

}  // namespace

Result<uint64_t> parse_size(const std::string& text) {
  if (const std::optional<uint64_t> size = read_size(text)) return *size;
  return Error{EINVAL,
               "'" + text + "' is no size: write a number with k, M, G or T, as in 64k or 1.5G"};
}

CLI::Option* add_bytes(CLI::App& app, const std::string& name, uint64_t& bytes,
                       const std::string& help) {
  const auto parse = [&bytes, name](const std::string& text) {
    const Result<uint64_t> size = parse_size(text);
    if (!size) throw CLI::ValidationError(name, size.message());
    bytes = size.value();
  };
  return app.add_option_function<std::string>(name, parse, help)->type_name("SIZE");
}

// CLI11 takes "-1" for the largest number of 64 bits, and cuts what is larger.
void add_number(CLI::App& app, const std::string& name, uint64_t& number, const std::string& help) {
  const auto parse = [&number, name](const std::string& text) {
    const char* const end = text.data() + text.size();
    uint64_t value = 0;
    const auto parsed = std::from_chars(text.data(), end, value);
    if (parsed.ec != std::errc() || parsed.ptr != end)
      throw CLI::ValidationError(
          name, "'" + text + "' is no whole number: write one of 0 or more, as in 1000");
    number = value;
  };
  app.add_option_function<std::string>(name, parse, help)->type_name("UINT");
}

int report(const Error& error) {
  std::string text = one_line(error.message);
  // Whatever failed for want of space: its message ends with what the system said, or has a remedy.
  for (const int full : {ENOSPC, EDQUOT})
    if (error.code == full && text.ends_with(::strerrordesc_np(full)))
      text += "; free some space there, or name another place";
  std::fprintf(stderr, "outcore: %s\n", text.c_str());
  return error.code == EINVAL ? kUsage : kFailed;
}

namespace {

bool is_run(int argc, char** argv) { return argc > 1 && std::string_view(argv[1]) == "run"; }

int run(int argc, char** argv) {
  CLI::App app{"Work on data larger than memory as if it were in memory.", "outcore"};
  app.set_version_flag("--version", std::string("outcore ") + outcore::version());
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  outcore run --budget 4G -- kraken2 --memory-mapping …   an unmodified program\n"
      "  outcore check kraken2         what would keep that from working\n"
      "  outcore info                  what this machine offers, and what is missing\n"
      "  outcore bench random-io --size 2G --budget 512M --memory mmap,mmap-random,outcore\n"
      "  outcore bench sort --size 1G --budget 256M --json > sort.json\n"
      "  outcore demo                  sort and search data several times their memory\n"
      "Exit status: 0 success, 1 failure, 2 usage; of run that of the program.");
  int status = 0;
  char** program = argv + argc;
  add_run(app, status, program);
  if (is_run(argc, argv)) {  // it starts often: nothing else is made for it
    const CLI::App& run_part = *app.get_subcommand("run");
    std::string unknown;
    const int own = find_program_word(run_part, argc, argv, &unknown);
    if (!unknown.empty()) return tell_stray({&run_part, "outcore run", unknown});
    program = argv + own + (own < argc && std::string_view(argv[own]) == "--" ? 1 : 0);
    argc = own;
  } else {
    add_check(app, status);
    add_residency(app, status);
    add_heap(app, status);
    add_store(app, status);
    add_checkpoint(app, status);
    add_arrays(app, status);
    add_info(app, status);
    add_bench(app, status);
    add_demo(app, status);
    // Before any of them does anything.
    app.parse_complete_callback([&app] {
      const bool is_info = app.got_subcommand("info");
      if (const int refused = check_environment(is_info); refused != 0)
        throw CLI::RuntimeError(refused);
    });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& asked) {
    return tell_version(asked.what(), argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    if (error.get_name() == "RuntimeError") return error.get_exit_code();  // it was told
    return usage_error(app, error);
  } catch (const std::exception& error) {
    return report(Error{EIO, error.what()});
  }
  return status;
}

}  // namespace
}  // namespace outcore::cli

int main(int argc, char** argv) {
  using namespace outcore::cli;
  keep_standard_files(is_run(argc, argv));
  // A reader that goes is a failed write, so that whoever has files takes them away. What is
  // ignored stays ignored in a program that is started.
  if (!is_run(argc, argv)) std::signal(SIGPIPE, SIG_IGN);
  return finish_output(run(argc, argv));
}
