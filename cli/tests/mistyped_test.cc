// What is mistyped is named, with what was perhaps meant: options, variables, lines of the config
// file. Nothing runs before.
#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

struct Typo {
  const char *command, *word, *meant;
};

class Mistyped : public CommandTest, public testing::WithParamInterface<Typo> {};

TEST_P(Mistyped, OptionsAreNamedWithTheNearest) {
  const Outcome outcome = run(GetParam().command);
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_TRUE(outcome.out.empty()) << outcome.out;
  const std::string says =
      std::string("outcore: '") + GetParam().word + "' is not an option of outcore ";
  EXPECT_EQ(outcome.err.rfind(says, 0), 0U) << outcome.err;
  EXPECT_NE(outcome.err.find(std::string("did you mean ") + GetParam().meant + "?"),
            std::string::npos)
      << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(
    Options, Mistyped,
    testing::Values(Typo{"run --budgt 1G -- echo ran", "--budgt", "--budget"},
                    Typo{"run --budgt=1G echo ran", "--budgt", "--budget"},
                    Typo{"run --budgt 1G echo ran", "--budgt", "--budget"},
                    Typo{"run --budget 1G --aloc 1M -- echo ran", "--aloc", "--alloc"},
                    Typo{"run --quite echo ran", "--quite", "--quiet"},
                    Typo{"check --jsn ls", "--jsn", "--json"},
                    Typo{"info --metrcs", "--metrcs", "--metrics"},
                    Typo{"residency f --jso", "--jso", "--json"},
                    Typo{"warm f --sise 1G", "--sise", "--size"},
                    Typo{"heap check --jsno x", "--jsno", "--json"},
                    Typo{"store put --replce a b", "--replce", "--replace"},
                    Typo{"checkpoint ls --jsno versioned:x", "--jsno", "--json"},
                    Typo{"arrays export x.oca --too u.npy", "--too", "--to"},
                    Typo{"arrays verify x.oca --jsno", "--jsno", "--json"},
                    Typo{"bench sort --sise 1G", "--sise", "--size"},
                    Typo{"bench table --onyl sort", "--onyl", "--only"},
                    Typo{"demo --sise 1G", "--sise", "--size"}));

class BadConfig : public CommandTest, public testing::WithParamInterface<const char*> {};

TEST_P(BadConfig, IsOneLineWithTheLineAndTheRemedyBeforeAnythingElse) {
  std::ofstream(path("bad.toml")) << "budget = \"64M\"\nbugdet = \"4G\"\n";
  const Outcome outcome = outcome_of("cd " + dir() + " && OUTCORE_CONFIG=bad.toml " +
                                     command_path() + " " + GetParam());
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  EXPECT_EQ(outcome.err,
            "outcore: bad.toml:2: there is no option 'bugdet'; did you mean 'budget'?\n");
  EXPECT_TRUE(outcome.out.empty()) << outcome.out;
}

INSTANTIATE_TEST_SUITE_P(Commands, BadConfig,
                         testing::Values("info", "info --json", "info --metrics", "info --options",
                                         "run -q -- echo ran", "check ls", "residency bad.toml",
                                         "heap check x", "store ls redis://127.0.0.1:1/",
                                         "checkpoint ls versioned:x", "arrays ls x.oca",
                                         "bench sort --size 1M", "demo"));

class Environment : public CommandTest {
 protected:
  Outcome with(const std::string& variables, const std::string& arguments) const {
    return outcome_of(variables + " " + command_path() + " " + arguments);
  }
};

TEST_F(Environment, AConfigFileThatIsNotThereOrIsNoTomlIsTold) {
  const Outcome absent = with("OUTCORE_CONFIG=/no/such.toml", "info");
  EXPECT_EQ(absent.status, 1) << absent.err;
  EXPECT_NE(absent.err.find("/no/such.toml: No such file"), std::string::npos) << absent.err;
  std::ofstream(path("bad.toml")) << "budget = \"64M\"\npage = = 4\n";
  const Outcome broken = with("OUTCORE_CONFIG=" + path("bad.toml"), "info");
  EXPECT_EQ(broken.status, 2) << broken.err;
  EXPECT_EQ(broken.error_lines(), 1U) << broken.err;
  EXPECT_NE(broken.err.find("bad.toml:2: "), std::string::npos) << broken.err;
}

TEST_F(Environment, InfoAlsoTellsWhatIsWrongInTheUsersOwnConfigFile) {
  std::filesystem::create_directory(path(".config"));
  std::ofstream(path(".config/outcore.toml")) << "keepers = 0\n";
  const Outcome info = with("HOME=" + dir(), "info");
  EXPECT_EQ(info.status, 2) << info.err;
  EXPECT_NE(info.err.find("outcore.toml:1: keepers = 0"), std::string::npos) << info.err;
  EXPECT_EQ(with("HOME=" + dir(), "check ls").err, "");
}

TEST_F(Environment, AnUnknownVariableIsNamedOnceWithTheNearestAndIsNoError) {
  const std::string line =
      "outcore: the variable OUTCORE_BUDGT is not known, and ignored; did you mean "
      "OUTCORE_BUDGET?\n";
  for (const char* command : {"info", "info --options", "check ls"}) {
    const Outcome outcome = with("OUTCORE_BUDGT=1G", command);
    EXPECT_EQ(outcome.status, 0) << command;
    EXPECT_EQ(outcome.err, line) << command;
  }
  Outcome run =
      with("OUTCORE_BUDGT=1G OUTCORE_BUDGET=64M", "run -- " + command_path() + " info --options");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.err.rfind(line, 0), 0U) << run.err;
  EXPECT_EQ(run.err.find("OUTCORE_BUDGT", line.size()), std::string::npos) << run.err;
  EXPECT_EQ(with("OUTCORE_BUDGT=1G", "run -q -- true").err, "");
}

// Another word is no misspelling; what runs tell their processes is nobody's to set.
TEST_F(Environment, OnlyWhatIsNearIsSuggested) {
  for (const char* name : {"OUTCORE_FOO", "OUTCORE_RUN_ROOM", "OUTCORE_RUN_WINDOWS"}) {
    const Outcome outcome = with(std::string(name) + "=1", "check ls");
    EXPECT_EQ(outcome.err.find("did you mean"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(name), std::string::npos) << outcome.err;
  }
}

TEST_F(Environment, AConfigFileIsToldHowToWriteATextWithoutQuotes) {
  for (const char* value : {"4G", "foo"}) {
    std::ofstream(path("plain.toml")) << "# mine\nbudget = " << value << "  # of memory\n";
    const Outcome outcome = with("OUTCORE_CONFIG=" + path("plain.toml"), "info");
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_NE(outcome.err.find("plain.toml:2: "), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(std::string("; write budget = \"") + value + "\"\n"),
              std::string::npos)
        << outcome.err;
  }
}

TEST_F(Environment, KnownVariablesAndThoseOfServicesAreNothingToTell) {
  const Outcome outcome = with(
      "OUTCORE_BUDGET=64M OUTCORE_RUN_MIN_SIZE=1M OUTCORE_POOL= OUTCORE_HOSTS= OUTCORE_STORE= "
      "OUTCORE_BENCH_DIR=/tmp OUTCORE_PORT=tcp://10.0.0.1:80 OUTCORE_SERVICE_HOST=10.0.0.1 "
      "OUTCORE_DB_PORT_6379_TCP_ADDR=10.0.0.1 OUTCORE_DB_SERVICE_PORT=1",
      "info");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
}

}  // namespace
}  // namespace outcore::cli
