// outcore: the command.
#include <fcntl.h>
#include <unistd.h>

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
#include <string_view>

#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/output_file.h"
#include "cli/text.h"
#include "outcore/runtime.h"
#include "outcore/store_kind.h"
#include "run/commands/check_environment.h"

namespace outcore::cli {

namespace {

// Digits, perhaps a fraction, perhaps a blank, perhaps a unit: "4096", "64k", "1.5GiB", "4 KiB". No
// sign, no exponent, no hexadecimal number. A fraction needs a unit.
std::optional<uint64_t> read_size(const std::string& text, bool* is_too_large) {
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
    *is_too_large = shift != 0 && !(bytes < 9.2e18);
    if (shift == 0 || *is_too_large) return std::nullopt;
    return static_cast<uint64_t>(bytes);
  }
  uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + whole_end, number);
  *is_too_large = parsed.ec != std::errc() || number > (kSizeMax >> shift);
  if (*is_too_large) return std::nullopt;
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
int find_program_word(const CommandSyntax& run, int argc, char** argv, std::string* unknown) {
  int at = 2;
  while (at < argc && argv[at][0] == '-' && argv[at][1] != 0) {
    const std::string word = argv[at], name = word.substr(0, word.find('='));
    if (word == "--") return at;
    if (!run.has_option(name)) {
      *unknown = name;
      return argc;
    }
    const bool takes_next = run.takes_value(name) && name == word;
    // "--" is nobody's value: it ends the words, and parse() tells what is missing.
    const bool is_at_end = at + 1 < argc && std::string_view(argv[at + 1]) == "--";
    at += takes_next && !is_at_end ? 2 : 1;
  }
  return std::min(at, argc);
}

// A full disk, or a reader that has gone, may show only here.
int finish_output(int status) {
  const bool is_flushed = std::fflush(stdout) == 0;
  if (!is_flushed) note_failed_output();
  const int why = failed_output();
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
  bool is_too_large = false;
  if (const std::optional<uint64_t> size = read_size(text, &is_too_large)) return *size;
  if (is_too_large)
    return Error{EINVAL, "'" + text + "' is more bytes than there are addresses: name fewer"};
  return Error{EINVAL,
               "'" + text + "' is not a size: write a number with k, M, G or T, as in 64k or 1.5G"};
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

int report_about(const std::string& uri, const Error& error) {
  const auto parsed = parse_store_uri(uri);
  const int status = report(error);
  return parsed && find_store_kind(parsed.value()) ? kFailed : status;
}

namespace {

bool is_run(int argc, char** argv) { return argc > 1 && std::string_view(argv[1]) == "run"; }

int run(int argc, char** argv) {
  CommandSyntax app("outcore", "Work on data larger than memory as if it were in memory.",
                    std::string("outcore ") + outcore::version());
  app.footer(
      "Examples:\n"
      "  outcore run --budget 4G -- kraken2 --memory-mapping …   an unmodified program\n"
      "  outcore check kraken2         what would keep that from working\n"
      "  outcore info                  what this machine offers, and what is missing\n"
      "  outcore bench random-io --size 2G --budget 512M --memory mmap,mmap-random,outcore\n"
      "  outcore bench sort --size 1G --budget 256M --json > sort.json\n"
      "  outcore demo                  sort and search data several times their memory\n"
      "Exit status: 0 success, 1 failure, 2 usage; of run that of the program.");
  char** program = argv + argc;
  const CommandSyntax& run_part = add_run(app, program);
  if (is_run(argc, argv)) {  // it starts often: nothing else is made for it
    std::string unknown;
    const int own = find_program_word(run_part, argc, argv, &unknown);
    if (!unknown.empty()) return run_part.tell_unknown(unknown);
    program = argv + own + (own < argc && std::string_view(argv[own]) == "--" ? 1 : 0);
    argc = own;
  } else {
    add_check(app);
    add_residency(app);
    add_buffers(app);
    add_serve(app);
    add_report(app);
    add_explain(app);
    add_export(app);
    add_top(app);
    add_stat(app);
    add_heap(app);
    add_store(app);
    add_checkpoint(app);
    add_arrays(app);
    add_info(app);
    add_bench(app);
    add_demo(app);
    app.before([](const std::string& command) { return check_environment(command == "info"); });
  }
  return app.parse(argc, argv);
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
