// `outcore store`: stores on a real server, from outside.
#include "outcore/store.h"
#include "cli/tests/command_line.h"
#include "far/tests/redis/test_servers.h"

namespace outcore::cli {
namespace {

using redis_test::TestServers;

class StoreCommand : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    if (!TestServers::is_installed())
      GTEST_SKIP() << "redis-server is not installed: tools/install_packages.sh engines";
    servers_ = std::make_unique<TestServers>();
    std::ofstream file(path("file"), std::ios::binary);
    for (int i = 0; i < 5'000'000; ++i) file.put(static_cast<char>(i * 7 + i / 1000));
  }
  Outcome store(const std::string& words) const { return run("store " + words); }
  std::string uri(const std::string& name) const {
    return "'" + servers_->uri(name, "replicas=0&timeout=2s") + "'";
  }
  // A process with this command, once the store of that record is ready to be written.
  pid_t start_until_ready(const std::string& command, const std::string& record) const {
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    EXPECT_TRUE(redis_test::becomes([&] {
      return servers_->ask(0, {"HGET", record, "state"}).text == "ready";
    }));
    return child;
  }
  std::unique_ptr<TestServers> servers_;
};

TEST_F(StoreCommand, PutsVerifiesGetsAndRemoves) {
  EXPECT_EQ(store("put " + path("file") + " " + uri("a")).status, 0);
  EXPECT_EQ(store("verify " + uri("a") + " " + path("file")).status, 0);
  EXPECT_EQ(store("get " + uri("a") + " " + path("copy")).status, 0);
  EXPECT_EQ(outcome_of("cmp " + path("file") + " " + path("copy")).status, 0);
  const auto all = Json::parse_or_null(store("ls --json " + uri("")).out)["stores"];
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0]["name"], "a");
  EXPECT_EQ(all[0]["size_bytes"], 5'000'000);
  EXPECT_EQ(Json::parse_or_null(store("du --json " + uri("a")).out)["stored_bytes"], 77 * 65'536);
  EXPECT_NE(store("ls " + uri("")).out.find("4.8 MiB"), std::string::npos);
  EXPECT_EQ(store("rm " + uri("a")).status, 0);
  EXPECT_EQ(store("ls --json " + uri("")).out, "{\"stores\":[]}\n");
  for (const redis::Value& key : servers_->ask(0, {"KEYS", "*"}).items)
    ADD_FAILURE() << "left behind: " << key.text;
}

TEST_F(StoreCommand, PutsAndGetsWhatIsCompressed) {
  const std::string packed = "'" + servers_->uri("a", "replicas=0&compress=zstd") + "'";
  EXPECT_EQ(store("put " + path("file") + " " + packed).status, 0);
  EXPECT_EQ(store("verify " + uri("a") + " " + path("file")).status, 0);
  EXPECT_EQ(store("get " + uri("a") + " " + path("copy")).status, 0);
  EXPECT_EQ(outcome_of("cmp " + path("file") + " " + path("copy")).status, 0);
  EXPECT_LT(Json::parse_or_null(store("du --json " + uri("a")).out)["stored_bytes"], 500'000);
  for (const redis::Value& key : servers_->ask(0, {"KEYS", "oc:*:7"}).items)
    servers_->ask(0, {"SETRANGE", key.text, "3", "!!"});
  const Outcome damaged = store("verify " + uri("a"));
  EXPECT_EQ(damaged.status, 1);
  EXPECT_NE(damaged.err.find("chunk 7 is damaged"), std::string::npos) << damaged.err;
  const Outcome refused =
      store("put " + path("file") + " '" + servers_->uri("b", "replicas=0&compress=gzip") + "'");
  EXPECT_NE(refused.err.find("write none, lz4, zstd or zstd:LEVEL"), std::string::npos);
}

TEST_F(StoreCommand, FindsADifference) {
  EXPECT_EQ(store("put " + path("file") + " " + uri("a")).status, 0);
  std::fstream file(path("file"), std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(4'500'000).put('!');
  file.close();
  const Outcome outcome = store("verify " + uri("a") + " " + path("file"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("at byte 4500000"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("sesame"), std::string::npos) << "the password";
  EXPECT_EQ(store("put --replace " + path("file") + " " + uri("a")).status, 0);
  EXPECT_EQ(store("verify " + uri("a") + " " + path("file")).status, 0);
}

TEST_F(StoreCommand, SaysWhichKeyHasTheValueOfAnother) {
  EXPECT_EQ(store("put " + path("file") + " " + uri("a")).status, 0);
  servers_->ask(0, {"RENAME", "oc:{catalog}:a", "kept"});
  servers_->ask(0, {"SET", "oc:{catalog}:a", "junk"});
  for (const std::string& words : {"get " + uri("a") + " " + path("out"), "rm " + uri("a")}) {
    const Outcome damaged = store(words);
    EXPECT_EQ(damaged.status, 1) << words;
    EXPECT_EQ(damaged.error_lines(), 1u) << damaged.err;
    EXPECT_NE(damaged.err.find("a string has its key oc:{catalog}:a: rename or remove that key"),
              std::string::npos)
        << damaged.err;
  }
  servers_->ask(0, {"RENAME", "kept", "oc:{catalog}:a"});
  servers_->ask(0, {"RENAME", "oc:{catalog}", "kept"});
  servers_->ask(0, {"SET", "oc:{catalog}", "junk"});
  const Outcome listed = store("ls " + uri("a"));
  EXPECT_EQ(listed.status, 1);
  EXPECT_NE(listed.err.find("a string has its key oc:{catalog}: rename"), std::string::npos)
      << listed.err;
  servers_->ask(0, {"RENAME", "kept", "oc:{catalog}"});
  EXPECT_EQ(store("verify " + uri("a") + " " + path("file")).status, 0);
}

TEST_F(StoreCommand, RemembersTheChecksumOfWhatWasPut) {
  EXPECT_EQ(store("put " + path("file") + " " + uri("a")).status, 0);
  EXPECT_NE(store("verify " + uri("a")).out.find("as when it was put"), std::string::npos);
  const std::string checksum = servers_->ask(0, {"HGET", "oc:{catalog}:a", "checksum"}).text;
  EXPECT_EQ(checksum.size(), std::string("xxh3:").size() + 16) << checksum;
  // Somebody changes a value behind everybody's back.
  for (const redis::Value& key : servers_->ask(0, {"KEYS", "oc:*:7"}).items)
    servers_->ask(0, {"SETRANGE", key.text, "100", "!"});
  const Outcome changed = store("verify " + uri("a"));
  EXPECT_EQ(changed.status, 1);
  EXPECT_NE(changed.err.find(checksum), std::string::npos) << changed.err;
  OpenOptions options;
  options.is_writable = true;
  EXPECT_TRUE(open_store(servers_->uri("a", "replicas=0"), options).ok());
  EXPECT_NE(store("verify " + uri("a")).out.find("no checksum"), std::string::npos);
}

TEST_F(StoreCommand, RemovesWhatIsExpired) {
  const std::string short_lived = "'" + servers_->uri("old", "replicas=0&lifetime=1h") + "'";
  EXPECT_EQ(store("put " + path("file") + " " + short_lived).status, 0);
  EXPECT_EQ(store("put " + path("file") + " " + uri("kept")).status, 0);
  servers_->ask(0, {"HSET", "oc:{catalog}:old", "deadline", "1"});
  EXPECT_NE(store("ls " + uri("")).out.find("old  expired"), std::string::npos);
  EXPECT_EQ(store("rm --expired " + uri("")).out, "removed old\n");
  EXPECT_EQ(store("verify " + uri("kept")).status, 0);
  EXPECT_EQ(store("verify " + uri("old")).status, 1);
}

// A copy that fails in its second batch: of a store of which a late chunk is damaged.
TEST_F(StoreCommand, RefusesWhatWasPutInPartOnly) {
  const std::string source = "'" + servers_->uri("s", "replicas=0&compress=zstd") + "'";
  ASSERT_EQ(store("put " + path("file") + " " + source).status, 0);
  for (const redis::Value& key : servers_->ask(0, {"KEYS", "oc:*:300"}).items)
    servers_->ask(0, {"SETRANGE", key.text, "3", "!!"});
  ASSERT_EQ(store("put " + path("file") + " " + uri("whole")).status, 0);
  for (const std::string name : {"part", "whole"}) {
    const Outcome put = store("put --replace " + source + " " + uri(name));
    EXPECT_EQ(put.status, 1);
    EXPECT_EQ(put.error_lines(), 1u) << put.err;
    for (const std::string& words :
         {"get " + uri(name) + " " + path("out"), "verify " + uri(name),
          "verify " + uri(name) + " " + path("file"), "put " + uri(name) + " " + uri("b")}) {
      const Outcome refused = store(words);
      EXPECT_EQ(refused.status, 1) << words;
      EXPECT_EQ(refused.error_lines(), 1u) << refused.err;
      EXPECT_NE(refused.err.find("put it again, or remove it (`outcore store rm`)"),
                std::string::npos)
          << refused.err;
    }
    EXPECT_FALSE(std::filesystem::exists(path("out")));
    for (const bool is_writable : {false, true}) {
      OpenOptions options;
      options.is_writable = options.may_create = is_writable;
      EXPECT_EQ(open_store(servers_->uri(name, "replicas=0"), options).code(), EUCLEAN);
    }
    EXPECT_NE(store("ls " + uri("")).out.find(name + "  incomplete"), std::string::npos);
  }
  const auto all = Json::parse_or_null(store("ls --json " + uri("")).out)["stores"];
  ASSERT_EQ(all.size(), 3u);
  for (const auto& one : all) EXPECT_EQ(one["is_incomplete"], one["name"] != "s");
  EXPECT_EQ(store("put " + path("file") + " " + uri("part")).status, 0);
  EXPECT_NE(store("verify " + uri("part")).out.find("as when it was put"), std::string::npos);
  EXPECT_EQ(store("rm " + uri("whole")).status, 0);
}

// Its maker has failed after it had the name, and before all was there: as if nobody had made it.
TEST_F(StoreCommand, PutsAgainWhatWasNotMadeToTheEnd) {
  const std::string record = "oc:{catalog}:a";
  for (const std::string lease : {"0", "1"}) {  // given back; its time is over
    ASSERT_EQ(store("put " + path("file") + " " + uri("a")).status, 0);
    const std::string owner = lease == "0" ? "" : "process 1 on some host";
    servers_->ask(0, {"HSET", record, "state", "new", "lease", "9999999999999", "owner", "me"});
    EXPECT_NE(store("verify " + uri("a")).err.find("just being made by me"), std::string::npos);
    servers_->ask(0, {"HSET", record, "lease", lease, "owner", owner, "owner_id", owner});
    for (const std::string& words : {"get " + uri("a") + " " + path("out"), "verify " + uri("a")}) {
      const Outcome refused = store(words);
      EXPECT_EQ(refused.status, 1) << words;
      EXPECT_NE(refused.err.find("its making did not end: put it again, or remove it (`outcore "
                                 "store rm`)"),
                std::string::npos)
          << refused.err;
    }
    EXPECT_NE(store("ls " + uri("")).out.find("a  incomplete"), std::string::npos);
    const Outcome put = store("put " + path("file") + " " + uri("a"));
    EXPECT_EQ(put.status, 0) << put.err;
    EXPECT_EQ(store("verify " + uri("a") + " " + path("file")).status, 0);
    servers_->ask(0, {"HSET", record, "state", "new"});
    EXPECT_EQ(store("rm " + uri("a")).status, 0);
  }
}

// What an Outcore that knows nothing of this has opened for writing since is as it was before.
TEST_F(StoreCommand, TakesWhatAnotherWriterHasHadSinceAsItIs) {
  ASSERT_EQ(store("put " + path("file") + " " + uri("a")).status, 0);
  const std::string record = "oc:{catalog}:a";
  const std::string token = servers_->ask(0, {"HGET", record, "token"}).text;
  servers_->ask(0, {"HSET", record, "incomplete", token});
  EXPECT_EQ(store("verify " + uri("a")).status, 1);
  servers_->ask(0, {"HINCRBY", record, "token", "1"});
  EXPECT_EQ(store("verify " + uri("a")).status, 0);
}

TEST_F(StoreCommand, RefusesWhatIsJustPutOrWasKilled) {
  std::filesystem::resize_file(path("file"), 64 << 20);
  const std::string record = "oc:{catalog}:a";
  int status = 0;
  for (int attempt = 0; attempt < 5 && status == 0; ++attempt) {
    store("rm " + uri("a"));
    const std::string command = "exec " + command_path() + " store put " + path("file") + " " +
                                "'" + servers_->uri("a", "replicas=0") + "'";
    const pid_t child = start_until_ready(command, record);
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, &status, 0), child);  // 0: it was complete before
  }
  const Outcome early = store("get " + uri("a") + " " + path("out"));
  EXPECT_EQ(early.status, 1);
  EXPECT_NE(early.err.find("is just putting it: wait for it"), std::string::npos) << early.err;
  servers_->ask(0, {"HSET", record, "lease", "0"});
  const Outcome late = store("get " + uri("a") + " " + path("out"));
  EXPECT_EQ(late.status, 1);
  EXPECT_NE(late.err.find("a copy into it did not end"), std::string::npos) << late.err;
  // A copy that is refused leaves it as it is.
  const std::string other = "'" + servers_->uri("a", "replicas=0&chunk=8k") + "'";
  EXPECT_EQ(store("put " + path("file") + " " + other).status, 1);
  EXPECT_EQ(store("get " + uri("a") + " " + path("out")).status, 1);
  EXPECT_EQ(store("put " + path("file") + " " + uri("a")).status, 0);
  EXPECT_EQ(store("verify " + uri("a") + " " + path("file")).status, 0);
}

// The server answers late: the interrupt comes while the command waits for it. What is there may be
// another's, who made it in between: it is told, and stays.
TEST_F(StoreCommand, TellsWhatItLeavesWhenItIsInterrupted) {
  const std::string interrupt =
      "timeout --preserve-status -s INT 0.7 " + command_path() + " store ";
  servers_->ask(0, {"CLIENT", "PAUSE", "1500", "WRITE"});
  Outcome outcome = outcome_of(interrupt + "put " + path("file") + " " + uri("a"));
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_EQ(outcome.error_lines(), 1u) << outcome.err;
  EXPECT_NE(outcome.err.find("interrupted"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("`outcore store rm` removes it"), std::string::npos) << outcome.err;
  EXPECT_EQ(store("rm " + uri("a")).status, 0);
  EXPECT_EQ(store("ls --json " + uri("")).out, "{\"stores\":[]}\n");
}

// One that stands still for longer than its lease finds the store of another, and lets it be.
TEST_F(StoreCommand, LeavesWhatAnotherHasTaken) {
  std::filesystem::resize_file(path("file"), 64 << 20);
  std::ofstream(path("other"), std::ios::binary) << std::string(3'000'000, 'o');
  const std::string patient = "'" + servers_->uri("a", "replicas=0") + "'";
  const std::string catalog = "oc:{catalog}:a";
  const std::string command = "exec " + command_path() + " store put " + path("file") + " " +
                              patient + " 2>" + path("told");
  int status = 0;
  for (int attempt = 0; attempt < 5 && status == 0; ++attempt) {
    store("rm " + uri("a"));
    const pid_t child = start_until_ready(command, catalog);
    ::kill(child, SIGSTOP);
    servers_->ask(0, {"HSET", catalog, "lease", "0"});
    const Outcome other = store("put --replace " + path("other") + " " + patient);
    EXPECT_EQ(other.status, 0) << other.err;
    ::kill(child, SIGCONT);
    ASSERT_EQ(::waitpid(child, &status, 0), child);  // 0: it was complete before it was stopped
  }
  std::ifstream told(path("told"));
  const std::string text(std::istreambuf_iterator<char>(told), {});
  EXPECT_EQ(WEXITSTATUS(status), 1) << text;
  EXPECT_NE(text.find("may be another process's now"), std::string::npos) << text;
  EXPECT_EQ(store("verify " + uri("a") + " " + path("other")).status, 0);
}

TEST_F(StoreCommand, RefusesInOneLine) {
  EXPECT_EQ(store("put " + path("file") + " " + uri("a")).status, 0);
  for (const std::string& words : std::initializer_list<std::string>{
           "put " + path("file") + " " + uri("a"), "get " + uri("none") + " " + path("x"),
           "put " + path("none") + " " + uri("b"), "rm " + uri("none"), "rm " + uri(""),
           "ls " + path("file"), "du redis://127.0.0.1:1/a", "verify " + uri("none"),
           "put " + path("file") + " 'redis://:wrong@" + servers_->address(0) + "/a'",
           "get " + uri("a") + " " + path("no/folder")}) {
    const Outcome outcome = store(words);
    EXPECT_TRUE(outcome.status == 1 || outcome.status == 2) << words;
    EXPECT_EQ(outcome.error_lines(), 1u) << words << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "") << words;
    EXPECT_EQ(outcome.err.find("give a size"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("cannot do that"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(store("ls " + dir()).status, 1);
  EXPECT_EQ(store("ls nosuch://x").status, 2);
  const Outcome file = store("rm " + path("file"));
  EXPECT_NE(file.err.find("a file or folder of this machine"), std::string::npos) << file.err;
  EXPECT_TRUE(std::filesystem::exists(path("file")));
}

}  // namespace
}  // namespace outcore::cli
