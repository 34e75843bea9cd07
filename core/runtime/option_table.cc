#include "core/runtime/option_table.h"

#include <algorithm>
#include <cctype>
#include <span>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/buffer/place.h"
#include "core/os/kernel_features.h"
#include "core/os/message_delivery.h"
#include "core/runtime/option_text.h"
#include "core/store/registry.h"
#include "outcore/policy.h"

namespace outcore::runtime {
namespace {

constexpr uint64_t kReadaheadBytesMax = uint64_t{1} << 30;
constexpr uint64_t kWaitMsMax = uint64_t{24} * 3600 * 1000;
constexpr unsigned kThreadsMax = 256, kCheckpointsKeptMax = 10'000;
constexpr uint64_t kEveryMsMin = 10, kEveryMsMax = uint64_t{7} * 24 * 3600 * 1000;

constexpr Choice<Delivery> kDeliveries[] = {{"auto", Delivery::kAuto},
                                            {"in-thread", Delivery::kInThread},
                                            {"messages", Delivery::kMessages},
                                            {"mprotect", Delivery::kMprotect}};
constexpr Choice<FrameKind> kFrameKinds[] = {
    {"auto", FrameKind::kAuto}, {"shared", FrameKind::kShared}, {"private", FrameKind::kPrivate}};
constexpr Choice<Fetch> kFetches[] = {{"auto", Fetch::kAuto}, {"page", Fetch::kPage}};
constexpr Choice<OnError> kOnErrors[] = {
    {"signal", OnError::kSignal}, {"zero", OnError::kZeroFill}, {"abort", OnError::kAbort}};

// The common part of all options: where the value is stored, and how it is read, written and
// checked.
template <typename T>
struct Fields {
  std::optional<T> RuntimeOptions::*from;
  T ResolvedOptions::*to;
};

template <typename T, typename Read, typename Write, typename Refuse>
Option make(Option words, Fields<T> fields, Read read, Write write, Refuse refuse) {
  Option option = std::move(words);
  option.read = [=](const std::string& text, const OptionContext& context, ResolvedOptions* into,
                    std::string* remark) -> Status {
    Result<T> value = read(text, context, remark);
    if (!value) return value.error();
    into->*fields.to = value.value();
    return {};
  };
  option.copy_from_program = [=](const RuntimeOptions& options, const OptionContext&,
                                 ResolvedOptions* into, std::string*) {
    if (!(options.*fields.from)) return false;
    into->*fields.to = *(options.*fields.from);
    return true;
  };
  option.write = [=](const ResolvedOptions& options) { return write(options.*fields.to); };
  option.refuse = [=](const ResolvedOptions& options) -> std::string {
    return refuse(options.*fields.to);
  };
  return option;
}

std::string refuse_budget(uint64_t bytes) {
  constexpr uint64_t kPagesMax = 0xFFFFFFF0;  // frames are numbered by 32 bits
  if (bytes / base::kSystemPage >= kPagesMax) return "a budget is smaller than 16 TiB";
  return bytes >= base::kSystemPage ? "" : "a budget has at least one system page, 4 KiB";
}

constexpr std::string_view kAutoBudget = "auto";

// Where a budget begins that follows what is left.
void begin_to_adapt(const OptionContext& context, ResolvedOptions* into, std::string* remark) {
  const auto [bytes, why] = os::default_budget_of(context.available());
  into->adapts_budget = true;
  into->budget_bytes = bytes;
  *remark = "begins with " + why;
}

Option budget(Option words) {
  Option option = std::move(words);
  option.read = [](const std::string& text, const OptionContext& context, ResolvedOptions* into,
                   std::string* remark) -> Status {
    if (text == kAutoBudget) {
      begin_to_adapt(context, into, remark);
      return {};
    }
    Result<uint64_t> bytes = read_budget(text, context.available, remark);
    if (!bytes) return bytes.error();
    into->adapts_budget = false;
    into->budget_bytes = bytes.value();
    return {};
  };
  option.copy_from_program = [](const RuntimeOptions& options, const OptionContext& context,
                                ResolvedOptions* into, std::string* remark) {
    if (!options.budget_bytes && !options.adapts_budget) return false;
    into->adapts_budget = options.adapts_budget;
    if (options.budget_bytes)
      into->budget_bytes = *options.budget_bytes;
    else
      begin_to_adapt(context, into, remark);
    return true;
  };
  option.write = [](const ResolvedOptions& options) {
    return options.adapts_budget ? std::string(kAutoBudget) : write_bytes(options.budget_bytes);
  };
  option.refuse = [](const ResolvedOptions& options) {
    return refuse_budget(options.budget_bytes);
  };
  return option;
}

// A bound that there need not be.
Option bytes_or_none(Option words, Fields<uint64_t> fields) {
  static constexpr uint64_t kNone = ResolvedOptions::kNoBound;
  const auto read = [](const std::string& text, const OptionContext&,
                       std::string*) -> Result<uint64_t> {
    if (text == "none") return kNone;
    return base::parse_bytes(text);
  };
  const auto write = [](uint64_t bytes) {
    return bytes == kNone ? std::string("none") : write_bytes(bytes);
  };
  const auto refuse = [](uint64_t bytes) {
    return bytes == kNone ? std::string() : refuse_budget(bytes);
  };
  return make(std::move(words), fields, read, write, refuse);
}

template <typename Refuse>
Option bytes(Option words, Fields<uint64_t> fields, Refuse refuse) {
  const auto read = [](const std::string& text, const OptionContext&, std::string*) {
    return base::parse_bytes(text);
  };
  return make(std::move(words), fields, read, write_bytes, refuse);
}

Option count(Option words, Fields<unsigned> fields, unsigned max) {
  words.values = "1 … " + std::to_string(max);
  const auto read = [max](const std::string& text, const OptionContext&, std::string*) {
    return read_count(text, max);
  };
  const auto write = [](unsigned n) { return std::to_string(n); };
  const auto refuse = [max](unsigned n) {
    return n >= 1 && n <= max ? "" : "it is a number of 1 … " + std::to_string(max);
  };
  return make(std::move(words), fields, read, write, refuse);
}

template <typename Refuse>
Option milliseconds(Option words, Fields<uint64_t> fields, Refuse refuse) {
  const auto read = [](const std::string& text, const OptionContext&, std::string*) {
    return base::parse_milliseconds(text);
  };
  return make(std::move(words), fields, read, base::format_milliseconds, refuse);
}

template <typename T, size_t n>
Option choice(Option words, Fields<T> fields, const Choice<T> (&choices)[n]) {
  const std::span<const Choice<T>> all = choices;
  words.values = list_choices(all);
  const auto read = [all](const std::string& text, const OptionContext&, std::string*) {
    return read_choice(text, all);
  };
  const auto write = [all](T value) { return write_choice(value, all); };
  const auto refuse = [all](T value) {
    return write_choice(value, all).empty() ? "use one of " + list_choices(all) : std::string();
  };
  return make(std::move(words), fields, read, write, refuse);
}

// Options that are texts. `find` computes the default, if it is not constant.
using Find = std::string (*)(const OptionContext&);

template <typename Refuse>
Option text(Option words, Fields<std::string> fields, Find find, Refuse refuse) {
  const auto read = [find](const std::string& given, const OptionContext& context,
                           std::string*) -> Result<std::string> {
    return given.empty() && find != nullptr ? find(context) : given;
  };
  return make(
      std::move(words), fields, read, [](const std::string& s) { return s; }, refuse);
}

std::string refuse_empty(const std::string& value) { return value.empty() ? "it is empty" : ""; }

std::string refuse_wait(uint64_t ms) { return ms <= kWaitMsMax ? "" : "it is a day at most"; }

std::string refuse_interval(uint64_t ms) {
  if (ms == 0 || (ms >= kEveryMsMin && ms <= kEveryMsMax)) return "";
  return ms < kEveryMsMin ? "it is 10 ms at least, or 0" : "it is a week at most";
}

std::string refuse_pool(const std::string& uri) {
  return uri == "none" ? "" : store::why_no_pool(uri);
}

std::string refuse_report(const std::string& path) {
  if (path == "none" || path.ends_with(".json")) return "";
  return "a runtime writes a record: name a file that ends in .json (`outcore report` reads it)";
}

std::string refuse_buffer(const std::string& name) {
  if (name == "none") return "";
  const Status status = buffer::check_name(name);
  return status ? "" : without_subject(status.message(), "buffer");
}

std::string refuse_policy(const std::string& name) {
  if (name.empty()) return refuse_empty(name);
  const auto made = make_policy(name, 64, 64);  // of any frames: only the name is checked
  return made ? "" : without_subject(made.message(), "policy");
}

std::string refuse_page(uint64_t bytes) {
  const bool is_page =
      base::is_power_of_two(bytes) && bytes >= base::kSystemPage && bytes <= base::kPageBytesMax;
  return is_page ? "" : "a page is a power of two from 4 KiB to 16 MiB";
}

std::string refuse_readahead(uint64_t bytes) {
  return bytes <= kReadaheadBytesMax ? "" : "readahead is 1 GiB at most";
}

std::string find_scratch(const OptionContext& context) {
  const char* folder = context.environment("TMPDIR");
  return folder != nullptr && *folder != 0 ? folder : "/var/tmp";
}

std::string refuse_kernel(const std::string& mask) {
  const Status status = os::check_kernel_mask(mask);
  return status ? "" : status.message();
}

// name, field, default, values, help: as in the documentation.
std::vector<Option> make_memory_options() {
  using R = RuntimeOptions;
  using O = ResolvedOptions;
  return {
      budget({"budget", "budget_bytes", "<half of the memory available>",
              "bytes, a percentage as in 25%, or auto",
              "memory for resident pages, pages in flight and bounce buffers together; a hard "
              "limit. A percentage is of the memory that this process's cgroup, or else the "
              "machine, has available at the start. auto (`adapts_budget`) begins with the default "
              "and follows what they have left: it shrinks while others take memory, and grows "
              "back"}),
      bytes({"budget_min", "budget_min_bytes", "16 MiB", "bytes; with budget = auto alone",
             "the least that budget = auto shrinks to, or what the pager needs if that is more"},
            {&R::budget_min_bytes, &O::budget_min_bytes}, refuse_budget),
      bytes_or_none(
          {"budget_max", "budget_max_bytes", "none", "bytes, or none; with budget = auto alone",
           "the most that budget = auto grows to. It leaves others a twentieth of the memory and "
           "64 MiB at least, in small cgroups a quarter, whatever this says"},
          {&R::budget_max_bytes, &O::budget_max_bytes}),
      text({"policy", "policy", "auto",
            "auto, or a policy with its parameters, as in di-mmap:hot=75%",
            "which pages leave when the budget is full. auto takes whichever policy misses least"},
           {&R::policy, &O::policy}, nullptr, refuse_policy),
      bytes({"page", "page_bytes", "4 KiB", "a power of two, 4 KiB … 16 MiB",
             "unit of fault, eviction and I/O of regions that do not say"},
            {&R::page_bytes, &O::page_bytes}, refuse_page),
      bytes(
          {"readahead", "readahead_bytes", "2 MiB", "bytes, 1 GiB at most; 0: none",
           "largest window of a sequential reader; with 0 nothing comes in that was not asked for"},
          {&R::readahead_bytes, &O::readahead_bytes}, refuse_readahead),
      choice({"fetch", "fetch", "auto", "",
              "how much a miss brings in that belongs to no sequential reader: as much around the "
              "page as pays there, or the page alone"},
             {&R::fetch, &O::fetch}, kFetches),
      count({"high_watermark", "high_watermark", "98", "",
             "percent of the budget: above it keepers evict. Above low_watermark"},
            {&R::high_watermark, &O::high_watermark}, 100),
      count({"low_watermark", "low_watermark", "97", "",
             "percent of the budget: down to it keepers evict"},
            {&R::low_watermark, &O::low_watermark}, 100),
      milliseconds({"wait_max", "wait_ms_max", "30s", "a time with ms, s or min; a day at most",
                    "bound of a wait for memory that cannot be freed; then the fill fails"},
                   {&R::wait_ms_max, &O::wait_ms_max}, refuse_wait),
      text({"scratch_dir", "scratch_dir", "<TMPDIR, else /var/tmp>", "a folder",
            "where the unnamed files of private regions and scratch stores are made"},
           {&R::scratch_dir, &O::scratch_dir}, find_scratch, refuse_empty),
  };
}

std::vector<Option> make_fault_options() {
  using R = RuntimeOptions;
  using O = ResolvedOptions;
  return {
      choice({"delivery", "delivery", "auto", "", "how regions that do not say learn of a fault"},
             {&R::delivery, &O::delivery}, kDeliveries),
      choice({"frames", "frames", "auto", "", "what holds the pages of regions that do not say"},
             {&R::frames, &O::frames}, kFrameKinds),
      choice({"on_error", "on_error", "signal", "",
              "what a touch gets whose fill failed: SIGBUS, zeros (if nobody writes), or the end "
              "of the program"},
             {&R::on_error, &O::on_error}, kOnErrors),
      count(
          {"keepers", "keepers", "1", "", "shards, each with a thread that evicts and writes back"},
          {&R::keepers, &O::keepers}, kThreadsMax),
      count({"prefetch_threads", "prefetch_threads", "2", "", "threads that fill ahead"},
            {&R::prefetch_threads, &O::prefetch_threads}, kThreadsMax),
      count({"event_threads", "event_threads", "2", "",
             "threads that fill in messages delivery, started with its first region"},
            {&R::event_threads, &O::event_threads}, kThreadsMax),
      count({"event_batch", "event_batch", "8", "", "faults that one takes at a time at most"},
            {&R::event_batch, &O::event_batch}, os::MessageDelivery::kMessagesMax),
      milliseconds({"checkpoint", "checkpoint_every_ms", "0s",
                    "a time with ms, s, min or h; a week at most; 0: none",
                    "a checkpoint of all regions that are mapped for writing, every so often"},
                   {&R::checkpoint_every_ms, &O::checkpoint_every_ms}, refuse_interval),
      text({"checkpoint_pool", "checkpoint_pool", "none",
            "versioned:FOLDER; none: that of the regions",
            "where they are kept; regions of other stores are copied into it"},
           {&R::checkpoint_pool, &O::checkpoint_pool}, nullptr, refuse_pool),
      count({"checkpoint_keep", "checkpoint_keep", "3", "", "how many of them are kept"},
            {&R::checkpoint_keep, &O::checkpoint_keep}, kCheckpointsKeptMax),
      text({"learn", "learn_file", "none", "none, or a path",
            "a file that keeps what of which files was needed first; the next start brings that in "
            "ahead"},
           {&R::learn_file, &O::learn_file}, nullptr, refuse_empty),
      text({"buffer", "buffer", "none", "none, or a name",
            "the buffer that holds pages of files, for all processes that name it; the budget of "
            "the first is the limit for all together. What an `outcore run` starts shares one "
            "without a name, unless this is none"},
           {&R::buffer, &O::buffer}, nullptr, refuse_buffer),
      text({"report", "report_file", "none", "none, or a path that ends in .json",
            "a file to which a record of the run is appended when it ends, one line of JSON, of "
            "which `outcore report` makes a page"},
           {&R::report_file, &O::report_file}, nullptr, refuse_report),
      text({"metrics_at_exit", "metrics_at_exit", "none", "none, text, or a path",
            "metrics when the runtime ends, or the process by exit(): on the standard error as "
            "text, or appended to a file as one line of JSON"},
           {&R::metrics_at_exit, &O::metrics_at_exit}, nullptr, refuse_empty),
      text({"kernel", "kernel", "all", "all, or a release as in 5.15, 6.1 or 6.8",
            "leaves out kernel features that are newer; to try how it would be elsewhere"},
           {&R::kernel, &O::kernel}, nullptr, refuse_kernel),
  };
}

}  // namespace

std::string Option::variable() const {
  std::string variable = "OUTCORE_";
  for (char c : name) variable += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return variable;
}

const std::vector<Option>& option_table() {
  static const std::vector<Option> table = [] {
    std::vector<Option> all = make_memory_options();
    for (Option& option : make_fault_options()) all.push_back(std::move(option));
    return all;
  }();
  return table;
}

const Option* find_option(std::string_view name) {
  for (const Option& option : option_table())
    if (option.name == name) return &option;
  return nullptr;
}

std::string nearest_option(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Option& option : option_table()) names.push_back(option.name);
  return base::nearest(name, names.data(), names.size());
}

std::string option_table_markdown() {
  std::string text =
      "# Options\n\n"
      "Every option can be set in four places; the first that does decides:\n\n"
      "1. by the program: a field of `RuntimeOptions`,\n"
      "2. in the environment,\n"
      "3. in the config file, in TOML: `OUTCORE_CONFIG` (set to nothing: none), else\n"
      "   `~/.config/outcore.toml`, else `/etc/outcore.toml`,\n"
      "4. by default.\n\n"
      "A value that is out of range is an error wherever it stands, and the message says where. "
      "Bytes\nare numbers with k, M, G or T, powers of 1024: `64k`, `1.5G`. This page is made from "
      "the table\nthat the parser reads (`core/runtime/option_table.cc`).\n\n"
      "| config file | environment | `RuntimeOptions` | default | values | what it does |\n"
      "| --- | --- | --- | --- | --- | --- |\n";
  for (const Option& option : option_table()) {
    const std::string& by_default = option.default_text;
    const bool is_found = by_default.front() == '<';
    text += "| `" + option.name + "` | `" + option.variable() + "` | `" + option.field + "` | " +
            (is_found ? by_default.substr(1, by_default.size() - 2) : "`" + by_default + "`") +
            " | " + option.values + " | " + option.help + " |\n";
  }
  text +=
      "\n`RuntimeOptions::ignore_environment` makes a runtime deaf to environment and config "
      "file.\n"
      "\nA file of `metrics_at_exit`, or of `report`, has one line of JSON for each runtime that "
      "has ended, of all processes; none overwrites another's (on NFS give each a path of its "
      "own).\nWhat was in it stays, but the first runtime of an `outcore run` empties it.\n";
  return text;
}

}  // namespace outcore::runtime
