// What the command says to those who ask for help, and to those who ask for what is not there.
#include "cli/tests/command_line.h"
#include "cli/text.h"
#include "outcore/store_kind.h"

namespace outcore::cli {
namespace {

class Usage : public CommandTest, public testing::WithParamInterface<const char*> {};

TEST_P(Usage, AnErrorIsOneLineWithARemedyAndStatus2) {
  const Outcome outcome = run(GetParam());
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_EQ(outcome.err.rfind("outcore: ", 0), 0U) << outcome.err;
  EXPECT_TRUE(outcome.err.find("use ") != std::string::npos ||
              outcome.err.find("must be") != std::string::npos ||
              outcome.err.find("say ") != std::string::npos ||
              outcome.err.find("leave ") != std::string::npos ||
              outcome.err.find("as in") != std::string::npos ||
              outcome.err.find("--help") != std::string::npos)
      << outcome.err;
  EXPECT_TRUE(outcome.out.empty()) << outcome.out;
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, Usage,
    testing::Values("", "nonsense", "--nonsense", "bench", "bench nonsense", "info --nonsense",
                    "info superfluous", "bench random-io --size", "bench random-io --size 12q",
                    "bench random-io --size=-4k", "bench random-io --size 1000",
                    "bench random-io --size 0", "bench random-io --page 5000",
                    "bench random-io --page 32M", "bench random-io --threads 0",
                    "bench random-io --threads many", "bench random-io --memory core",
                    "bench random-io --memory ,", "bench random-io --write-percent 101",
                    "bench random-io --distribution normal",
                    "bench random-io --distribution zipf:much", "bench random-io --repeat 0",
                    "bench random-io --store memory:", "bench random-io --store scratch:",
                    "bench random-io --memory mmap --store sparse:directory",
                    "bench sort --memory direct --size 1M", "bench bfs --scale 2",
                    "bench components --scale 2", "bench pagerank --passes 101", "bench compare",
                    "bench compare one", "bench ingest", "bench generate",
                    "bench generate nonsense out", "bench table --disk no-such-directory",
                    "demo --size 5", "demo --edges no-such-file", "arrays", "arrays nonsense",
                    "arrays ls", "arrays export a.oca", "arrays export a.oca --to a.csv",
                    "arrays show a.oca u --colors pink"));

class Help : public CommandTest, public testing::WithParamInterface<const char*> {};

TEST_P(Help, ShowsExamples) {
  const Outcome outcome = run(std::string(GetParam()) + " --help");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.out.find("Example"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("outcore " + std::string(GetParam())), std::string::npos);
  const bool is_of_all = outcome.out.find("kraken2") != std::string::npos;
  EXPECT_EQ(is_of_all, *GetParam() == 0) << "examples of the whole command";
  EXPECT_TRUE(outcome.err.empty()) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(
    Commands, Help,
    testing::Values("", "info", "bench", "bench random-io", "bench scan", "bench sort", "bench bfs",
                    "bench components", "bench pagerank", "bench graph-construct",
                    "bench three-parts", "bench images", "bench kmers", "bench ycsb",
                    "bench matmul", "bench is", "bench cg", "bench ft", "heap", "heap check",
                    "heap info", "bench compare", "bench ingest", "bench generate", "bench table",
                    "demo", "buffers", "arrays", "arrays ls", "arrays info", "arrays export",
                    "arrays import", "arrays show", "arrays verify"));

class Command : public CommandTest {};

TEST_F(Command, TellsItsVersion) {
  const Outcome outcome = run("--version");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out.rfind("outcore ", 0), 0U) << outcome.out;
}

TEST_F(Command, AWordThatIsNoWorkloadGetsTheListOfThem) {
  const Outcome outcome = run("bench nonsense");
  EXPECT_NE(outcome.err.find("random-io"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("nonsense"), std::string::npos) << outcome.err;
}

TEST_F(Command, InfoIsOneJsonObjectOnRequest) {
  const Outcome outcome = run("info --json --metrics --options");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto all = Json::parse_or_null(outcome.out);
  ASSERT_TRUE(all.is_object()) << outcome.out;
  EXPECT_FALSE(all["system"].empty());
  EXPECT_GT(all["default_budget"]["bytes"].as<uint64_t>().value(), 0U);
  EXPECT_FALSE(all["stores"].empty());
  EXPECT_FALSE(all["policies"].empty());
  EXPECT_FALSE(all["metrics"].empty());
  EXPECT_FALSE(all["options"].empty());
}

TEST_F(Command, InfoTellsTheBudgetAndWhy) {
  const Outcome outcome = run("info");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("Default budget: "), std::string::npos);
  EXPECT_NE(outcome.out.find("s3-fifo"), std::string::npos);
  EXPECT_NE(outcome.out.find("sparse:"), std::string::npos);
}

// In the words that the kinds themselves have, and no line wider than a terminal.
TEST_F(Command, InfoShowsEveryRegisteredKindOfStore) {
  const Outcome outcome = run("info");
  const std::string stores =
      outcome.out.substr(outcome.out.find("\nStores\n"),
                         outcome.out.find("\nPolicies\n") - outcome.out.find("\nStores\n"));
  for (const std::string& line : split(stores, '\n')) EXPECT_LE(line.size(), 100U) << line;
  const Json all = Json::parse_or_null(run("info --json").out);
  for (const StoreKind* kind : store_kinds()) {
    EXPECT_NE(stores.find("  " + kind->scheme + " "), std::string::npos) << kind->scheme;
    EXPECT_NE(stores.find("  " + kind->summary + "\n"), std::string::npos) << kind->scheme;
    bool is_there = false;
    for (const Json& store : all["stores"])
      is_there |= store.value("name", "") == kind->scheme &&
                  store.value("syntax", "") == kind->syntax &&
                  store.value("help", "") == kind->summary;
    EXPECT_TRUE(is_there) << kind->scheme;
  }
}

}  // namespace
}  // namespace outcore::cli
