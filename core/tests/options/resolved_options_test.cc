#include "core/runtime/resolved_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>

#include "core/runtime/option_table.h"
#include "core/tests/options/resolve_scene.h"
#include "outcore/runtime.h"
#include "tests/folder.h"

namespace outcore::runtime {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr uint64_t kMiB = uint64_t{1} << 20;

class ResolveOptions : public ResolveScene {};

TEST_F(ResolveOptions, DefaultsAreThoseOfThePublicHeader) {
  const ResolvedOptions o = resolved();
  EXPECT_EQ(o.budget_bytes, 500 * kMiB);
  EXPECT_FALSE(o.adapts_budget);
  EXPECT_EQ(o.budget_min_bytes, 16 * kMiB);
  EXPECT_EQ(o.budget_max_bytes, ResolvedOptions::kNoBound);
  EXPECT_EQ(o.policy, "auto");
  EXPECT_EQ(o.page_bytes, 4096u);
  EXPECT_EQ(o.keepers, 1u);
  EXPECT_EQ(o.prefetch_threads, 2u);
  EXPECT_EQ(o.event_threads, 2u);
  EXPECT_EQ(o.event_batch, 8u);
  EXPECT_EQ(o.high_watermark, 98u);
  EXPECT_EQ(o.low_watermark, 97u);
  EXPECT_EQ(o.readahead_bytes, 2 * kMiB);
  EXPECT_EQ(o.fetch, Fetch::kAuto);
  EXPECT_EQ(o.wait_ms_max, 30'000u);
  EXPECT_EQ(o.delivery, Delivery::kAuto);
  EXPECT_EQ(o.frames, FrameKind::kAuto);
  EXPECT_EQ(o.on_error, OnError::kSignal);
  EXPECT_EQ(o.scratch_dir, "/var/tmp");
  EXPECT_EQ(o.checkpoint_every_ms, 0u);
  EXPECT_EQ(o.checkpoint_pool, "none");
  EXPECT_EQ(o.checkpoint_keep, 3u);
  EXPECT_EQ(o.learn_file, "none");
  EXPECT_EQ(o.metrics_at_exit, "none");
  EXPECT_EQ(o.kernel, "all");
  EXPECT_EQ(o.source_of("keepers"), "default");
  EXPECT_EQ(o.source_of("budget"), "default: half of 1000 MiB available in cgroup /x");
}

TEST_F(ResolveOptions, TheProgramComesBeforeTheEnvironmentBeforeTheFileBeforeTheDefault) {
  config("keepers = 2\nevent_threads = 3\nprefetch_threads = 4\n");
  environment_ = {{"OUTCORE_EVENT_THREADS", "5"}, {"OUTCORE_PREFETCH_THREADS", "6"}};
  RuntimeOptions program;
  program.prefetch_threads = 7;
  const ResolvedOptions o = resolved(program);
  EXPECT_EQ(o.keepers, 2u);
  EXPECT_EQ(o.source_of("keepers"), config_ + ":1");
  EXPECT_EQ(o.event_threads, 5u);
  EXPECT_EQ(o.source_of("event_threads"), "OUTCORE_EVENT_THREADS");
  EXPECT_EQ(o.prefetch_threads, 7u);
  EXPECT_EQ(o.source_of("prefetch_threads"), "the program");
  EXPECT_EQ(o.source_of("page"), "default");
}

TEST_F(ResolveOptions, EveryOptionCanBeSetInTheEnvironment) {
  environment_ = {{"OUTCORE_BUDGET", "auto"},        {"OUTCORE_BUDGET_MIN", "64M"},
                  {"OUTCORE_BUDGET_MAX", "4G"},      {"OUTCORE_POLICY", "di-mmap:hot=75%"},
                  {"OUTCORE_PAGE", "64k"},           {"OUTCORE_KEEPERS", "2"},
                  {"OUTCORE_PREFETCH_THREADS", "3"}, {"OUTCORE_EVENT_THREADS", "4"},
                  {"OUTCORE_HIGH_WATERMARK", "90"},  {"OUTCORE_LOW_WATERMARK", "80"},
                  {"OUTCORE_READAHEAD", "0"},        {"OUTCORE_WAIT_MAX", "500ms"},
                  {"OUTCORE_DELIVERY", "messages"},  {"OUTCORE_FRAMES", "private"},
                  {"OUTCORE_ON_ERROR", "zero"},      {"OUTCORE_SCRATCH_DIR", "/x"},
                  {"OUTCORE_CHECKPOINT", "10min"},   {"OUTCORE_CHECKPOINT_POOL", "versioned:p"},
                  {"OUTCORE_CHECKPOINT_KEEP", "9"},  {"OUTCORE_METRICS_AT_EXIT", "m"},
                  {"OUTCORE_KERNEL", "6.1"},         {"OUTCORE_FETCH", "page"},
                  {"OUTCORE_LEARN", "/l"},           {"OUTCORE_BUFFER", "b"},
                  {"OUTCORE_REPORT", "/r.json"},     {"OUTCORE_EVENT_BATCH", "64"}};
  EXPECT_EQ(environment_.size(), option_table().size());
  const ResolvedOptions o = resolved();
  EXPECT_TRUE(o.adapts_budget);
  EXPECT_EQ(o.budget_bytes, 500 * kMiB);
  EXPECT_EQ(o.budget_min_bytes, 64 * kMiB);
  EXPECT_EQ(o.budget_max_bytes, uint64_t{4} << 30);
  EXPECT_EQ(o.policy, "di-mmap:hot=75%");
  EXPECT_EQ(o.page_bytes, 65536u);
  EXPECT_EQ(o.keepers, 2u);
  EXPECT_EQ(o.prefetch_threads, 3u);
  EXPECT_EQ(o.event_threads, 4u);
  EXPECT_EQ(o.event_batch, 64u);
  EXPECT_EQ(o.high_watermark, 90u);
  EXPECT_EQ(o.low_watermark, 80u);
  EXPECT_EQ(o.readahead_bytes, 0u);
  EXPECT_EQ(o.fetch, Fetch::kPage);
  EXPECT_EQ(o.wait_ms_max, 500u);
  EXPECT_EQ(o.delivery, Delivery::kMessages);
  EXPECT_EQ(o.frames, FrameKind::kPrivate);
  EXPECT_EQ(o.on_error, OnError::kZeroFill);
  EXPECT_EQ(o.scratch_dir, "/x");
  EXPECT_EQ(o.checkpoint_every_ms, 600'000u);
  EXPECT_EQ(o.checkpoint_pool, "versioned:p");
  EXPECT_EQ(o.checkpoint_keep, 9u);
  EXPECT_EQ(o.learn_file, "/l");
  EXPECT_EQ(o.buffer, "b");
  EXPECT_EQ(o.report_file, "/r.json");
  EXPECT_EQ(o.metrics_at_exit, "m");
  EXPECT_EQ(o.kernel, "6.1");
  for (const Option& option : option_table())
    EXPECT_THAT(o.source_of(option.name), StartsWith(option.variable()));
}

TEST_F(ResolveOptions, EveryOptionCanBeSetByTheProgram) {
  RuntimeOptions p;
  p.budget_bytes = kMiB, p.policy = "fifo", p.page_bytes = 8192, p.keepers = 2;
  p.adapts_budget = true, p.budget_min_bytes = kMiB / 2, p.budget_max_bytes = 2 * kMiB;
  p.prefetch_threads = 3, p.event_threads = 4, p.high_watermark = 90, p.low_watermark = 80;
  p.readahead_bytes = 1, p.wait_ms_max = 9, p.delivery = Delivery::kInThread;
  p.frames = FrameKind::kShared, p.on_error = OnError::kAbort, p.scratch_dir = "/y";
  p.fetch = Fetch::kPage, p.metrics_at_exit = "text", p.kernel = "5.15", p.learn_file = "l";
  p.buffer = "c", p.report_file = "r.json", p.event_batch = 1;
  p.checkpoint_every_ms = 10, p.checkpoint_pool = "versioned:q", p.checkpoint_keep = 1;
  const ResolvedOptions o = resolved(p);
  for (const Option& option : option_table())
    EXPECT_EQ(o.source_of(option.name), "the program") << option.name;
  EXPECT_EQ(o.budget_bytes, kMiB);
  EXPECT_TRUE(o.adapts_budget);
  EXPECT_EQ(o.budget_min_bytes, kMiB / 2);
  EXPECT_EQ(o.budget_max_bytes, 2 * kMiB);
  EXPECT_EQ(o.policy, "fifo");
  EXPECT_EQ(o.page_bytes, 8192u);
  EXPECT_EQ(o.wait_ms_max, 9u);
  EXPECT_EQ(o.event_batch, 1u);
  EXPECT_EQ(o.readahead_bytes, 1u);
  EXPECT_EQ(o.delivery, Delivery::kInThread);
  EXPECT_EQ(o.frames, FrameKind::kShared);
  EXPECT_EQ(o.on_error, OnError::kAbort);
  EXPECT_EQ(o.kernel, "5.15");
}

TEST_F(ResolveOptions, ABudgetCanBeAShareOfWhatIsAvailable) {
  environment_["OUTCORE_BUDGET"] = "25%";
  EXPECT_EQ(resolved().budget_bytes, 250 * kMiB);
  EXPECT_EQ(resolved().source_of("budget"),
            "OUTCORE_BUDGET: 25% of 1000 MiB available in cgroup /x");
  environment_["OUTCORE_BUDGET"] = "100%";
  EXPECT_EQ(resolved().budget_bytes, 1000 * kMiB);
}

TEST_F(ResolveOptions, ABadShareIsRefused) {
  for (const char* share :
       {"0%", "101%", "%", "-5%", "2.5%", "10%%", "x%", "99999999999999999999%"}) {
    environment_["OUTCORE_BUDGET"] = share;
    EXPECT_THAT(refusal(),
                AllOf(StartsWith(std::string("OUTCORE_BUDGET=") + share), HasSubstr("1% … 100%")));
  }
}

TEST_F(ResolveOptions, ABadVariableIsNamedWithItsValueAndARemedy) {
  environment_["OUTCORE_BUDGET"] = "4Q";
  EXPECT_THAT(refusal(), AllOf(StartsWith("OUTCORE_BUDGET=4Q: "), HasSubstr("k, M, G or T")));
}

TEST_F(ResolveOptions, AValueOutOfRangeIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"OUTCORE_PAGE", "3000"},
      {"OUTCORE_PAGE", "2k"},
      {"OUTCORE_PAGE", "32M"},
      {"OUTCORE_PAGE", "0"},
      {"OUTCORE_BUDGET", "0"},
      {"OUTCORE_BUDGET", "4095"},
      {"OUTCORE_BUDGET", "Auto"},
      {"OUTCORE_BUDGET_MIN", "0"},
      {"OUTCORE_BUDGET_MIN", "none"},
      {"OUTCORE_BUDGET_MIN", "25%"},
      {"OUTCORE_BUDGET_MAX", "0"},
      {"OUTCORE_BUDGET_MAX", "17T"},
      {"OUTCORE_BUDGET_MAX", "auto"},
      {"OUTCORE_KEEPERS", "0"},
      {"OUTCORE_KEEPERS", "257"},
      {"OUTCORE_EVENT_THREADS", "-1"},
      {"OUTCORE_EVENT_THREADS", "1.5"},
      {"OUTCORE_EVENT_BATCH", "0"},
      {"OUTCORE_EVENT_BATCH", "65"},
      {"OUTCORE_PREFETCH_THREADS", "4294967297"},
      {"OUTCORE_HIGH_WATERMARK", "101"},
      {"OUTCORE_LOW_WATERMARK", "0"},
      {"OUTCORE_READAHEAD", "2G"},
      {"OUTCORE_WAIT_MAX", "25h"},
      {"OUTCORE_WAIT_MAX", "2000min"},
      {"OUTCORE_WAIT_MAX", "s"},
      {"OUTCORE_DELIVERY", "fast"},
      {"OUTCORE_FRAMES", "Shared"},
      {"OUTCORE_ON_ERROR", "zeros"},
      {"OUTCORE_KERNEL", "7"},
      {"OUTCORE_WAIT_MAX", "18446744073709551615s"}};
  for (const auto& [name, value] : cases) {
    environment_ = {{name, value}};
    EXPECT_THAT(refusal(), StartsWith(std::string(name) + "=" + value + ": "));
  }
}

TEST_F(ResolveOptions, AMisspeltChoiceNamesTheNearest) {
  environment_["OUTCORE_DELIVERY"] = "inthread";
  EXPECT_EQ(
      refusal(),
      "OUTCORE_DELIVERY=inthread: 'inthread' is not one of auto, in-thread, messages or mprotect; "
      "did you mean 'in-thread'?");
}

TEST_F(ResolveOptions, AProgramsBadValueIsNamedByItsOption) {
  RuntimeOptions program;
  program.page_bytes = 3000;
  EXPECT_THAT(refusal(program),
              AllOf(StartsWith("page = 3000 (the program): "), HasSubstr("power of two")));
  program = {};
  program.delivery = static_cast<Delivery>(77);
  EXPECT_THAT(refusal(program), StartsWith("delivery (the program): "));
  program = {};
  program.scratch_dir = "";
  EXPECT_THAT(refusal(program), StartsWith("scratch_dir (the program): "));
}

TEST_F(ResolveOptions, ABadValueIsRefusedAlsoWhereAHigherPlaceHasAGoodOne) {
  environment_["OUTCORE_PAGE"] = "3000";
  RuntimeOptions program;
  program.page_bytes = 4096;
  EXPECT_THAT(refusal(program), StartsWith("OUTCORE_PAGE=3000: "));
}

TEST_F(ResolveOptions, WatermarksThatCrossAreNamedWithBothPlaces) {
  environment_["OUTCORE_LOW_WATERMARK"] = "98";
  EXPECT_EQ(
      refusal(),
      "low_watermark = 98 (OUTCORE_LOW_WATERMARK) must be below high_watermark = 98 (default): "
      "set both");
  environment_["OUTCORE_HIGH_WATERMARK"] = "99";
  EXPECT_EQ(resolved().high_watermark, 99u);
}

TEST_F(ResolveOptions, UnknownAndEmptyVariablesAreLeftAlone) {
  environment_ = {{"OUTCORE_BUGDET", "4Q"}, {"OUTCORE_KEEPERS", ""}, {"OUTCORE_CONFIG", "x"}};
  EXPECT_EQ(resolved().keepers, 1u);
}

TEST_F(ResolveOptions, TheConfigFileTakesTextAndWholeNumbers) {
  config("# comment\nbudget = \"64M\"\n\npage = 8192\npolicy = 'fifo'\n");
  const ResolvedOptions o = resolved();
  EXPECT_EQ(o.budget_bytes, 64 * kMiB);
  EXPECT_EQ(o.page_bytes, 8192u);
  EXPECT_EQ(o.policy, "fifo");
  EXPECT_EQ(o.source_of("page"), config_ + ":4");
}

TEST_F(ResolveOptions, AnUnknownNameInTheConfigFileNamesLineAndNearest) {
  config("keepers = 2\nbugdet = \"4G\"\n");
  EXPECT_EQ(refusal(), config_ + ":2: there is no option 'bugdet'; did you mean 'budget'?");
}

TEST_F(ResolveOptions, TheFirstMistakeOfTheConfigFileIsTold) {
  config("zzzzzzzzzzz = 1\naaaaaaaaaaa = 1\n");
  EXPECT_THAT(refusal(), StartsWith(config_ + ":1: there is no option 'zzzzzzzzzzz'; "));
}

TEST_F(ResolveOptions, BadConfigFilesAreNamedWithTheLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"keepers = 2\nbudget = \n", ":2: this is not TOML"},
      {"kernel = 6.10\n", ":1: the value of 'kernel' is neither text nor a whole number"},
      {"keepers = true\n", ":1: the value of 'keepers'"},
      {"[runtime]\nkeepers = 2\n", ":1: 'runtime' is a table"},
      {"keepers = [1]\n", "'keepers' is a table or a list"},
      {"keepers = 300\n", ":1: keepers = 300: "},
      {"keepers = -1\n", ":1: keepers = -1: "},
      {"keepers = 1\nkeepers = 2\n", "this is not TOML"},
      {"policy = \"\"\n", ":1: policy is empty"}};
  for (const auto& [text, message] : cases) {
    config(text);
    EXPECT_THAT(refusal(), AllOf(StartsWith(config_), HasSubstr(message))) << text;
  }
}

TEST_F(ResolveOptions, AConfigFileThatCannotBeReadIsAnError) {
  config_ = folder_ + "/absent.toml";
  Result<ResolvedOptions> absent = resolve();
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.code(), ENOENT);
  EXPECT_THAT(absent.message(), AllOf(HasSubstr(config_), HasSubstr("OUTCORE_CONFIG")));
  config_ = folder_;
  EXPECT_EQ(resolve().code(), EISDIR);
}

TEST_F(ResolveOptions, IgnoringTheEnvironmentIgnoresTheConfigFileToo) {
  config("nonsense\n");
  environment_ = {{"OUTCORE_KEEPERS", "nonsense"}, {"TMPDIR", "/my/tmp"}};
  RuntimeOptions program;
  program.ignore_environment = true;
  EXPECT_EQ(resolved(program).keepers, 1u);
  EXPECT_EQ(resolved(program).scratch_dir, "/my/tmp");
}

TEST_F(ResolveOptions, DescribeTellsNameValueAndPlaceOfEveryOption) {
  environment_["OUTCORE_PAGE"] = "64k";
  const std::string lines = resolved().describe();
  EXPECT_THAT(lines, HasSubstr("page = 64 KiB (OUTCORE_PAGE)\n"));
  EXPECT_THAT(lines, HasSubstr("wait_max = 30s (default)\n"));
  EXPECT_EQ(static_cast<size_t>(std::count(lines.begin(), lines.end(), '\n')),
            option_table().size());
}

TEST_F(ResolveOptions, TheProcessesOwnEnvironmentIsRead) {
  ASSERT_EQ(::setenv("OUTCORE_CONFIG", "", 1), 0);
  ASSERT_EQ(::setenv("OUTCORE_KEEPERS", "9", 1), 0);
  Result<ResolvedOptions> own = resolve_options(RuntimeOptions{});
  ::unsetenv("OUTCORE_KEEPERS");
  ::unsetenv("OUTCORE_CONFIG");
  ASSERT_TRUE(own.ok()) << own.message();
  EXPECT_EQ(own->keepers, 9u);
}

TEST(StartChecks, AreOfWhatTheProgramOrTheEnvironmentSetsAndNotOfAConfigFile) {
  const scene::Folder folder;
  const std::string config = folder.path() + "/config", missing = folder.path() + "/missing";
  std::ofstream(config) << "scratch_dir = \"" << missing << "\"\n";
  ASSERT_EQ(::setenv("OUTCORE_CONFIG", config.c_str(), 1), 0);
  const Status by_file = Runtime::check_start();
  const Status by_program = Runtime::check_start({.scratch_dir = missing});
  ASSERT_EQ(::setenv("OUTCORE_SCRATCH_DIR", missing.c_str(), 1), 0);
  const Status by_environment = Runtime::check_start();
  ::unsetenv("OUTCORE_SCRATCH_DIR");
  ::unsetenv("OUTCORE_CONFIG");
  EXPECT_TRUE(by_file.ok()) << by_file.message();
  for (const Status& refused : {by_program, by_environment}) {
    EXPECT_EQ(refused.code(), ENOENT);
    EXPECT_THAT(refused.message(), AllOf(StartsWith("scratch_dir ("), HasSubstr(missing)));
  }
}

}  // namespace
}  // namespace outcore::runtime
