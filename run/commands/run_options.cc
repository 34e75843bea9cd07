#include "run/commands/run_options.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/output_file.h"
#include "cli/pool_uri.h"
#include "cli/text.h"
#include "core/base/earlier_output.h"
#include "core/base/record_file.h"
#include "outcore/store_catalog.h"
#include "outcore/store_kind.h"

namespace outcore::cli {
namespace {

constexpr uint64_t kMinSizeBytes = uint64_t{64} << 20;
constexpr uint64_t kAllocBytesMin = uint64_t{64} << 10;

// The table of options, with shorter help: a test compares the names.
constexpr RuntimeOption kRuntimeOptions[] = {
    {"budget", "SIZE", "memory for resident pages: 4G, 25% of what is available, or auto (50%)"},
    {"budget_min", "SIZE", "auto follows what others leave: the least that it shrinks to (16M)"},
    {"budget_max", "SIZE", "the most that --budget auto grows to (none)"},
    {"policy", "NAME", "which pages leave, as in s3-fifo or di-mmap:hot=75% (auto)"},
    {"page", "SIZE", "unit of fault, eviction and I/O: 4k … 16M (4k)"},
    {"readahead", "SIZE", "largest window of a sequential reader; 0: none (2M)"},
    {"fetch", "NAME", "what a miss brings in: auto (as much as pays) or page (auto)"},
    {"high_watermark", "N", "percent of the budget: above it keepers evict (98)"},
    {"low_watermark", "N", "percent of the budget: down to it (97)"},
    {"wait_max", "TIME", "bound of a wait for memory, as in 500ms (30s)"},
    {"scratch_dir", "DIR", "where scratch space is made (TMPDIR, else /var/tmp)"},
    {"delivery", "NAME", "auto, in-thread, messages or mprotect (auto)"},
    {"frames", "NAME", "auto, shared or private (auto)"},
    {"on_error", "NAME", "what a touch gets whose fill failed: signal, zero or abort (signal)"},
    {"keepers", "N", "threads that evict and write back (1)"},
    {"prefetch_threads", "N", "threads that fill ahead (2)"},
    {"event_threads", "N", "threads that fill in messages delivery (2)"},
    {"event_batch", "N", "messages that one of them takes at a time, if so many wait (8)"},
    {"checkpoint", "TIME", "hold what is mapped for writing every so often, as in 10min (0s)"},
    {"checkpoint_pool", "POOL",
     "where checkpoints are kept, versioned:FOLDER, or the folder (none)"},
    {"checkpoint_keep", "N", "how many of them are kept (3)"},
    {"learn", "FILE", "keeps what was needed first; the next start brings it in ahead (none)"},
    {"buffer", "NAME",
     "shares pages of files with all runs of this name; none: not within the run, either"},
    {"report", "FILE", "a page about the run (.html), or its record (.json), when it ends (none)"},
    {"metrics_at_exit", "WHERE", "none, text (standard error), or a path for lines of JSON (none)"},
    {"kernel", "RELEASE", "leaves out newer kernel features, as in 6.1 (all)"}};

// The program may go elsewhere before it comes to this.
std::string value_of(const RuntimeOption& option, const std::string& given) {
  const std::string name = option.name;
  const bool is_word = given.empty() || given == "none" || given == "text";
  if (name == "checkpoint_pool" && given != "none") {
    const std::string uri = pool_uri(given);
    const StoreKind* const kind = kind_of_scheme(uri);
    if (kind == nullptr || kind->checkpoints != StoreKind::Checkpoints::kInPool) return uri;
    const std::string folder = uri.substr(kind->scheme.size() + 1);
    return folder.empty() ? uri : kind->scheme + ":" + absolute(folder);
  }
  const bool is_path = name == "scratch_dir" ||
                       ((name == "learn" || name == "report") && given != "none") ||
                       (name == "metrics_at_exit" && !is_word);
  return is_path ? absolute(given) : given;
}

void set(const char* variable, const std::string& value) { ::setenv(variable, value.c_str(), 1); }

Status set_globs(const std::vector<std::string>& globs, const char* flag, const char* variable) {
  if (globs.empty()) return {};
  std::string lines;
  for (const std::string& glob : globs) {
    if (glob.empty() || glob.find('\n') != std::string::npos)
      return Error{EINVAL, std::string(flag) + ": a pattern is " +
                               (glob.empty() ? "empty: leave it out"
                                             : "of two lines: say '*' in place of the line's end")};
    lines += (lines.empty() ? "" : "\n") + glob;
  }
  set(variable, lines);
  return {};
}

Status set_sizes(const RunOptions& options) {
  const GivenOption min = GivenOption::find(options.min_size, "--min-size", "OUTCORE_RUN_MIN_SIZE");
  uint64_t min_bytes = kMinSizeBytes;
  if (min.text) {
    const Result<uint64_t> bytes = parse_size(*min.text);
    if (!bytes) return min.wrong(bytes.message());
    min_bytes = bytes.value();
  }
  set("OUTCORE_RUN_MIN_SIZE", std::to_string(min_bytes));
  const GivenOption alloc = GivenOption::find(options.alloc, "--alloc", "OUTCORE_RUN_ALLOC");
  if (!alloc.text) return {};
  const Result<uint64_t> bytes = parse_size(*alloc.text);
  if (!bytes) return alloc.wrong(bytes.message());
  if (bytes.value() < kAllocBytesMin)
    return alloc.wrong("smaller allocations stay where they are: say 64k or more, as in 1M");
  set("OUTCORE_RUN_ALLOC", std::to_string(bytes.value()));
  return {};
}

// scratch:[DIR][?parameters], or space on other machines, which says itself what it needs.
Status set_store(const RunOptions& options) {
  const GivenOption store = GivenOption::find(options.store, "--store", "OUTCORE_STORE");
  if (!store.text) return {};
  const StoreKind* const kind = kind_of_scheme(*store.text);
  const bool is_unnamed = kind != nullptr && kind->dies_with_process;
  if (is_unnamed && kind->has_authority) {
    set("OUTCORE_STORE", *store.text);
    return {};
  }
  if (!is_unnamed || kind->place != StoreKind::Place::kFolder)
    return store.wrong(
        "memory of --alloc rests in scratch space, or in far memory: say scratch:DIR, or far://…");
  const auto uri = parse_store_uri(*store.text);
  if (!uri) return uri.error();
  if (const auto registered = find_store_kind(uri.value()); !registered) return registered.error();
  const std::string scheme = kind->scheme + ":";
  const size_t end = std::min(store.text->rfind('?'), store.text->size());
  const std::string folder = store.text->substr(scheme.size(), end - scheme.size());
  if (folder.empty() || folder.starts_with("//")) return {};
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0)
    return failure(errno, store.place, "name a folder that is there");
  if (!S_ISDIR(facts.st_mode) || ::access(folder.c_str(), W_OK | X_OK) != 0)
    return failure(S_ISDIR(facts.st_mode) ? errno : ENOTDIR, store.place,
                   "name a folder that you may write to");
  set("OUTCORE_STORE", scheme + absolute(folder) + store.text->substr(end));
  return {};
}

Status set_report(const RunOptions& options) {
  const GivenOption json = GivenOption::find(options.json, "--json", "OUTCORE_RUN_JSON");
  if (!json.text) return {};
  const std::string path = absolute(*json.text);
  if (Status s = check_output(path, HowWritten::kInPlace, json.place); !s) return s;
  set("OUTCORE_RUN_JSON", path);
  return {};
}

// A flag in the environment: "1" to the library, or nothing.
Status set_flag(bool is_given, const char* variable) {
  const char* const text = std::getenv(variable);
  const std::string value = text == nullptr ? "" : text;
  if (!is_given && !value.empty() && value != "0" && value != "1")
    return Error{EINVAL, std::string(variable) + "=" + value + " must be 1, or 0"};
  if (is_given || value == "1")
    set(variable, "1");
  else
    ::unsetenv(variable);
  return {};
}

GivenOption find_runtime_option(const RunOptions& options, std::string_view name) {
  const auto* const option = std::find_if(std::begin(kRuntimeOptions), std::end(kRuntimeOptions),
                                          [&](const RuntimeOption& o) { return o.name == name; });
  return GivenOption::find(options.runtime[static_cast<size_t>(option - kRuntimeOptions)],
                           option->flag().c_str(), option->variable().c_str());
}

// What is written at the end of the program is written, or refused before it begins. A profile that
// cannot be kept costs time alone, and may be one that is only read: the library tells.
Status check_outputs(const RunOptions& options) {
  const GivenOption learnt = find_runtime_option(options, "learn");
  std::error_code none;
  if (learnt.text && std::filesystem::is_directory(*learnt.text, none))
    return learnt.wrong("it is a folder: name a file in it");
  for (const char* name : {"report", "metrics_at_exit"}) {
    const GivenOption file = find_runtime_option(options, name);
    if (!file.text || file.text->empty() || *file.text == "none" || *file.text == "text") continue;
    if (name == std::string_view("report") && report_page(options)) continue;  // its watcher asks
    if (name == std::string_view("report") && !file.text->ends_with(".json"))
      return file.wrong(
          "name a file that ends in .json, for a record, which `outcore report` reads, or, by "
          "--report, in .html, for a page");
    if (Status s = check_output(*file.text, HowWritten::kInPlace, file.place); !s) return s;
    if (name == std::string_view("report") && !base::may_hold_records(*file.text))
      return file.wrong(base::kNoRecordFile);
  }
  return {};
}

// Files are of no pool. What is no time is told as such, later.
Status check_checkpoints(const RunOptions& options) {
  const GivenOption every = find_runtime_option(options, "checkpoint"),
                    pool = find_runtime_option(options, "checkpoint_pool");
  if (!every.text || every.text->find_first_of("123456789") == std::string::npos) return {};
  if (every.text->find_first_not_of("0123456789 .mshind") != std::string::npos) return {};
  if (pool.text && *pool.text != "none") return {};
  return every.wrong("say where they are kept: --checkpoint-pool versioned:FOLDER");
}

}  // namespace

std::string absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return error ? path : whole.string();
}

Error GivenOption::wrong(const std::string& why) const { return {EINVAL, place + ": " + why}; }

GivenOption GivenOption::find(const std::optional<std::string>& option, const char* flag,
                              const char* variable) {
  if (option) return {option, std::string(flag) + " " + without_password(*option)};
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == 0) return {};
  return {text, std::string(variable) + "=" + without_password(text)};
}

std::string RuntimeOption::flag() const {
  std::string text = std::string("--") + name;
  for (char& c : text)
    if (c == '_') c = '-';
  return text;
}

std::string RuntimeOption::variable() const {
  std::string text = "OUTCORE_";
  for (const char* c = name; *c != 0; ++c)
    text += static_cast<char>(std::toupper(static_cast<unsigned char>(*c)));
  return text;
}

void add_run_options(CommandSyntax& run, RunOptions& options) {
  options.runtime.resize(std::size(kRuntimeOptions));
  for (size_t i = 0; i < std::size(kRuntimeOptions); ++i)
    run.option(kRuntimeOptions[i].flag(), options.runtime[i], kRuntimeOptions[i].help)
        .type(kRuntimeOptions[i].type);
  run.option("--map", options.map, "files to take, and no others; may be given again")
      .type("GLOB")
      .option("--not-map", options.not_map, "files to leave alone; may be given again")
      .type("GLOB")
      .option("--min-size", options.min_size,
              "smallest mapping to take, of files that --map names, too (64M)")
      .type("SIZE")
      .option("--alloc", options.alloc,
              "allocations of this size and more go to scratch space (none)")
      .type("SIZE")
      .flag("--allow-aio", options.allows_aio,
            "io_uring and aio beside --alloc: they never read into memory of it")
      .flag("--keep-privileges", options.keeps_privileges,
            "sudo and its like keep their rights: faults come by messages")
      .flag("--share-writes", options.shares_writes,
            "processes that write a file share its pages in a buffer, as with --buffer")
      .option("--store", options.store, "where memory of --alloc rests (scratch:)")
      .type("scratch:DIR")
      .option("--hosts", options.hosts,
              "machines that give memory to this run, a line each: [USER@]HOST SIZE; this one "
              "first")
      .type("FILE")
      .option("--replicas", options.replicas, "copies of each host's memory on the next: 0, 1 (0)")
      .type("N")
      .option("--json", options.json, "keeps the table of the end, as JSON")
      .type("FILE")
      .option("--metrics", options.metrics,
              "serves metrics for Prometheus while the program runs, or writes them")
      .type("[ADDRESS:]PORT|FILE")
      .flag("--explain", options.is_explained, "says of each mapping why it was taken, or not")
      .flag("-q,--quiet", options.is_quiet, "no table at the end, no warning before")
      .optional_word("program", options.program, "The program, then what it takes")
      .type("[--] PROGRAM [ARGUMENT]");
}

std::optional<std::string> report_page(const RunOptions& options) {
  for (size_t i = 0; i < options.runtime.size(); ++i)
    if (kRuntimeOptions[i].name == std::string_view("report") && options.runtime[i] &&
        (options.runtime[i]->ends_with(".html") || options.runtime[i]->ends_with(".htm")))
      return absolute(*options.runtime[i]);
  return std::nullopt;
}

bool has_runtime_options(const RunOptions& options) {
  for (size_t i = 0; i < std::size(kRuntimeOptions); ++i) {
    if (i < options.runtime.size() && options.runtime[i]) return true;
    const char* const text = std::getenv(kRuntimeOptions[i].variable().c_str());
    if (text != nullptr && *text != 0) return true;
  }
  const char* const config = std::getenv("OUTCORE_CONFIG");
  return config != nullptr && *config != 0;
}

namespace {

// Started within another run, or by a launcher of parallel programs: others append to the file.
bool is_one_of_several() {
  constexpr const char* kSigns[] = {"OUTCORE_RUN_ROOT", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                    "PMI_RANK", "SLURM_PROCID"};
  return std::any_of(std::begin(kSigns), std::end(kSigns),
                     [](const char* sign) { return std::getenv(sign) != nullptr; });
}

// Empty: it is no file that lines are kept in.
std::string earlier_line(const std::string& path) {
  struct stat about {};
  const bool is_there = ::stat(path.c_str(), &about) == 0;
  if ((is_there && !S_ISREG(about.st_mode)) || path.find('\n') != std::string::npos) return {};
  return "\n" + base::EarlierOutput::mark_of(path) + " " + path;
}

}  // namespace

Status set_run_environment(const RunOptions& options) {
  if (Status s = check_outputs(options); !s) return s;
  std::string before;
  for (size_t i = 0; i < std::size(kRuntimeOptions); ++i) {
    const RuntimeOption& option = kRuntimeOptions[i];
    if (!options.runtime[i]) continue;
    const std::string value = value_of(option, *options.runtime[i]);
    if (option.name == std::string_view("report") && report_page(options)) continue;
    set(option.variable().c_str(), value);
    // The processes of this run append to it; the first runtime empties what an earlier run left.
    if ((option.name == std::string_view("metrics_at_exit") ||
         (option.name == std::string_view("report") && value.ends_with(".json"))) &&
        value.starts_with('/'))
      before += earlier_line(value);
  }
  if (!is_one_of_several() && !before.empty()) set(base::EarlierOutput::kVariable, before);
  for (const Status& status :
       {check_checkpoints(options), set_globs(options.map, "--map", "OUTCORE_RUN_MAP"),
        set_globs(options.not_map, "--not-map", "OUTCORE_RUN_NOT_MAP"), set_sizes(options),
        set_store(options), set_report(options),
        set_flag(options.allows_aio, "OUTCORE_RUN_ALLOW_AIO"),
        set_flag(options.keeps_privileges, "OUTCORE_RUN_KEEP_PRIVILEGES"),
        set_flag(options.shares_writes, "OUTCORE_RUN_SHARE_WRITES"),
        set_flag(options.is_explained, "OUTCORE_RUN_EXPLAIN"),
        set_flag(options.is_quiet, "OUTCORE_RUN_QUIET")})
    if (!status) return status;
  return {};
}

std::string in_words_of_flags(std::string message, const RunOptions& options) {
  for (size_t i = 0; i < std::size(kRuntimeOptions); ++i) {
    if (!options.runtime[i]) continue;
    const std::string variable = kRuntimeOptions[i].variable();
    for (size_t at = 0; (at = message.find(variable, at)) != std::string::npos;) {
      const char next = at + variable.size() < message.size() ? message[at + variable.size()] : 0;
      if (next == '_' || std::isalnum(static_cast<unsigned char>(next)) != 0) {  // another
        at += variable.size();
        continue;
      }
      const bool has_value = next == '=';
      message.replace(at, variable.size() + (has_value ? 1 : 0),
                      kRuntimeOptions[i].flag() + (has_value ? " " : ""));
    }
    const std::string flag = kRuntimeOptions[i].flag();
    const std::string twice = std::string(kRuntimeOptions[i].name) + " (" + flag + "):";
    if (message.starts_with(twice)) message.replace(0, twice.size(), flag + ":");
  }
  return message;
}

}  // namespace outcore::cli
