// Programs of bench/static, which are compiled by occ++: their answers, in a quarter of their data,
// are right: of NPB those that are published; on this machine, and in the memory of two servers.
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "far/tests/redis/test_servers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heaps/tests/occ/occ_test.h"
#include "outcore/store.h"

namespace outcore::occ {
namespace {

using redis_test::TestServers;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr uint64_t kMiB = uint64_t{1} << 20;

class OccStaticPrograms : public OccTest {
 protected:
  // NAME-CLASS and NAME-CLASS-plain, in the test's folder.
  Outcome build(const std::string& name, const std::string& nas_class) const {
    const std::string compiler = is_there("ccache") ? "'ccache c++'" : "c++";
    return outcome_of("OCC=" + command() + "++ OCC_CXX=" + compiler + " CXX=" + compiler + " " +
                      scene::source_folder() + "/bench/static/build.sh " + nas_class + " " + dir() +
                      " " + name);
  }
  // The line of the program; null where it has failed.
  cli::Json line_of(const std::string& program, const std::string& settings) const {
    const Outcome outcome = run_made(program, settings);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    const auto lines = outcome.lines();
    return lines.size() == 1 ? lines[0] : cli::Json();
  }
  uint64_t bytes_of(const std::string& program) const {
    return std::strtoull(run_made(program + "-plain --size", "A=1").out.c_str(), nullptr, 10);
  }
  static uint64_t count_in(const cli::Json& line, const char* key) {
    return line[key].as<uint64_t>().value_or(0);
  }
  // The answer is right in a quarter of the data and in plain memory, or the program would fail.
  void expect_right(const std::string& name, const std::string& nas_class,
                    const std::string& words = "") const {
    const Outcome made = build(name, nas_class);
    ASSERT_EQ(made.status, 0) << made.err;
    EXPECT_EQ(made.err, "");
    const std::string program = name + "-" + nas_class;
    const uint64_t data_bytes = bytes_of(program);
    ASSERT_GT(data_bytes, 0U);
    const cli::Json plain = line_of(program + "-plain " + words, "OUTCORE_BUDGET=nonsense");
    EXPECT_EQ(plain["memory"].as<std::string>().value_or(""), "dram");
    const cli::Json far =
        line_of(program + " " + words, "OUTCORE_BUDGET=" + std::to_string(data_bytes / 4));
    EXPECT_EQ(far["memory"].as<std::string>().value_or(""), "outcore");
    EXPECT_EQ(count_in(far, "data_bytes"), data_bytes);
    EXPECT_LE(count_in(far, "budget_bytes"), data_bytes / 4);
    EXPECT_GT(count_in(far, "fills"), 0U);
    EXPECT_GT(count_in(far, "read_bytes"), data_bytes / 4) << "it did not leave the budget";
  }
  // The same in the memory of two servers: of the first, somebody else has reserved nearly all.
  // REQUIRES: it is built.
  void expect_right_on_servers(const std::string& program, const std::string& words) const {
    if (!TestServers::is_installed())
      GTEST_SKIP() << "redis-server is not installed: tools/install_packages.sh engines";
    const uint64_t data_bytes = bytes_of(program);
    redis_test::ServerOptions limited;
    limited.maxmemory = "64mb";
    TestServers first(limited), second(limited);
    const std::string servers = "far://:open%20sesame@" + first.address(0);
    OpenOptions reserve;
    reserve.is_writable = true;
    reserve.may_create = true;
    reserve.size_bytes = 44 * kMiB;  // of 47: a server keeps something beside each byte
    const auto reserved = open_store(servers, reserve);
    ASSERT_TRUE(reserved.ok()) << reserved.message();
    ASSERT_GT(data_bytes, 5 * kMiB) << "the first server has room for all of it";
    const cli::Json line = line_of(
        program + " " + words, "OUTCORE_BUDGET=" + std::to_string(data_bytes / 4) +
                                   " OUTCORE_STORE='" + servers + "," + second.address(0) + "'");
    EXPECT_EQ(line["checked"].as<bool>().value_or(false), true);
    for (TestServers* server : {&first, &second})
      EXPECT_GT(std::stoull("0" + server->info(0, "total_net_input_bytes")), kMiB);
  }
  // What is built takes no other words than its own. `too_few`: passes.
  void expect_refused(const std::string& name, const std::string& nas_class,
                      const std::string& too_few) const {
    const std::vector<std::string> wrong = {
        "--passes",    "--passes " + too_few, "--passes 0",  "--passes 101",
        "--passes -1", "--passes 2x",         "--passes ''", "--passes 2 2",
        "--size 2",    "--nothing",           "''"};
    for (const char* kind : {"", "-plain"})
      for (const std::string& words : wrong) {
        const Outcome outcome =
            run_made(name + "-" + nas_class + kind + " " + words, "OUTCORE_BUDGET=1M");
        EXPECT_EQ(outcome.status, 2) << words;
        EXPECT_EQ(outcome.out, "") << words;
        EXPECT_EQ(outcome.error_lines(), 1U) << words << ": " << outcome.err;
        EXPECT_THAT(outcome.err, StartsWith(name + ": '")) << words;
      }
  }
};

// Each is built once a test, which takes seconds where ccache does not know it.
// Of class S a quarter of the keys' bytes would be less than the least budget.
TEST_F(OccStaticPrograms, RankKeysInAQuarterOfTheirBytesAndTakeNoWrongWords) {
  expect_right("is", "W", "--passes 2");
  expect_refused("is", "W", "0");
  expect_right_on_servers("is-W", "--passes 2");
}

TEST_F(OccStaticPrograms, FindZetaInAQuarterOfTheMatrix) {
  expect_right("cg", "W", "--passes 1");
  expect_right_on_servers("cg-W", "--passes 1");
}

// Waves that fade otherwise than NPB's, by another exp(), give other checksums than the published.
TEST_F(OccStaticPrograms, TransformAGridInAQuarterOfItsBytesAndFindAWrongOne) {
  expect_right("ft", "S", "--passes 2");
  std::ofstream(path("wrong.c")) << "double exp(double x) { return 1 + x; }\n";
  ASSERT_EQ(
      outcome_of("cd " + dir() + " && cc -shared -fPIC -fno-builtin wrong.c -o wrong.so").status,
      0);
  for (const char* program : {"ft-S", "ft-S-plain"}) {
    const Outcome outcome = run_made(std::string(program) + " --passes 1",
                                     "OUTCORE_BUDGET=16M LD_PRELOAD=" + path("wrong.so"));
    EXPECT_EQ(outcome.status, 1) << program;
    EXPECT_EQ(outcome.out, "") << program;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith("ft: the last state is what the first must become, and 1 "
                                        "checksums are not"))
        << program;
  }
  expect_right_on_servers("ft-S", "--passes 2");
}

TEST_F(OccStaticPrograms, StreamInAQuarterOfTheirBytesAndTellTheRateOfEachKernel) {
  expect_right("stream", "W", "--passes 3");
  for (const char* program : {"stream-W", "stream-W-plain"}) {
    const cli::Json line = line_of(std::string(program) + " --passes 3", "OUTCORE_BUDGET=6M");
    for (const std::string kernel : {"copy", "scale", "add", "triad"}) {
      EXPECT_GT(line[kernel + "_mean_mib_s"].as<double>().value_or(0), 0) << kernel;
      EXPECT_GE(line[kernel + "_mib_s"].as<double>().value_or(0) * 1.000001,
                line[kernel + "_mean_mib_s"].as<double>().value_or(0))
          << kernel;
    }
  }
  // The first pass is not counted.
  expect_refused("stream", "W", "1");
  expect_right_on_servers("stream-W", "--passes 3");
}

TEST_F(OccStaticPrograms, SolvePoissonsEquationInAQuarterOfTheirArrays) {
  expect_right("himeno", "W", "--passes 2");
  expect_refused("himeno", "W", "0");
  expect_right_on_servers("himeno-W", "--passes 2");
}

TEST_F(OccStaticPrograms, OfWrongClassesAndNamesAreNotBuilt) {
  EXPECT_EQ(build("is", "X").status, 2);
  const Outcome outcome = build("mg", "S");
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("'mg' is not a program"));
  EXPECT_THAT(outcome.err, EndsWith("\n"));
}

}  // namespace
}  // namespace outcore::occ
