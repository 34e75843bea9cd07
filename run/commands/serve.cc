// outcore serve: a buffer that stays when the programs that use it have ended, with the pages of
// the files that are named.
#include <signal.h>
#include <time.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/text.h"
#include "outcore/buffers.h"
#include "run/commands/served_file.h"
#include "sight/commands/buffer_limit.h"

namespace outcore::cli {
namespace {

struct Words {
  std::string name;
  uint64_t budget_bytes = 0;
  std::vector<std::string> files;
  bool is_quiet = false;
};

// What may pass: it is tried again.
bool may_pass(const Status& status) { return status.code() == EAGAIN || status.code() == EBUSY; }

// Signals are waited for: those that end this, and that of a lease that somebody breaks.
sigset_t awaited_signals() {
  sigset_t all;
  sigemptyset(&all);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGIO}) sigaddset(&all, signal);
  return all;
}

class Served {
 public:
  // REQUIRES: `words` lives longer.
  explicit Served(const Words& words) : words_(words) {}

  int run() {
    // Before any thread is there: it has the mask.
    const sigset_t signals = awaited_signals();
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    const std::string attempt =
        "hold the buffer " + words_.name + " of " + format_bytes(words_.budget_bytes);
    const Status fits = check_buffer_limit(attempt, words_.budget_bytes);
    if (!fits) return report(Error{fits.code(), fits.message()});
    const Result<HeldBuffer> buffer = HeldBuffer::hold(words_.name, words_.budget_bytes);
    if (!buffer) return report(buffer.error());
    for (const std::string& path : words_.files) {
      files_.push_back(std::make_unique<ServedFile>(path));
      const Status status = files_.back()->look_after(buffer.value());
      if (!status && !may_pass(status)) return report(Error{status.code(), status.message()});
    }
    tell(buffer.value().limit_bytes());
    constexpr timespec kUsual{1, 0}, kSoon{0, 10'000'000};
    while (true) {
      bool is_any_fresh = false;
      for (const auto& file : files_)
        is_any_fresh = file->look_after(buffer.value()).code() == EBUSY || is_any_fresh;
      const int got = ::sigtimedwait(&signals, nullptr, is_any_fresh ? &kSoon : &kUsual);
      if (got == SIGINT || got == SIGTERM || got == SIGHUP) return 0;
    }
  }

 private:
  void tell(uint64_t limit_bytes) const {
    if (words_.is_quiet) return;
    const std::string joined = limit_bytes == words_.budget_bytes
                                   ? ""
                                   : " (by those who made it; `outcore buffers resize` changes it)";
    std::fprintf(stderr, "outcore: holding the buffer %s of %s%s, and pages of %zu %s\n",
                 words_.name.c_str(), format_bytes(limit_bytes).c_str(), joined.c_str(),
                 files_.size(), files_.size() == 1 ? "file" : "files");
  }

  const Words& words_;
  std::vector<std::unique_ptr<ServedFile>> files_;
};

}  // namespace

void add_serve(CommandSyntax& outcore) {
  const auto words = std::make_shared<Words>();
  outcore
      .add("serve", "Hold a buffer, and pages of files, when the programs that use it have ended")
      .word("name", words->name, "what `outcore run --buffer` calls it")
      .type("NAME")
      .required()
      .optional_word("files", words->files, "files whose pages stay, as far as the limit has room")
      .type("FILE")
      .size("--budget", words->budget_bytes, "the limit, if nobody is in the buffer yet")
      .required()
      .type("SIZE")
      .flag("-q,--quiet", words->is_quiet, "says nothing when it begins")
      .footer(
          "It reads nothing itself: what programs bring in stays. A file that somebody opens for\n"
          "writing is given up before that goes on, and taken again afterwards, as it then is.\n"
          "It runs until it is told to end: outcore buffers end NAME, Ctrl-C, SIGTERM.\n"
          "Exit status: 0 it was told to end; 1 the buffer or a file cannot be held; 2 usage.\n"
          "Example:\n"
          "  outcore serve samples --budget 8G standard/*.k2d &\n"
          "  outcore run --buffer samples -- kraken2 --memory-mapping --db standard a.fq\n"
          "  outcore buffers end samples")
      .runs([words] { return Served(*words).run(); });
}

}  // namespace outcore::cli
