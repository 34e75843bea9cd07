// Benchmarks of far memory: stream and jacobi, wherever they run, and data on a real server.
#include "cli/tests/disturbed_bench.h"
#include "far/tests/redis/test_servers.h"

namespace outcore::cli {
namespace {

using redis_test::TestServers;

class FarBench : public DisturbedBench {};

TEST_F(FarBench, StreamTellsTheRateOfEachKernel) {
  const Outcome outcome = bench("stream --size 3M --passes 3 --memory dram,outcore --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const auto& line : outcome.lines()) {
    EXPECT_EQ(line["unit"], "MiB/s");
    EXPECT_EQ(line["variant"], "3 passes");
    for (const std::string kernel : {"copy", "scale", "add", "triad"}) {
      EXPECT_GT(line[kernel + "_mib_s"].as<double>().value(), 0);
      EXPECT_LE(line[kernel + "_mean_mib_s"].as<double>().value(),
                line[kernel + "_mib_s"].as<double>().value() * 1.000001);
    }
  }
  EXPECT_GE(outcome.lines().back()["longest_pause_seconds"].as<double>().value(), 0);
}

TEST_F(FarBench, JacobiHasTheSameAnswerInEveryMemoryAndWithAnyThreads) {
  std::vector<Json> lines;
  for (const char* threads : {"1", "3"}) {
    const Outcome outcome = bench("jacobi --size 2M --budget 50% --json --memory dram,outcore " +
                                  std::string("--threads ") + threads);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    for (const auto& line : outcome.lines()) lines.push_back(line);
  }
  ASSERT_EQ(lines.size(), 4U);
  for (const auto& line : lines) {
    for (const char* key : {"gosa", "p_hash", "grid"}) {
      EXPECT_TRUE(line.contains(key)) << key;
      EXPECT_EQ(line[key], lines[0][key]);
    }
    EXPECT_GT(line["mflops"].as<double>().value(), 0);
  }
}

TEST_F(FarBench, AWrongAnswerOfStreamIsFound) {
  const Outcome outcome = disturbed("stream --size 3M --passes 100");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("not what they must be"), std::string::npos) << outcome.err;
}

TEST_F(FarBench, AWrongAnswerOfJacobiIsFound) {
  const Outcome outcome = disturbed("jacobi --size 4M --passes 30");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("gosa"), std::string::npos) << outcome.err;
}

TEST_F(FarBench, ABudgetMayBeAShareOfTheData) {
  const Outcome outcome = bench("stream --size 12M --budget 12.5% --memory mmap-random --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.lines().front()["budget_bytes"], (12 << 20) / 8);
  for (const char* wrong : {"stream --budget 0%", "stream --budget x%", "scan --budget 8x",
                            "bfs --budget 8%", "components --budget 8%", "pagerank --budget 8%",
                            "stream --passes 1", "jacobi --size 4k"}) {
    const Outcome refused = bench(wrong);
    EXPECT_EQ(refused.status, 2) << wrong;
    EXPECT_EQ(refused.error_lines(), 1U) << refused.err;
  }
}

class FarBenchOnServer : public FarBench {
 protected:
  void SetUp() override {
    FarBench::SetUp();
    if (!TestServers::is_installed())
      GTEST_SKIP() << "redis-server is not installed: tools/install_packages.sh engines";
    servers_ = std::make_unique<TestServers>();
  }
  std::string store(const std::string& name) const {
    return " --memory outcore --store '" + servers_->uri(name, "replicas=0") + "'";
  }
  std::string names() const {
    return run("store ls --json '" + servers_->uri("", "replicas=0") + "'").out;
  }
  std::unique_ptr<TestServers> servers_;
};

TEST_F(FarBenchOnServer, EveryWorkIsVerifiedAndLeavesNothing) {
  for (const char* work :
       {"stream --size 3M --passes 3", "jacobi --size 2M", "sort --size 2M", "scan --size 2M",
        "random-io --size 4M --touches 2000 --write-percent 50",
        "map-lookup --size 2M --touches 500", "images --size 2M --touches 50", "matmul --size 2M",
        "is --size 2M", "cg --size 2M --passes 1", "ft --size 2M --passes 2",
        "kmers --size 2M --reads 100",
        "kmers --size 2M --reads 100 --index two-level --pin-top --prefetch-lists",
        "ycsb --mix A --size 2M --touches 200", "ycsb --mix E --size 2M --touches 20"}) {
    const Outcome outcome =
        bench(std::string(work) + " --budget 50% --threads 2 --repeat 2 --json" + store("data"));
    ASSERT_EQ(outcome.status, 0) << work << ": " << outcome.err;
    for (const auto& line : outcome.lines()) {
      EXPECT_EQ(line["checked"], true);
      EXPECT_EQ(line["device"], "network");
      EXPECT_EQ(line["store"].as<std::string>().value().find("sesame"), std::string::npos);
    }
    EXPECT_EQ(names(), "{\"stores\":[]}\n") << work;
  }
}

TEST_F(FarBenchOnServer, AStoreThatIsThereIsNeverOverwrittenUnlessAsked) {
  ASSERT_EQ(bench("scan --size 1M --keep" + store("kept")).status, 0);
  EXPECT_NE(names().find("kept"), std::string::npos);
  for (const char* work : {"scan --size 1M", "stream --size 1M"}) {
    const Outcome refused = bench(work + store("kept"));
    EXPECT_EQ(refused.status, 1);
    EXPECT_EQ(refused.error_lines(), 1U) << refused.err;
    EXPECT_NE(refused.err.find("--overwrite"), std::string::npos) << refused.err;
    EXPECT_EQ(refused.err.find("sesame"), std::string::npos) << refused.err;
  }
  EXPECT_NE(names().find("kept"), std::string::npos);
  EXPECT_EQ(bench("stream --size 1M --overwrite" + store("kept")).status, 0);
  EXPECT_EQ(names().find("kept"), std::string::npos);
}

TEST_F(FarBenchOnServer, RivalsThatCannotUseItAreToldSo) {
  const std::string uri = "'" + servers_->uri("x", "replicas=0") + "'";
  for (const std::string& words :
       {"scan --size 1M --memory mmap --store " + uri, "bfs --memory outcore --store " + uri}) {
    const Outcome refused = bench(words);
    EXPECT_EQ(refused.status, 2);
    EXPECT_EQ(refused.error_lines(), 1U) << refused.err;
    EXPECT_EQ(refused.err.find("sesame"), std::string::npos) << refused.err;
  }
}

}  // namespace
}  // namespace outcore::cli
