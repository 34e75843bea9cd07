// outcore residency, warm, evict: what programs started by `outcore run` hold of a file, in the
// manner of vmtouch.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>

#include "cli/assert.h"
#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/json.h"
#include "cli/shell_word.h"
#include "cli/text.h"
#include "outcore/sight.h"
#include "sight/commands/left_file.h"
#include "sight/commands/process_facts.h"
#include "sight/commands/running_program.h"

namespace outcore::cli {
namespace {

constexpr unsigned kColumns = 60;
// Warm and evict go by pieces, each of which has its time, so that one answer is never waited for
// longer than a slow disk needs.
constexpr uint64_t kPieceBytes = uint64_t{64} << 20;
constexpr int kPieceMsMax = 60'000;

struct Words {
  std::string verb, file;
  uint64_t offset = 0, size_bytes = 0;  // size 0: to the end
  bool is_json = false;
};

struct File {
  std::string path;
  uint64_t size_bytes = 0;
};

Result<File> find_file(const std::string& name) {
  char path[PATH_MAX];
  struct stat facts {};
  if (::realpath(name.c_str(), path) == nullptr || ::stat(path, &facts) != 0)
    return failure(errno, "find " + name, "write a path that is there");
  if (!S_ISREG(facts.st_mode) && !S_ISBLK(facts.st_mode))
    return Error{EINVAL,
                 name + " is not a file that can be mapped: use a regular one, or a block device"};
  const std::string found = path;
  if (found.find('\n') != std::string::npos)
    return Error{EINVAL, name + " has a line's end in its path: use another name"};
  return File{found, static_cast<uint64_t>(facts.st_size)};
}

// -- The kernel's page cache --

// cachestat(2), Linux 6.5, where the C library has none.
struct CacheRange {
  uint64_t offset, size_bytes;
};
struct CacheCounts {
  uint64_t cached, dirty, written, evicted, recently_evicted;
};
constexpr long kCachestat = 451;

// Pages that the kernel holds of the file, one way or the other.
std::optional<uint64_t> count_cached(int file, uint64_t size_bytes, uint64_t page_bytes) {
  CLI_CHECK(page_bytes != 0);
  CacheRange all{0, 0};
  CacheCounts counts{};
  if (::syscall(kCachestat, file, &all, &counts, 0) == 0) return counts.cached;
  if (size_bytes == 0) return 0;
  void* const mapped = ::mmap(nullptr, size_bytes, PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) return std::nullopt;
  std::vector<unsigned char> pages((size_bytes + page_bytes - 1) / page_bytes);
  const bool is_told = ::mincore(mapped, size_bytes, pages.data()) == 0;
  ::munmap(mapped, size_bytes);
  if (!is_told) return std::nullopt;
  return static_cast<uint64_t>(std::count_if(pages.begin(), pages.end(),
                                             [](unsigned char page) { return (page & 1) != 0; }));
}

std::optional<uint64_t> cached_bytes(const File& file) {
  const int opened = ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened == -1) return std::nullopt;
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto pages = count_cached(opened, file.size_bytes, page_bytes);
  ::close(opened);
  if (!pages) return std::nullopt;
  return file.size_bytes == 0 ? *pages * page_bytes
                              : std::min(*pages * page_bytes, file.size_bytes);
}

double percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// -- What is printed --

struct Holder {
  Json answer;
  uint64_t resident_before = 0;  // of warm and evict
};

char column_of(uint64_t resident_percent) {
  if (resident_percent == 0) return ' ';
  if (resident_percent == 100) return 'O';
  return resident_percent < 50 ? '.' : 'o';
}

void print_holder(const Words& words, const Holder& holder) {
  const Json& answer = holder.answer;
  const auto number = [&](const char* key) { return answer.value(key, uint64_t{0}); };
  const uint64_t pages = number("pages"), resident = number("resident"), dirty = number("dirty");
  const uint64_t page_bytes = number("page_bytes");
  std::string bar;
  for (const Json& column : answer["columns"]) bar += column_of(column.as<uint64_t>().value_or(0));
  std::printf("[%s] %llu/%llu pages  %s of %s  %.1f%%  ", bar.c_str(),
              static_cast<unsigned long long>(resident), static_cast<unsigned long long>(pages),
              format_bytes(resident * page_bytes).c_str(), format_bytes(pages * page_bytes).c_str(),
              percent(resident, pages));
  if (dirty != 0) std::printf("%llu dirty  ", static_cast<unsigned long long>(dirty));
  std::printf("%s (pid %llu)\n", one_line(answer.value("program", "")).c_str(),
              static_cast<unsigned long long>(number("pid")));
  if (words.verb == "residency") return;
  const uint64_t before = holder.resident_before;
  const bool is_more = resident >= before;
  std::printf("  %s: %llu pages %s resident than before\n",
              words.verb == "warm" ? "warmed" : "evicted",
              static_cast<unsigned long long>(is_more ? resident - before : before - resident),
              is_more ? "more" : "fewer");
}

void print_json(const Words& words, const File& file, const std::vector<Holder>& holders,
                const std::vector<Reply>& skipped) {
  Json all = {{"verb", words.verb}, {"file", file.path}, {"file_bytes", file.size_bytes}};
  all["processes"] = Json::array();
  for (const Holder& holder : holders) {
    Json one = holder.answer;
    if (words.verb != "residency") one["resident_before"] = holder.resident_before;
    all["processes"].push_back(one);
  }
  all["skipped"] = Json::array();
  for (const Reply& reply : skipped)
    all["skipped"].push_back({{"pid", reply.program.pid}, {"why", reply.why}});
  // To open a file that is mapped for writing would hand it back to the kernel, or wait for a
  // program that is stopped.
  if (holders.empty() && skipped.empty())
    if (const auto cached = cached_bytes(file)) all["page_cache_bytes"] = *cached;
  show_json(all, 2);
}

// Programs of `outcore run` whose mapping of it is the kernel's all the same, and why.
std::string programs_that_left(const File& file) {
  constexpr size_t kToldMax = 3;
  std::string text;
  size_t told = 0;
  for (const pid_t process : list_published()) {
    const auto runtimes = look_at(process);
    if (!runtimes) continue;
    for (const PublishedRuntime& runtime : runtimes.value())
      for (const LeftFile& left : runtime.left_files) {
        // Of two with the same long beginning the sizes tell which it is.
        const bool is_it = is_at(left, file.path) &&
                           (left.path == file.path || left.size_bytes == file.size_bytes);
        if (!is_it || ++told > kToldMax) continue;
        text += (text.empty() ? "" : "; ") + facts_of(process).name + " (pid " +
                std::to_string(process) + "): " + how_left(left) + ": " + one_line(why_left(left));
      }
  }
  return text;
}

// The pattern that this path alone matches.
std::string pattern_of(const std::string& path) {
  std::string pattern;
  for (const char c : path) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') pattern += '\\';
    pattern += c;
  }
  return pattern;
}

Error tell_no_holder(const File& file) {
  const auto cached = cached_bytes(file);
  const std::string kernel = cached ? "the kernel's page cache holds " + format_bytes(*cached) +
                                          " of " + format_bytes(file.size_bytes) + " (" +
                                          format("%.1f%%", percent(*cached, file.size_bytes)) + ")"
                                    : "what the kernel's page cache holds may not be read";
  const std::string left = programs_that_left(file);
  return Error{ENOENT, "no running program has taken " + file.path + "; " + kernel + "; " +
                           (left.empty() ? "start the program by outcore run --map " +
                                               shell_word(pattern_of(file.path))
                                         : left)};
}

// -- Asking --

// What was found out, of all programs.
struct Findings {
  std::vector<Holder> holders;
  std::vector<Reply> skipped;
  bool has_failed = false;

  // True if the program has taken the file. What it could not do is told at once.
  bool take(const Reply& reply) {
    if (reply.kind == Reply::Kind::kSkipped) skipped.push_back(reply);
    if (reply.kind == Reply::Kind::kUndone) {
      has_failed = true;
      report(Error{EIO, reply.why});
    }
    return reply.kind == Reply::Kind::kTaken;
  }
};

std::vector<Reply> residency_of(const std::vector<RunningProgram>& programs, const File& file) {
  return ask(programs, {.verb = "residency", .columns = kColumns, .path = file.path});
}

// The last reply; it is the first that tells of no success.
Reply go_by_pieces(const RunningProgram& program, const Words& words, const File& file) {
  const uint64_t end =
      words.size_bytes == 0 ? UINT64_MAX : words.offset + words.size_bytes;  // no sum is too large
  for (uint64_t at = words.offset;; at += kPieceBytes) {
    const bool is_last = at + kPieceBytes >= std::min(end, file.size_bytes);
    Question piece{.verb = words.verb, .offset = at, .path = file.path, .wait_ms_max = kPieceMsMax};
    // To the end may be further than the file's: a mapping may be longer.
    piece.size_bytes = !is_last ? kPieceBytes : end == UINT64_MAX ? 0 : end - at;
    const std::vector<Reply> replies = ask({program}, piece);
    CLI_CHECK(replies.size() == 1);
    Reply reply = replies.front();
    if (is_last || reply.kind != Reply::Kind::kTaken) return reply;
  }
}

Findings find_holders(const Words& words, const File& file) {
  Findings all;
  std::map<RunningProgram, uint64_t> resident_before;
  std::vector<RunningProgram> programs;
  const bool is_looking = words.verb == "residency";
  for (const Reply& reply : residency_of(running_programs(), file)) {
    if (!all.take(reply)) continue;
    if (is_looking) all.holders.push_back({reply.answer});
    resident_before[reply.program] = reply.answer.value("resident", uint64_t{0});
    programs.push_back(reply.program);
  }
  if (is_looking) return all;
  std::erase_if(programs, [&](const RunningProgram& program) {
    return !all.take(go_by_pieces(program, words, file));
  });
  for (const Reply& reply : residency_of(programs, file))
    if (all.take(reply)) all.holders.push_back({reply.answer, resident_before[reply.program]});
  return all;
}

// One line, however many they are.
std::string tell_skipped(const std::vector<Reply>& skipped) {
  constexpr size_t kToldMax = 8;
  std::string text = "skipped: ";
  for (size_t i = 0; i < std::min(skipped.size(), kToldMax); ++i)
    text += (i == 0 ? "" : "; ") + skipped[i].why;
  if (skipped.size() <= kToldMax) return text;
  return text + "; and " + std::to_string(skipped.size() - kToldMax) + " more";
}

int run(const Words& words) {
  const Result<File> file = find_file(words.file);
  if (!file) return report(file.error());
  if (words.offset > 0 && words.offset >= file->size_bytes)
    return report(Error{EINVAL, "--offset must be less than the size of " + file->path + ", " +
                                    format_bytes(file->size_bytes)});
  const Findings all = find_holders(words, file.value());
  if (words.is_json) print_json(words, file.value(), all.holders, all.skipped);
  if (!all.holders.empty()) {
    if (!words.is_json) std::printf("%s\n", one_line(file->path).c_str());
    for (const Holder& holder : all.holders)
      if (!words.is_json) print_holder(words, holder);
    if (!all.skipped.empty()) report(Error{EIO, tell_skipped(all.skipped)});
    return all.has_failed ? kFailed : 0;
  }
  if (!all.skipped.empty()) {
    const std::string left = programs_that_left(file.value());  // it may be one that has answered
    return report(Error{ENOENT, "no running program that answers has taken " + file->path + "; " +
                                    (left.empty() ? "" : left + "; ") + tell_skipped(all.skipped)});
  }
  return all.has_failed ? kFailed : report(tell_no_holder(file.value()));
}

void add(CommandSyntax& outcore, const char* verb, const char* help, const char* example) {
  auto words = std::make_shared<Words>();
  words->verb = verb;
  CLI_CHECK(words->verb == "residency" || words->verb == "warm" || words->verb == "evict");
  CommandSyntax& command = outcore.add(verb, help);
  command.word("file", words->file, "a file that they have mapped").type("FILE");
  if (words->verb != "residency")
    command.size("--offset", words->offset, "first byte (0)")
        .size("--size", words->size_bytes, "bytes; 0: to the end (0)");
  command.flag("--json", words->is_json, "one JSON object")
      .footer(
          "The bar: blank, nothing resident; '.', less than half; 'o', half or more; 'O', all.\n"
          "Who does not answer in time, has ended, or is another user's, is named on standard "
          "error and\nskipped.\n"
          "Exit status: 0 done, in all that answer; 1 none of them has taken the file, or one "
          "failed; 2 usage.\nExample:\n  " +
          std::string(example))
      .runs([words] { return run(*words); });
}

}  // namespace

void add_residency(CommandSyntax& outcore) {
  add(outcore, "residency", "Show what programs started by `outcore run` hold of a file",
      "outcore residency standard/hash.k2d");
  add(outcore, "warm", "Fill a file's pages in programs started by `outcore run`",
      "outcore warm standard/hash.k2d --size 1G");
  add(outcore, "evict", "Let a file's pages go in programs started by `outcore run`",
      "outcore evict standard/hash.k2d --offset 1G");
}

}  // namespace outcore::cli
