// Recordings from end to end: what a runtime with the option `report` leaves in its file.
#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <random>

#include "core/base/json.h"
#include "core/os/kernel_features.h"
#include "core/recording/recorder.h"
#include "core/tests/conformance/scene.h"
#include "core/tests/published/child.h"
#include "core/tests/recording/heat_cells.h"

namespace outcore {
namespace {

using namespace recording;

using namespace scene;
using base::Json;

std::vector<Json> records_in(const std::string& path) {
  std::ifstream file(path);
  std::vector<Json> all;
  for (std::string line; std::getline(file, line);) {
    const Result<Json> record = Json::parse(line);
    EXPECT_TRUE(record.ok()) << line.substr(0, 200);
    if (record) all.push_back(record.value());
  }
  return all;
}

class Recording : public testing::Test {
 protected:
  Recording() {
    write_file(folder_ / "a", pattern(2 * kMiB));
    write_file(folder_ / "b", pattern(kMiB));
  }
  RuntimeOptions options(uint64_t budget_bytes = kMiB) const {
    RuntimeOptions options = options_with(budget_bytes);
    options.report_file = report_;
    options.fetch = Fetch::kPage;
    options.readahead_bytes = 0;
    return options;
  }
  const Json& file_named(const Json& record, const std::string& end) const {
    static const Json none;
    for (const Json& file : record["files"])
      if (file.value("uri", "").ends_with(end)) return file;
    ADD_FAILURE() << "no file " << end << " in the record";
    return none;
  }
  // Touches pages in an order that no reader ahead guesses.
  static void touch_at_random(const Region& region, int touches, uint64_t seed = 1) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < touches; ++i) {
      const uint64_t at = random() % region.size_bytes();
      ASSERT_EQ(region.data()[at], byte_at(at));
    }
  }
  const Folder folder_;
  const std::string report_ = folder_ / "run.json";
};

void expect_counters(const Json& json, const Counters& counters) {
#define OUTCORE_SAME(name, unit, help) \
  EXPECT_EQ(json.value(#name, UINT64_MAX), counters.name) << #name;
  OUTCORE_COUNTERS(OUTCORE_SAME)
#undef OUTCORE_SAME
}

uint64_t sum_of_files(const Json& record, const char* counter) {
  uint64_t sum = 0;
  for (const Json& file : record["files"]) sum += file["counters"].value(counter, uint64_t{0});
  return sum;
}

double total(const Json& values) {
  double sum = 0;
  for (const Json& value : values) sum += value.as<double>().value_or(NAN);
  return sum;
}
TEST_F(Recording, IsOneLineThatAgreesWithTheMetrics) {
  Metrics last;
  {
    Runtime runtime = Runtime::start(options()).value();
    const Region region = runtime.map(folder_ / "a").value();
    touch_at_random(region, 3000);
    last = runtime.metrics();
    ASSERT_GT(last.counters.refaults, 0u);
  }
  const std::vector<Json> records = records_in(report_);
  ASSERT_EQ(records.size(), 1u);
  const Json& record = records.front();
  EXPECT_EQ(record.value("format", ""), "outcore-run");
  EXPECT_EQ(record.value("version", uint64_t{0}), 1u);
  EXPECT_EQ(record["program"].value("pid", uint64_t{0}), static_cast<uint64_t>(::getpid()));
  EXPECT_EQ(record["counters"].value("faults", uint64_t{0}), last.counters.faults);
  EXPECT_EQ(record["counters"].value("fills", uint64_t{0}), last.counters.fills);
  EXPECT_EQ(record["counters"].value("read_bytes", uint64_t{0}), last.counters.read_bytes);
  EXPECT_EQ(record["counters"].value("refaults", uint64_t{0}), last.counters.refaults);
  EXPECT_EQ(record["gauges"].value("budget_bytes", uint64_t{0}), kMiB);
  for (const char* const name : {"faults", "fills", "evictions", "refaults", "read_bytes"})
    EXPECT_EQ(sum_of_files(record, name), record["counters"].value(name, uint64_t{0})) << name;
  // Of each step, of each cell and of each place it is the same.
  const auto fills = static_cast<double>(last.counters.fills);
  EXPECT_NEAR(total(record["timeline"]["fills"]), fills, 0.5);
  EXPECT_NEAR(total(record["timeline"]["read_bytes"]),
              static_cast<double>(last.counters.read_bytes), 0.5);
  ASSERT_EQ(record.value("lost_events", uint64_t{99}), 0u);
  ASSERT_EQ(record["miss_curve"].value("sampled_one_in", uint64_t{0}), 1u);
  EXPECT_FALSE(record["policy"].value("first", "").empty());
  EXPECT_EQ(record["policy"].value("last", ""), last.policies.at(0).policy);
  const Json& heat = file_named(record, "/a")["heat"];
  EXPECT_EQ(heat_total(heat, "fills"), fills);
  EXPECT_EQ(heat_total(heat, "refaults"), static_cast<double>(last.counters.refaults));
  EXPECT_EQ(record.value("sampled_faults", uint64_t{0}), last.counters.faults);
  const Json& first = record["miss_curve"]["points"][size_t{0}];
  EXPECT_NEAR(first.value("misses", 0.0), fills, 1);
  EXPECT_EQ(file_named(record, "/a").value("touched_bytes", uint64_t{0}),
            (last.counters.fills - last.counters.refaults) * 4096);
}

// Who waits for a page that is just leaving brings it in at once: it is told after its eviction.
TEST_F(Recording, TellsTheCommandOfItsRunAndWhereOptionsWereSet) {
  for (const char* const command : {"", "outcore run\n--budget 1M\n-- ./scan 'a b'"}) {
    ::setenv("OUTCORE_RUN_COMMAND", command, 1);
    { const Runtime runtime = Runtime::start(options()).value(); }
  }
  ::unsetenv("OUTCORE_RUN_COMMAND");
  const std::vector<Json> records = records_in(report_);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_TRUE(records[0]["program"]["run_command"].is_null());
  EXPECT_EQ(records[1]["program"]["run_command"],
            Json(std::vector<Json>{"outcore run", "--budget 1M", "-- ./scan 'a b'"}));
  EXPECT_EQ(records[0]["sources"].value("budget", ""), "the program");
  EXPECT_FALSE(records[0]["sources"].contains("keepers")) << "a default";
}

TEST_F(Recording, OfPagesThatComeInAgainAtOnceNoRefaultIsMissed) {
  constexpr unsigned kThreads = 4;
  Metrics last;
  {
    Runtime runtime = Runtime::start(options()).value();
    const Region region = runtime.map(folder_ / "a", {.size_bytes = kMiB + kMiB / 8}).value();
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] { touch_at_random(region, 1500, t); });
    for (std::thread& thread : threads) thread.join();
    last = runtime.metrics();
    ASSERT_GT(last.counters.refaults, 0u);
  }
  const Json record = records_in(report_).at(0);
  ASSERT_EQ(record.value("lost_events", uint64_t{99}), 0u);
  ASSERT_EQ(record["miss_curve"].value("sampled_one_in", uint64_t{0}), 1u);
  EXPECT_EQ(heat_total(file_named(record, "/a")["heat"], "refaults"),
            static_cast<double>(last.counters.refaults));
}

TEST_F(Recording, TheWholeDataWouldSaveAllRefaults) {
  {
    Runtime runtime = Runtime::start(options()).value();
    const Region region = runtime.map(folder_ / "a").value();
    touch_at_random(region, 6000);
  }
  const Json record = records_in(report_).at(0);
  const Json::Array& points = record["miss_curve"]["points"].items();
  ASSERT_GE(points.size(), 2u);
  const double first_touches =
      record["counters"].value("fills", 0.0) - record["counters"].value("refaults", 0.0);
  EXPECT_NEAR(points.back().value("misses", 0.0), first_touches, first_touches * 0.05);
  EXPECT_LE(points.back().value("budget_bytes", 0.0), 3.0 * kMiB);
}

// A loop larger than the budget misses at each touch if the oldest page leaves: all is seen.
TEST_F(Recording, ReuseDistancesOfALoopAreTheLoop) {
  constexpr uint64_t kLoop = 512;
  constexpr int kRounds = 3;
  RuntimeOptions with_fifo = options();
  with_fifo.policy = "fifo";
  {
    Runtime runtime = Runtime::start(with_fifo).value();
    const Region region = runtime.map(folder_ / "a").value();
    ASSERT_EQ(region.size_bytes(), kLoop * 4096);
    for (uint64_t i = 0; i < kLoop * kRounds; ++i)
      ASSERT_EQ(region.data()[i % kLoop * 4096], byte_at(i % kLoop * 4096));
  }
  const Json record = records_in(report_).at(0);
  ASSERT_EQ(record.value("lost_events", uint64_t{99}), 0u);
  EXPECT_EQ(record["reuse"].dump(),
            R"({"again":[0,0,0,0,0,0,0,0,0,1024],"first":512,"sampled_one_in":1})");
}

TEST_F(Recording, TwoRuntimesAppendALineEach) {
  for (const char* const name : {"a", "b"}) {
    Runtime runtime = Runtime::start(options()).value();
    touch_at_random(runtime.map(folder_ / name).value(), 100);
  }
  {
    Runtime one = Runtime::start(options()).value(), other = Runtime::start(options()).value();
    touch_at_random(one.map(folder_ / "a").value(), 100);
    touch_at_random(other.map(folder_ / "b").value(), 50);
  }
  const std::vector<Json> records = records_in(report_);
  ASSERT_EQ(records.size(), 4u);
  for (const Json& record : records) EXPECT_EQ(record["files"].size(), 1u);
  EXPECT_NE(records[2]["files"][size_t{0}].value("uri", ""),
            records[3]["files"][size_t{0}].value("uri", ""));
}

TEST_F(Recording, AStoreThatIsUnmappedInTheMiddleKeepsItsCounts) {
  Counters middle;
  {
    Runtime runtime = Runtime::start(options()).value();
    touch_at_random(runtime.map(folder_ / "a").value(), 500);
    middle = runtime.metrics().counters;
    touch_at_random(runtime.map(folder_ / "b").value(), 500);
  }
  const Json record = records_in(report_).at(0);
  ASSERT_EQ(record["files"].size(), 2u);
  expect_counters(file_named(record, "/a")["counters"], middle);
  EXPECT_EQ(sum_of_files(record, "faults"), record["counters"].value("faults", uint64_t{0}));
  EXPECT_EQ(file_named(record, "/a").value("resident_bytes", uint64_t{9}), 0u);
}

TEST_F(Recording, AStoreThatIsMappedAgainIsOneFileOfTheRecord) {
  uint64_t faults = 0;
  {
    Runtime runtime = Runtime::start(options()).value();
    for (int i = 0; i < 5; ++i) touch_at_random(runtime.map(folder_ / "a").value(), 100);
    faults = runtime.metrics().counters.faults;
  }
  const Json record = records_in(report_).at(0);
  ASSERT_EQ(record["files"].size(), 1u);
  EXPECT_EQ(record["files"][size_t{0}]["counters"].value("faults", uint64_t{0}), faults);
  EXPECT_EQ(heat_total(record["files"][size_t{0}]["heat"], "fills"),
            static_cast<double>(sum_of_files(record, "fills")));
}

// One slot, used by one file after the other: of the small file only its beginning is touched, of
// the large one only its end, so that an event of the one that is told of the other shows.
TEST_F(Recording, EventsOfOneFileAreNeverToldOfAnotherThatHasItsSlotNow) {
  double fills[2] = {};
  {
    Runtime runtime = Runtime::start(options()).value();
    for (int i = 0; i < 60; ++i) {
      const Region region = runtime.map(folder_ / (i % 2 == 0 ? "a" : "b")).value();
      const uint64_t at = i % 2 == 0 ? 2 * kMiB - 64 * kKiB : 0;
      for (uint64_t page = 0; page < 16; ++page)
        ASSERT_EQ(region.data()[at + page * 4096], byte_at(at + page * 4096));
      fills[i % 2] += static_cast<double>(runtime.metrics().regions[0].counters.fills);
    }
  }
  const Json record = records_in(report_).at(0);
  ASSERT_EQ(record["files"].size(), 2u);
  ASSERT_EQ(record.value("lost_events", uint64_t{99}), 0u);
  const Json &a = file_named(record, "/a"), &b = file_named(record, "/b");
  EXPECT_EQ(heat_total(a["heat"], "fills"), fills[0]);
  EXPECT_EQ(heat_total(b["heat"], "fills"), fills[1]);
  const auto offset_of = [](const Json& file, const HeatCell& cell) {
    const Json& map = file["heat"];
    return static_cast<double>(cell.row) / map.value("rows", 1.0) * map.value("bytes", 0.0);
  };
  const double size = a.value("size_bytes", 0.0);
  for (const HeatCell& cell : heat_cells(a["heat"], "fills"))
    EXPECT_GE(offset_of(a, cell), 0.9 * size) << "the end of the file";
  for (const HeatCell& cell : heat_cells(b["heat"], "fills"))
    EXPECT_LE(offset_of(b, cell), 0.1 * size) << "its beginning";
}

TEST_F(Recording, TheProgrammeMayEndByExitWithALiveRuntime) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the search for leaks at exit() ends the child with a status of its own";
#endif
  Child child([&](const auto& be_ready) {
    auto* const runtime = new Runtime(Runtime::start(options()).value());
    auto* const region = new Region(runtime->map(folder_ / "a").value());
    touch_at_random(*region, 200);
    be_ready();
    ::exit(7);
    return 0;
  });
  ASSERT_TRUE(child.is_ready());
  EXPECT_EQ(child.end(), 7);
  const std::vector<Json> records = records_in(report_);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_GT(records[0]["counters"].value("faults", uint64_t{0}), 100u);
  EXPECT_EQ(records[0]["files"].size(), 1u);
}

TEST_F(Recording, AForkedChildWritesNoRecordOfItsParents) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the search for leaks at exit() waits for threads that a child does not have";
#endif
  {
    Runtime runtime = Runtime::start(options()).value();
    const Region region = runtime.map(folder_ / "a").value();
    touch_at_random(region, 200);
    Child child([](const auto& be_ready) {
      be_ready();
      ::exit(3);
      return 0;
    });
    EXPECT_EQ(child.end(), 3);
    EXPECT_TRUE(records_in(report_).empty());
    touch_at_random(region, 200, 2);
  }
  ASSERT_EQ(records_in(report_).size(), 1u);
  EXPECT_GT(records_in(report_)[0]["counters"].value("faults", uint64_t{0}), 200u);
}

TEST_F(Recording, APathThatCannotBeIsRefusedAtTheStartInOneLine) {
  ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  for (const std::string& path :
       {folder_ / "missing/run.json", folder_.path(), folder_ / "a/run.json", folder_ / "fifo"}) {
    RuntimeOptions wrong = options();
    wrong.report_file = path;
    const Result<Runtime> runtime = Runtime::start(wrong);
    ASSERT_FALSE(runtime.ok()) << path;
    EXPECT_NE(runtime.message().find(path), std::string::npos) << runtime.message();
    EXPECT_EQ(runtime.message().find('\n'), std::string::npos) << runtime.message();
  }
}

TEST_F(Recording, NoneIsNoRecord) {
  RuntimeOptions none = options();
  none.report_file = "none";
  touch_at_random(Runtime::start(none).value().map(folder_ / "b").value(), 10);
  EXPECT_FALSE(std::filesystem::exists("none"));
}

// A page's events beyond what a run of this size has: the sample becomes smaller, and the sums of
// the sample stay near what was counted.
TEST_F(Recording, OfManyEventsASampleIsToldWhoseSumsAreNear) {
  Counters last;
  write_file(folder_ / "large", pattern(16 * kMiB));
  {
    Runtime runtime = Runtime::start(options()).value();
    const Region region = runtime.map(folder_ / "large").value();
    touch_at_random(region, 60'000);
    last = runtime.metrics().counters;
  }
  const Json record = records_in(report_).at(0);
  const auto fills = static_cast<double>(last.fills);
  const auto lost = static_cast<double>(record.value("lost_events", uint64_t{0}));
  const auto one_in =
      static_cast<double>(record["miss_curve"].value("sampled_one_in", uint64_t{1}));
  const double told = heat_total(file_named(record, "/large")["heat"], "fills");
  EXPECT_LE(told, fills * 1.1 + 100);
  EXPECT_GE(told, fills * 0.9 - 100 - lost * one_in);
  EXPECT_EQ(record["counters"].value("fills", uint64_t{0}), last.fills);
}

TEST_F(Recording, OfMessagesNoPlacesAreTold) {
  if (const auto kernel = os::detect_kernel_features("all"); !kernel.value().has_messages)
    GTEST_SKIP() << kernel.value().why_no_messages;
  RuntimeOptions by_messages = options();
  by_messages.delivery = Delivery::kMessages;
  {
    Runtime runtime = Runtime::start(by_messages).value();
    const Region region = runtime.map(folder_ / "a").value();
    touch_at_random(region, 500);
  }
  const Json record = records_in(report_).at(0);
  EXPECT_GT(record.value("sampled_faults", uint64_t{0}), 100u);
  EXPECT_TRUE(record["sites"].empty());
}

TEST_F(Recording, ThePlacesAreOfThisProgramAndTheirSharesAreNoMoreThanAll) {
  {
    Runtime runtime = Runtime::start(options()).value();
    const Region region = runtime.map(folder_ / "a").value();
    if (region.delivery() == Delivery::kMessages) GTEST_SKIP() << "messages have no address";
    touch_at_random(region, 3000);
  }
  const Json record = records_in(report_).at(0);
  double share = 0;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  ASSERT_FALSE(record["sites"].empty());
  EXPECT_EQ(record["sites"][size_t{0}].value("module", ""), self);
  for (const Json& site : record["sites"]) {
    share += site.value("share", 9.0);
    EXPECT_TRUE(site.value("file_uri", "").ends_with("/a")) << site.dump();
    const Json& p = site["pattern"];
    EXPECT_NEAR(p.value("sequential", 9.0) + p.value("strided", 9.0) + p.value("random", 9.0), 1,
                1e-9);
  }
  EXPECT_NEAR(share, 1, 1e-6);
}

}  // namespace
}  // namespace outcore
