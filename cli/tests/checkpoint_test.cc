// `outcore checkpoint`: checkpoints of a pool, from outside.
#include "outcore/checkpoint_catalog.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <csignal>
#include <cstddef>
#include <set>

#include "cli/tests/command_line.h"
#include "outcore/store.h"

namespace outcore::cli {
namespace {

class CheckpointCommand : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    write_file("first", 'a');
    write_file("second", 'b');
  }
  void write_file(const std::string& name, char what) const {
    std::ofstream(path(name), std::ios::binary) << std::string(300'000, what);
  }
  Outcome checkpoint(const std::string& words) const { return run("checkpoint " + words); }
  std::string pool() const { return path("pool"); }
  Outcome put(const std::string& file, const std::string& object) const {
    return run("store put --replace " + path(file) + " 'versioned:" + pool() + "?object=" + object +
               "'");
  }
  // Of what lies in the folder of the test.
  std::set<std::string> all_names() const {
    std::set<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(dir()))
      all.insert(entry.path().filename());
    return all;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    const auto told = Json::parse_or_null(checkpoint("ls --json " + pool()).out);
    for (const auto& c : told["checkpoints"]) all.push_back(c.value("name", ""));
    return all;
  }
};

TEST_F(CheckpointCommand, MakesListsExportsAndRollsBack) {
  ASSERT_EQ(put("first", "a").status, 0);
  EXPECT_EQ(checkpoint("make " + pool() + " one --comment 'as it began'").status, 0);
  ASSERT_EQ(put("second", "a").status, 0);
  EXPECT_EQ(checkpoint("make " + pool() + " two").status, 0);
  EXPECT_EQ(names(), (std::vector<std::string>{"one", "two"}));
  const std::string listed = checkpoint("ls " + pool()).out;
  EXPECT_NE(listed.find("293.0 KiB"), std::string::npos) << listed;
  EXPECT_NE(listed.find("one  as it began"), std::string::npos) << listed;
  EXPECT_EQ(checkpoint("export " + pool() + " one " + path("out")).status, 0);
  EXPECT_EQ(outcome_of("cmp " + path("first") + " " + path("out")).status, 0);
  EXPECT_EQ(checkpoint("rollback " + pool() + " one").status, 0);
  EXPECT_EQ(run("store verify 'versioned:" + pool() + "?object=a' " + path("first")).status, 0);
  EXPECT_EQ(checkpoint("verify " + pool()).status, 0);
}

// oc_ssd_checkpoint numbers its checkpoints behind their names.
TEST_F(CheckpointCommand, NamesTheNumberedOneIfThereIsNoneOfTheName) {
  ASSERT_EQ(put("first", "a").status, 0);
  for (const char* name : {"last.1", "last.2", "lasting"})
    ASSERT_EQ(checkpoint("make " + pool() + " " + name).status, 0);
  const Outcome outcome = checkpoint("export " + pool() + " last " + path("out"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error_lines(), 1u) << outcome.err;
  EXPECT_NE(outcome.err.find("there is none of this name, but 'last.2'"), std::string::npos)
      << outcome.err;
}

TEST_F(CheckpointCommand, RemovesAllOrNone) {
  ASSERT_EQ(put("first", "a").status, 0);
  for (const char* name : {"one", "two", "three"})
    EXPECT_EQ(checkpoint("make " + pool() + " " + name).status, 0);
  const Outcome refused = checkpoint("rm " + pool() + " one nine");
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("'nine'"), std::string::npos) << refused.err;
  EXPECT_EQ(names().size(), 3u);
  EXPECT_EQ(checkpoint("rm " + pool() + " one three").status, 0);
  EXPECT_EQ(checkpoint("mv " + pool() + " two 2").status, 0);
  EXPECT_EQ(names(), (std::vector<std::string>{"2"}));
}

TEST_F(CheckpointCommand, PrunesWhatNoRuleKeeps) {
  ASSERT_EQ(put("first", "a").status, 0);
  for (const char* name : {"1", "2", "3", "4"})
    EXPECT_EQ(checkpoint("make " + pool() + " " + name).status, 0);
  EXPECT_EQ(checkpoint("prune " + pool()).status, 2);
  EXPECT_EQ(checkpoint("prune " + pool() + " --last 2 --dry-run").out,
            "would remove 1\nwould remove 2\n");
  EXPECT_EQ(names().size(), 4u);
  EXPECT_EQ(checkpoint("prune " + pool() + " --last 2").out, "removed 1\nremoved 2\n");
  EXPECT_EQ(names(), (std::vector<std::string>{"3", "4"}));
}

TEST_F(CheckpointCommand, ListsBesideAWriterThatNobodyElseMayBe) {
  ASSERT_EQ(put("first", "a").status, 0);
  EXPECT_EQ(checkpoint("make " + pool() + " one").status, 0);
  OpenOptions options;
  options.is_writable = true;
  const auto store = open_store("versioned:" + pool() + "?object=a", options);
  ASSERT_TRUE(store.ok()) << store.message();
  EXPECT_EQ(names(), (std::vector<std::string>{"one"}));
  const Outcome refused = checkpoint("make " + pool() + " two");
  EXPECT_EQ(refused.status, 1);
  EXPECT_EQ(refused.error_lines(), 1u);
  EXPECT_NE(refused.err.find(std::to_string(::getpid())), std::string::npos) << refused.err;
}

TEST_F(CheckpointCommand, FindsWhatIsDamaged) {
  ASSERT_EQ(put("first", "a").status, 0);
  EXPECT_EQ(checkpoint("make " + pool() + " one").status, 0);
  ASSERT_EQ(put("second", "a").status, 0);
  std::fstream data(pool() + "/data", std::ios::binary | std::ios::in | std::ios::out);
  std::string all((std::istreambuf_iterator<char>(data)), std::istreambuf_iterator<char>());
  const size_t at = all.find("aaaa");
  ASSERT_NE(at, std::string::npos);
  data.clear();
  data.seekp(static_cast<std::streamoff>(at)).put('!');
  data.close();
  const Outcome verified = checkpoint("verify --json " + pool());
  EXPECT_EQ(verified.status, 1);
  const auto damaged = Json::parse_or_null(verified.out)["damaged"];
  ASSERT_EQ(damaged.size(), 1u);
  EXPECT_EQ(damaged[0]["checkpoint"], "one");
  EXPECT_EQ(damaged[0]["object"], "a");
  // Nothing that is not complete gets the name, and what is there stays as it is.
  const std::set<std::string> before = all_names();
  EXPECT_EQ(checkpoint("export " + pool() + " one " + path("out")).status, 1);
  EXPECT_EQ(checkpoint("export " + pool() + " one 'sparse:" + path("out") + "'").status, 1);
  EXPECT_EQ(checkpoint("export --replace " + pool() + " one " + path("second")).status, 1);
  EXPECT_EQ(checkpoint("export " + pool() + " one 'versioned:" + path("other") + "'").status, 1);
  EXPECT_EQ(run("store get 'versioned:" + path("other") + "' " + path("out")).status, 1);
  std::set<std::string> after = all_names();
  after.erase("other");
  EXPECT_EQ(after, before);
  EXPECT_EQ(std::filesystem::file_size(path("second")), 300'000U);
  EXPECT_EQ(run("store verify 'versioned:" + pool() + "?object=a' " + path("second")).status, 0);
}

TEST_F(CheckpointCommand, RollsBackToNothingThatIsDamaged) {
  ASSERT_EQ(put("first", "a").status, 0);
  EXPECT_EQ(checkpoint("make " + pool() + " one").status, 0);
  ASSERT_EQ(put("second", "a").status, 0);
  std::fstream data(pool() + "/data", std::ios::binary | std::ios::in | std::ios::out);
  std::string all((std::istreambuf_iterator<char>(data)), std::istreambuf_iterator<char>());
  data.clear();
  data.seekp(static_cast<std::streamoff>(all.find("aaaa"))).put('!');
  data.close();
  const Outcome refused = checkpoint("rollback " + pool() + " one");
  EXPECT_EQ(refused.status, 1);
  EXPECT_EQ(refused.error_lines(), 1u) << refused.err;
  EXPECT_NE(refused.err.find("outcore checkpoint verify"), std::string::npos) << refused.err;
  EXPECT_EQ(run("store verify 'versioned:" + pool() + "?object=a' " + path("second")).status, 0);
  const Outcome exported = checkpoint("export " + pool() + " one " + path("out"));
  EXPECT_NE(exported.err.find("it is damaged there"), std::string::npos) << exported.err;
}

TEST_F(CheckpointCommand, PromisesOfAPoolThatWasCutOnlyWhatItHas) {
  ASSERT_EQ(put("first", "a").status, 0);
  EXPECT_EQ(checkpoint("make " + pool() + " one").status, 0);
  ASSERT_EQ(put("second", "a").status, 0);
  EXPECT_EQ(checkpoint("make " + pool() + " two").status, 0);
  const std::string data = pool() + "/data";
  const uint64_t size = std::filesystem::file_size(data);
  // The blocks of 'one' lie first.
  std::filesystem::resize_file(data, 400'000);
  ASSERT_GT(size, 600'000U);
  Outcome outcome = checkpoint("verify " + pool());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("still readable are the checkpoints 'one':"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(outcome.err.find("at="), std::string::npos) << outcome.err;
  EXPECT_EQ(checkpoint("export " + pool() + " one " + path("out")).status, 0);
  std::filesystem::resize_file(data, 100'000);
  outcome = checkpoint("verify " + pool());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("no checkpoint can be read"), std::string::npos) << outcome.err;
}

// The same is found after a loss of power, so it is no error.
TEST_F(CheckpointCommand, NotesAJournalThatEndsWithinARecord) {
  ASSERT_EQ(put("first", "a").status, 0);
  EXPECT_EQ(checkpoint("make " + pool() + " one").status, 0);
  EXPECT_EQ(checkpoint("verify " + pool()).out, pool() + ": all is as it was written\n");
  const std::string journal = pool() + "/journal.000001";
  std::ifstream file(journal, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const size_t end = bytes.find_last_not_of('\0') + 1;  // within the last record
  std::filesystem::resize_file(journal, end - 8);
  const Outcome outcome = checkpoint("verify " + pool());
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.out.find("note: " + journal + " ends early, at byte "), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("all that is there is as it was written"), std::string::npos);
  // It has looked, and changed nothing.
  EXPECT_EQ(checkpoint("verify " + pool()).out, outcome.out);
  EXPECT_EQ(std::filesystem::file_size(journal), end - 8);
}

TEST_F(CheckpointCommand, VerifiesACopyAndBesideAWriterAndWritesNothing) {
  ASSERT_EQ(put("first", "a").status, 0);
  EXPECT_EQ(checkpoint("make " + pool() + " one").status, 0);
  const std::string copy = path("copy");
  std::filesystem::create_directory(copy);
  for (const char* name : {"/data", "/journal.000001"})
    std::filesystem::copy_file(pool() + name, copy + name);
  const std::set<std::string> before = all_names();
  EXPECT_EQ(checkpoint("verify " + copy).out, copy + ": all is as it was written\n");
  EXPECT_EQ(all_names(), before);
  for (const char* name : {"/data", "/journal.000001"})
    EXPECT_EQ(outcome_of("cmp " + pool() + name + " " + copy + name).status, 0);
  EXPECT_FALSE(std::filesystem::exists(copy + "/lock"));
  EXPECT_FALSE(std::filesystem::exists(copy + "/readers"));
  const auto store = open_store("versioned:" + pool() + "?object=a", {.is_writable = true});
  ASSERT_TRUE(store.ok()) << store.message();
  EXPECT_EQ(checkpoint("verify " + pool()).out, pool() + ": all is as it was written\n");
}

TEST_F(CheckpointCommand, LeavesNothingInAFolderThatIsNoPool) {
  const std::string empty = path("empty"), made = path("made");
  std::filesystem::create_directory(empty);
  for (const std::string words : {"make", "rm", "rollback", "mv", "verify", "ls"}) {
    const bool is_of_all = words == "verify" || words == "ls";
    const std::string names = words == "mv" ? " a b" : is_of_all ? "" : " a";
    const Outcome refused = checkpoint(words + " " + empty + names);
    EXPECT_EQ(refused.status, 1) << words;
    EXPECT_EQ(refused.error_lines(), 1u) << refused.err;
    EXPECT_TRUE(std::filesystem::is_empty(empty)) << words;
  }
  const Outcome nameless = run("store put " + path("first") + " 'versioned:" + made + "?object='");
  EXPECT_EQ(nameless.status, 2) << "no object has such a name";
  EXPECT_EQ(nameless.error_lines(), 1u) << nameless.err;
  EXPECT_FALSE(std::filesystem::exists(made));
}

TEST_F(CheckpointCommand, ReplacesAFileAsAWhole) {
  ASSERT_EQ(put("first", "a").status, 0);
  EXPECT_EQ(checkpoint("make " + pool() + " one").status, 0);
  namespace fs = std::filesystem;
  fs::permissions(path("second"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("second", path("link"));
  EXPECT_EQ(checkpoint("export --replace " + pool() + " one " + path("link")).status, 0);
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(fs::status(path("second")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(outcome_of("cmp " + path("first") + " " + path("second")).status, 0);
}

// The folder is synced after the name is in it.
TEST_F(CheckpointCommand, MakesTheNameDurable) {
  if (outcome_of("strace true").status != 0)
    GTEST_SKIP() << "strace is not there, or may not trace";
  const Outcome traced =
      outcome_of("strace -f -y -e trace=renameat2,fsync -o " + path("calls") + " " +
                 command_path() + " store get " + path("first") + " " + path("out"));
  ASSERT_EQ(traced.status, 0) << traced.err;
  const std::string calls = outcome_of("cat " + path("calls")).out;
  const size_t moved = calls.find("renameat2(");
  ASSERT_NE(moved, std::string::npos) << calls;
  EXPECT_NE(calls.find("<" + std::filesystem::canonical(dir()).string() + ">)", moved),
            std::string::npos)
      << calls;
}

// Containers share process numbers, and a killed one has left its part.
TEST_F(CheckpointCommand, WritesIntoNobodyElsesPart) {
  const Outcome outcome =
      outcome_of("cd " + dir() + " && sh -c 'echo mine >.out.$$.part; echo .out.$$.part; exec " +
                 command_path() + " store get first out'");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const std::string part = outcome.out.substr(0, outcome.out.find('\n'));
  EXPECT_EQ(outcome_of("cat " + path(part)).out, "mine\n");
  EXPECT_EQ(outcome_of("cmp " + path("first") + " " + path("out")).status, 0);
}

// The kernel ends the program at its first chmod().
int status_of_one_ended_at_chmod(const std::string& words) {
  const std::string command = "ulimit -c 0; exec " + command_path() + " " + words;
  const pid_t child = ::fork();
  if (child == 0) {
    sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_chmod, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{std::size(code), code};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      ::_exit(2);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  int status = -1;
  return ::waitpid(child, &status, 0) == child ? status : -1;
}

TEST_F(CheckpointCommand, ShowsNobodyWhatReplacesAPrivateFile) {
  namespace fs = std::filesystem;
  const auto own = fs::perms::owner_read | fs::perms::owner_write;
  fs::permissions(path("second"), own);
  // It ends before it can give the file its rights.
  const int status =
      status_of_one_ended_at_chmod("store get --replace " + path("first") + " " + path("second"));
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) << status;
  int parts = 0;
  for (const std::string& name : all_names()) {
    if (!name.starts_with(".second.")) continue;
    ++parts;
    EXPECT_EQ(fs::status(path(name)).permissions(), own) << name;
  }
  EXPECT_EQ(parts, 1);
}

TEST_F(CheckpointCommand, LeavesNothingOfWhatIsLargerThanFilesMayBecome) {
  const std::string words = " store get --replace " + path("first") + " " + path("second");
  const Outcome refused = outcome_of("ulimit -f 100; exec " + command_path() + words);
  EXPECT_NE(refused.err.find("ulimit -f"), std::string::npos) << refused.status << refused.err;
  EXPECT_EQ(all_names(), (std::set<std::string>{"first", "second", "stderr"}));
}

// A new file is everybody's whom the mask lets.
TEST_F(CheckpointCommand, GivesANewFileTheRightsOfTheMask) {
  EXPECT_EQ(
      outcome_of("umask 027; " + command_path() + " store get " + path("first") + " " + path("out"))
          .status,
      0);
  EXPECT_EQ(outcome_of("stat -c %a " + path("out")).out, "640\n");
}

TEST_F(CheckpointCommand, AsksForTheObjectWhereThereAreSeveral) {
  ASSERT_EQ(put("first", "a").status, 0);
  ASSERT_EQ(put("second", "b").status, 0);
  EXPECT_EQ(checkpoint("make " + pool() + " one").status, 0);
  const Outcome refused = checkpoint("export " + pool() + " one " + path("out"));
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("a, b"), std::string::npos) << refused.err;
  EXPECT_EQ(checkpoint("export " + pool() + " one " + path("out") + " --object b").status, 0);
  EXPECT_EQ(outcome_of("cmp " + path("second") + " " + path("out")).status, 0);
  EXPECT_EQ(checkpoint("export " + pool() + " one " + path("out") + " --object b").status, 1);
}

TEST_F(CheckpointCommand, SaysWhatIsWrongInOneLine) {
  for (const char* words : {"ls redis://127.0.0.1:1/a", "ls /nowhere/at/all",
                            "ls versioned:", "make /nowhere/at/all x", "verify ''"}) {
    const Outcome outcome = checkpoint(words);
    EXPECT_NE(outcome.status, 0) << words;
    EXPECT_EQ(outcome.error_lines(), 1u) << words << ": " << outcome.err;
  }
  EXPECT_FALSE(std::filesystem::exists("/nowhere"));
  // What is wrong with a thing is a failure, with its name a mistake of usage.
  EXPECT_EQ(checkpoint("ls redis://127.0.0.1:1/a").status, 1);
  EXPECT_EQ(checkpoint("ls " + dir()).status, 1);
  EXPECT_EQ(checkpoint("ls nosuch://x").status, 2);
  ASSERT_EQ(put("first", "a").status, 0);
  for (const char* words : {"rm %s x", "mv %s x y", "rollback %s x", "export %s x y"}) {
    std::string text = words;
    const Outcome outcome = checkpoint(text.replace(text.find('%'), 2, pool()));
    EXPECT_EQ(outcome.status, 1) << words;
    EXPECT_NE(outcome.err.find("outcore checkpoint ls"), std::string::npos) << outcome.err;
  }
  const Outcome prune = checkpoint("prune " + pool() + " --last -1");
  EXPECT_EQ(prune.status, 2);
  EXPECT_NE(prune.err.find("--last: '-1' is not a whole number: write one"), std::string::npos)
      << prune.err;
}

CheckpointInfo made(uint32_t number, int64_t hour) {
  CheckpointInfo info;
  info.name = std::to_string(number);
  info.number = number;
  info.time_s = hour * 3600 + number;
  return info;
}

TEST(Retention, KeepsTheNewestOfHoursAndDays) {
  std::vector<CheckpointInfo> all;
  for (uint32_t i = 1; i <= 3; ++i) all.push_back(made(i, 0));    // day 0, hour 0
  for (uint32_t i = 4; i <= 5; ++i) all.push_back(made(i, 23));   // day 0, hour 23
  for (uint32_t i = 6; i <= 8; ++i) all.push_back(made(i, 100));  // day 4, hour 4
  const auto gone = [&](const Retention& kept) { return choose_to_prune(all, kept).value(); };
  using Names = std::vector<std::string>;
  EXPECT_EQ(gone({.last = 6}), (Names{"1", "2"}));
  EXPECT_EQ(gone({.hourly = 2}), (Names{"1", "2", "3", "4", "6", "7"}));
  EXPECT_EQ(gone({.daily = 2}), (Names{"1", "2", "3", "4", "6", "7"}));
  EXPECT_EQ(gone({.daily = 1}), (Names{"1", "2", "3", "4", "5", "6", "7"}));
  EXPECT_EQ(gone({.last = 1, .hourly = 3}), (Names{"1", "2", "4", "6", "7"}));
  EXPECT_EQ(gone({.last = 100}), Names());
  EXPECT_EQ(choose_to_prune(all, {}).code(), EINVAL);
}

}  // namespace
}  // namespace outcore::cli
