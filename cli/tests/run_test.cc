// What a program that `outcore run` starts finds: its environment, files, signals and words; and
// what is refused before it starts. The library is any: here nothing is mapped.

#include <csignal>
#include <cstdlib>
#include <map>

#include "cli/tests/command_line.h"
#include "core/runtime/option_table.h"

namespace outcore::cli {
namespace {

class Run : public CommandTest {
 protected:
  // `before`: variables, as a shell takes them.
  Outcome start(const std::string& arguments, const std::string& before = "") const {
    return shell("OUTCORE_PRELOAD_LIBRARY=" + a_library() + " " + before + " " + command_path() +
                 " run " + arguments);
  }
  Outcome shell(const std::string& line) const { return run_lines("sh", line); }
  static std::map<std::string, std::string> variables(const Outcome& outcome) {
    std::map<std::string, std::string> all;
    std::istringstream text(outcome.out);
    for (std::string line; std::getline(text, line, '\0');)
      all[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
    return all;
  }
  static void expect_refusal(const Outcome& outcome, int status, const std::string& said) {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_EQ(outcome.err.rfind("outcore: ", 0), 0U) << outcome.err;
    EXPECT_NE(outcome.err.find(said), std::string::npos) << said << " in: " << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
};

// -- The environment --

TEST_F(Run, ToldNothingSetsWhatTheLibraryNeedsAndNoMore) {
  const Outcome outcome = start("env -0");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  auto all = variables(outcome);
  EXPECT_EQ(all["LD_PRELOAD"], a_library());
  EXPECT_EQ(all["OUTCORE_RUN_MIN_SIZE"], std::to_string(64 << 20));
  EXPECT_NE(all["OUTCORE_RUN_ROOT"], "");
  EXPECT_EQ(all["OUTCORE_RUN_REPORT"].rfind(all["OUTCORE_RUN_ROOT"] + ":", 0), 0U);
  for (const char* absent :
       {"OUTCORE_BUDGET", "OUTCORE_RUN_MAP", "OUTCORE_RUN_NOT_MAP", "OUTCORE_RUN_ALLOC",
        "OUTCORE_STORE", "OUTCORE_RUN_ALLOW_AIO", "OUTCORE_RUN_JSON", "OUTCORE_RUN_EXPLAIN",
        "OUTCORE_RUN_QUIET", "OUTCORE_RUN_KEEP_PRIVILEGES", "OUTCORE_RUN_SHARE_WRITES"})
    EXPECT_FALSE(all.contains(absent)) << absent;
}

TEST_F(Run, EveryOptionOfTheDoorBecomesItsVariable) {
  const Outcome outcome = start(
      "--map '[ab]' --map='*.k2d' --not-map /etc/x --min-size 1.5M --alloc 64k --allow-aio "
      "--keep-privileges --share-writes "
      "--store 'scratch:.?read_concurrency=2' --explain --quiet --json out.json -- env -0");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  auto all = variables(outcome);
  EXPECT_EQ(all["OUTCORE_RUN_MAP"], "[ab]\n*.k2d");
  EXPECT_EQ(all["OUTCORE_RUN_NOT_MAP"], "/etc/x");
  EXPECT_EQ(all["OUTCORE_RUN_MIN_SIZE"], "1572864");
  EXPECT_EQ(all["OUTCORE_RUN_ALLOC"], "65536");
  EXPECT_EQ(all["OUTCORE_STORE"].rfind("scratch:/", 0), 0U) << all["OUTCORE_STORE"];
  EXPECT_TRUE(all["OUTCORE_STORE"].ends_with("?read_concurrency=2")) << all["OUTCORE_STORE"];
  EXPECT_EQ(all["OUTCORE_RUN_ALLOW_AIO"], "1");
  EXPECT_EQ(all["OUTCORE_RUN_KEEP_PRIVILEGES"], "1");
  EXPECT_EQ(all["OUTCORE_RUN_SHARE_WRITES"], "1");
  EXPECT_EQ(all["OUTCORE_RUN_WINDOW"], "none: --keep-privileges");
  EXPECT_EQ(all["OUTCORE_RUN_EXPLAIN"], "1");
  EXPECT_EQ(all["OUTCORE_RUN_QUIET"], "1");
  EXPECT_TRUE(all["OUTCORE_RUN_JSON"].ends_with("/out.json"));
  EXPECT_EQ(all["OUTCORE_RUN_JSON"].front(), '/');
}

// Values that the runtime takes, none of them the default.
const std::map<std::string, std::string> kValues = {
    {"budget", "auto"},
    {"budget_min", "32M"},
    {"budget_max", "512M"},
    {"policy", "fifo"},
    {"page", "64k"},
    {"readahead", "0"},
    {"high_watermark", "90"},
    {"low_watermark", "80"},
    {"wait_max", "5s"},
    {"scratch_dir", "/tmp"},
    {"delivery", "messages"},
    {"frames", "shared"},
    {"on_error", "zero"},
    {"keepers", "2"},
    {"prefetch_threads", "3"},
    {"event_threads", "4"},
    {"event_batch", "5"},
    {"learn", "/var/tmp/l"},
    {"metrics_at_exit", "text"},
    {"kernel", "6.1"},
    {"checkpoint", "10min"},
    {"checkpoint_pool", "versioned:/var/tmp/outcore-of-a-test"},
    {"checkpoint_keep", "5"},
    {"fetch", "page"},
    {"buffer", "of-a-test"},
    {"report", "/var/tmp/r.json"}};

TEST_F(Run, EveryOptionOfTheRuntimeBecomesItsVariable) {
  std::string arguments;
  for (const runtime::Option& option : runtime::option_table()) {
    std::string flag = option.name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    ASSERT_TRUE(kValues.contains(option.name)) << option.name;
    arguments += "--" + flag + " " + kValues.at(option.name) + " ";
  }
  const Outcome outcome = start(arguments + "env -0");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");  // no metrics of the command's own
  auto all = variables(outcome);
  for (const runtime::Option& option : runtime::option_table())
    EXPECT_EQ(all[option.variable()], kValues.at(option.name)) << option.name;
  std::filesystem::remove_all("/var/tmp/outcore-of-a-test");  // the pool, which was made
}

TEST_F(Run, OptionsThatContradictEachOtherAreToldBeforeTheProgramBegins) {
  for (const char* const options : {"--budget auto --budget-min 10G --budget-max 1G",
                                    "--budget 1G --budget-min 32M", "--low-watermark 99"}) {
    const Outcome outcome = start(std::string(options) + " echo it began");
    EXPECT_EQ(outcome.status, 2) << options;
    EXPECT_EQ(outcome.out, "") << options;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.err.rfind("outcore: ", 0), 0U) << outcome.err;
    EXPECT_NE(outcome.err.find("(--"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("OUTCORE_"), std::string::npos) << outcome.err;
  }
}

TEST_F(Run, AnOptionWinsOverItsVariable) {
  const Outcome outcome =
      start("--budget 512M --min-size 0 --map new env -0",
            "OUTCORE_BUDGET=1G OUTCORE_RUN_MIN_SIZE=7M OUTCORE_RUN_MAP=old OUTCORE_RUN_ALLOC=1M "
            "OUTCORE_RUN_QUIET=0 OUTCORE_RUN_EXPLAIN=1 OUTCORE_PAGE=64k");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  auto all = variables(outcome);
  EXPECT_EQ(all["OUTCORE_BUDGET"], "512M");
  EXPECT_EQ(all["OUTCORE_RUN_MIN_SIZE"], "0");
  EXPECT_EQ(all["OUTCORE_RUN_MAP"], "new");
  EXPECT_EQ(all["OUTCORE_RUN_ALLOC"], "1048576");
  EXPECT_FALSE(all.contains("OUTCORE_RUN_QUIET"));
  EXPECT_EQ(all["OUTCORE_RUN_EXPLAIN"], "1");
  EXPECT_EQ(all["OUTCORE_PAGE"], "64k");
}

TEST_F(Run, TheLibraryComesBeforeOthersAndOnce) {
  const std::string other = "libdl.so.2";
  Outcome outcome = start("env -0", "LD_PRELOAD=" + other);
  EXPECT_EQ(variables(outcome)["LD_PRELOAD"], a_library() + ":" + other) << outcome.err;
  outcome = start("env -0", "LD_PRELOAD='" + other + " " + a_library() + "'");
  EXPECT_EQ(variables(outcome)["LD_PRELOAD"], other + " " + a_library()) << outcome.err;
  outcome = start(command_path() + " run env -0");
  EXPECT_EQ(variables(outcome)["LD_PRELOAD"], a_library()) << outcome.err;
}

// -- What is the program's own --

TEST_F(Run, TheProgramIsTheSameProcessAndItsStatusIsKept) {
  const Outcome outcome = start("sh -c 'echo $$ $OUTCORE_RUN_ROOT; exit 42'");
  EXPECT_EQ(outcome.status, 42) << outcome.err;
  std::istringstream words(outcome.out);
  std::string pid, root;
  words >> pid >> root;
  EXPECT_EQ(pid, root);
}

TEST_F(Run, ASignalThatEndsTheProgramIsSeen) {
  const Outcome outcome = start("sh -c 'kill -TERM $$'; echo $?");
  EXPECT_EQ(outcome.out, std::to_string(128 + SIGTERM) + "\n") << outcome.err;
}

TEST_F(Run, InputAndOutputPassThrough) {
  const Outcome outcome = shell("printf 'a\\0b' | OUTCORE_PRELOAD_LIBRARY=" + a_library() + " " +
                                command_path() + " run cat");
  EXPECT_EQ(outcome.out, std::string("a\0b", 3)) << outcome.err;
}

TEST_F(Run, WordsReachTheProgramAsTheyAre) {
  const std::string words = R"('[a,b]' '{}' '' '%%' --budget -q -- --help '-' 'two words')";
  const Outcome outcome = start("--quiet -- printf '%s|' " + words);
  EXPECT_EQ(outcome.out, "[a,b]|{}||%%|--budget|-q|--|--help|-|two words|") << outcome.err;
  EXPECT_EQ(start("printf '%s|' --budget x").out, "--budget|x|");
}

TEST_F(Run, OpenFilesAreTheOnesBeforeAndTheReport) {
  for (const char* options : {"", "--budget 64M "}) {
    const Outcome outcome = start(std::string(options) +
                                  "sh -c 'for f in /proc/$$/fd/*; do readlink $f; done | "
                                  "grep -E \"memfd|userfaultfd|io_uring|pidfd\"'");
    EXPECT_EQ(outcome.out, "/memfd:outcore-run (deleted)\n") << outcome.err;
  }
}

TEST_F(Run, TheReportLiesAboveTheNumbersOfPrograms) {
  const std::string command =
      "OUTCORE_PRELOAD_LIBRARY=" + a_library() + " " + command_path() + " run ";
  Outcome outcome = shell("ulimit -n 1024; " + command + "sh -c 'echo ${OUTCORE_RUN_REPORT#*:}'");
  EXPECT_GE(std::stoi("0" + outcome.out), 900) << outcome.err;
  outcome =
      shell("ulimit -n 64; " + command + "sh -c 'readlink /proc/$$/fd/${OUTCORE_RUN_REPORT#*:}'");
  EXPECT_EQ(outcome.out, "/memfd:outcore-run (deleted)\n") << outcome.err;
}

TEST_F(Run, ClosedFilesAndIgnoredSignalsStayAsTheyWere) {
  Outcome outcome = start("sh -c 'test -e /proc/$$/fd/0 || echo closed' <&-");
  EXPECT_EQ(outcome.out, "closed\n") << outcome.err;
  for (const char* options : {"", "--budget 64M "}) {
    const std::string grep = "run " + std::string(options) + "grep SigIgn /proc/self/status";
    outcome = shell("export OUTCORE_PRELOAD_LIBRARY=" + a_library() + "; " + command_path() + " " +
                    grep + "; trap '' PIPE SEGV HUP; " + command_path() + " " + grep +
                    "; grep SigIgn /proc/self/status");
    std::istringstream lines(outcome.out);
    std::string none, ignored, plain;
    std::getline(lines, none), std::getline(lines, ignored), std::getline(lines, plain);
    EXPECT_EQ(ignored, plain) << outcome.err;
    EXPECT_NE(none, ignored) << outcome.err;
  }
}

// -- What is refused --

struct BadOptions {
  const char* arguments;
  const char* said;
};

void PrintTo(const BadOptions& bad, std::ostream* out) { *out << bad.arguments; }

class RunRefused : public Run, public testing::WithParamInterface<BadOptions> {};

TEST_P(RunRefused, InOneLineBeforeTheProgramStarts) {
  const auto& [arguments, said] = GetParam();
  expect_refusal(start(std::string(arguments) + " -- touch made"), 2, said);
  EXPECT_FALSE(std::filesystem::exists(path("made")));
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, RunRefused,
    testing::Values(
        BadOptions{"--budget 12q", "--budget 12q: '12q'"},
        BadOptions{"--budget 200%", "--budget 200%"}, BadOptions{"--page 5000", "--page 5000"},
        BadOptions{"--policy nonsense", "--policy nonsense"},
        BadOptions{"--delivery carrier", "--delivery carrier"},
        BadOptions{"--frames round", "--frames round"},
        BadOptions{"--on-error shrug", "--on-error shrug"},
        BadOptions{"--keepers 0", "--keepers 0"},
        BadOptions{"--prefetch-threads many", "--prefetch-threads many"},
        BadOptions{"--wait-max 5", "--wait-max 5"}, BadOptions{"--budget ''", "--budget"},
        BadOptions{"--min-size 1q", "--min-size 1q"}, BadOptions{"--alloc 4k", "--alloc 4k"},
        BadOptions{"--alloc x", "--alloc x"}, BadOptions{"--store memory:", "scratch:DIR"},
        BadOptions{"--store sparse:/x", "scratch:DIR"}, BadOptions{"--map ''", "--map"},
        BadOptions{"--learn /", "--learn /: it is a folder"},
        BadOptions{"--checkpoint 12q", "'12q' is not a time"},
        BadOptions{"--checkpoint 1min", "--checkpoint-pool versioned:FOLDER"},
        BadOptions{"--nonsense", "'--nonsense'"}, BadOptions{"--json", "--json needs a value"},
        BadOptions{"--quiet --quiet=maybe", "quiet"}));

TEST_F(Run, AWrongVariableIsToldByItsName) {
  expect_refusal(start("true", "OUTCORE_BUDGET=12q"), 2, "OUTCORE_BUDGET=12q");
  expect_refusal(start("true", "OUTCORE_RUN_ALLOC=12q"), 2, "OUTCORE_RUN_ALLOC=12q");
  expect_refusal(start("true", "OUTCORE_RUN_MIN_SIZE=-1"), 2, "OUTCORE_RUN_MIN_SIZE=-1");
  expect_refusal(start("true", "OUTCORE_RUN_QUIET=perhaps"), 2, "OUTCORE_RUN_QUIET=perhaps");
  expect_refusal(start("true", "OUTCORE_STORE=memory:"), 2, "OUTCORE_STORE=memory:");
}

TEST_F(Run, AWrongConfigFileThatIsNamedIsTold) {
  std::ofstream(path("config.toml")) << "budget = \"12q\"\n";
  expect_refusal(start("true", "OUTCORE_CONFIG=" + path("config.toml")), 2, "config.toml:1");
}

TEST_F(Run, FoldersThatAreNotThereAreToldBeforeTheProgramStarts) {
  // What is written when the program has ended: by option and by variable.
  for (const char* name : {"json", "report", "metrics-at-exit"})
    for (const char* place : {"missing/out.json", "/dev/null/out.json"})
      expect_refusal(start(std::string("--") + name + " " + place + " touch made"), 1,
                     std::string("--") + name + " " + place);
  for (const char* name : {"RUN_JSON", "REPORT", "METRICS_AT_EXIT"}) {
    const std::string given = std::string("OUTCORE_") + name + "=missing/out.json";
    expect_refusal(start("touch made", given), 1, given);
  }
  expect_refusal(start("--json . touch made"), 1, "directory");
  expect_refusal(start("--store scratch:missing touch made"), 1, "scratch:missing");
  EXPECT_FALSE(std::filesystem::exists(path("made")));
}

TEST_F(Run, WithoutAProgramSaysWhatIsMissing) {
  expect_refusal(start(""), 2, "program is missing");
  expect_refusal(start("--quiet --"), 2, "program is missing");
}

TEST_F(Run, AProgramThatCannotStartHasTheStatusOfShells) {
  std::ofstream(path("plain")) << "text";
  expect_refusal(start("no-such-program"), 127, "no-such-program");
  expect_refusal(start("./missing"), 127, "./missing");
  expect_refusal(start("./plain"), 126, "chmod +x");
  expect_refusal(start("."), 126, "run .");
  std::ofstream(path("script")) << "#!./missing-interpreter\n";
  std::filesystem::permissions(path("script"), std::filesystem::perms::owner_all);
  expect_refusal(start("./script"), 127, "missing-interpreter");
}

TEST_F(Run, ALibraryThatIsNotThereIsToldWithTheRemedy) {
  const std::string command = command_path() + " run true";
  expect_refusal(shell("OUTCORE_PRELOAD_LIBRARY=missing.so " + command), 1, "missing.so");
  std::filesystem::create_directory(path("bin"));
  std::filesystem::copy_file(command_path(), path("bin/outcore"));
  expect_refusal(shell("unset OUTCORE_PRELOAD_LIBRARY; bin/outcore run true"), 1,
                 "OUTCORE_PRELOAD_LIBRARY");
}

TEST_F(Run, TheLibraryIsFoundBesideTheCommand) {
  for (const char* folder : {"bin", "lib", "lib/x86_64-linux-gnu", "lib64", "lib/outcore"}) {
    const std::string prefix = path("prefix");
    std::filesystem::create_directories(prefix + "/bin");
    std::filesystem::create_directories(prefix + "/" + folder);
    std::filesystem::copy_file(command_path(), prefix + "/bin/outcore");
    const std::string library = prefix + "/" + folder + "/liboutcore_preload.so";
    std::filesystem::copy_file(a_library(), library);
    const Outcome outcome = shell("unset OUTCORE_PRELOAD_LIBRARY; " + prefix +
                                  "/bin/outcore run sh -c 'echo $LD_PRELOAD'");
    EXPECT_EQ(outcome.out, library + "\n") << outcome.err;
    std::filesystem::remove_all(prefix);
  }
}

TEST_F(Run, ALibraryWhoseNameTheLoaderWouldCutIsRefused) {
  for (const char* name : {"a b.so", "a:b.so"}) {
    std::filesystem::copy_file(a_library(), path(name));
    expect_refusal(
        shell("OUTCORE_PRELOAD_LIBRARY='" + path(name) + "' " + command_path() + " run true"), 1,
        "space or colon");
  }
}

TEST_F(Run, HelpNamesEveryOptionOfTheRuntime) {
  const Outcome outcome = run("run --help");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const runtime::Option& option : runtime::option_table()) {
    std::string flag = "--" + option.name + " ";
    std::replace(flag.begin(), flag.end(), '_', '-');
    EXPECT_NE(outcome.out.find(flag), std::string::npos) << flag;
  }
  EXPECT_NE(outcome.out.find("Example"), std::string::npos);
}

// As where --hosts finds none: the program's memory would silently stay here.
TEST_F(Run, IsRefusedWhereFarMemoryHasNoServer) {
  const std::pair<const char*, int> refused[] = {
      {"run --alloc 1M --store 'far://127.0.0.1:1?timeout=1s' -- echo started", 1},
      {"run --store 'far://127.0.0.1:1?timeout=1s' -- echo started", 1},
      {"run --alloc 1M --store far:// -- echo started", 2}};
  for (const auto& [words, status] : refused) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, status) << words;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.error_lines(), 1u) << outcome.err;
    EXPECT_NE(outcome.err.find("far://"), std::string::npos) << outcome.err;
  }
}

TEST_F(Run, ShowsNoPassword) {
  for (const char* const words :
       {"run --store redis://:sesame@h:1/n -- true", "run --store=far://u:sesame@h,i -- true",
        "bench scan --store rediss://:sesame@h/n --size 1M"}) {
    const Outcome outcome = run(words);
    EXPECT_EQ((outcome.out + outcome.err).find("sesame"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.error_lines() > 0 || outcome.status == 0, true) << words;
  }
}

}  // namespace
}  // namespace outcore::cli
