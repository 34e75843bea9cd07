// `outcore run --hosts`: real servers that are there while a program is, and no longer.
#include "cli/tests/hosts_case.h"

namespace outcore::cli {
namespace {

class Hosts : public HostsCase {
 protected:
  static constexpr const char* kTwo = "localhost 64M\nlocalhost 32M\nlocalhost 48M\n";
  static constexpr const char* kTwoAddresses = "localhost 64M\n127.0.0.1 64M\n127.0.0.2 32M\n";

  void expect_all_answer() const {
    for (const FarServer& server : all_servers())
      EXPECT_TRUE(server.answers()) << server.host << ":" << server.port;
  }
  // A redis-server in front of the real one, which leaves its number in a file: `lines` of sh.
  void put_in_front(const std::string& lines) const {
    std::filesystem::create_directory(path("bin"));
    std::ofstream(path("bin/redis-server"))
        << "#!/bin/sh\necho $$ >> " + path("numbers") + "\n" + lines + "\n";
    std::filesystem::permissions(path("bin/redis-server"), std::filesystem::perms::owner_all);
  }
  std::string in_front() const { return "PATH=" + path("bin") + ":$PATH"; }
  std::vector<pid_t> numbers() const {
    std::istringstream file(text_of_file(path("numbers")));
    std::vector<pid_t> all;
    for (pid_t number = 0; file >> number;) all.push_back(number);
    return all;
  }
};

constexpr const char* kRealServer = "exec /usr/bin/redis-server \"$@\"";

// -- What is started --

TEST_F(Hosts, AreServersInTheOrderOfTheirLinesWithTheirMemory) {
  begin("# a comment\nlocalhost 64M\n\n127.0.0.2 32M\nlocalhost 48M # twice\nlocalhost 16M\n");
  ASSERT_EQ(store().servers.size(), 3U) << store().text;
  EXPECT_EQ(store().replicas, "0");
  const char* const hosts[] = {"127.0.0.2", "127.0.0.1", "127.0.0.1"};
  const int sizes[] = {32, 48, 16};
  for (size_t i = 0; i < 3; ++i) {
    const FarServer& server = store().servers[i];
    EXPECT_EQ(server.host, hosts[i]);
    EXPECT_EQ(server.setting("maxmemory"), std::to_string(sizes[i] << 20));
    EXPECT_EQ(server.setting("maxmemory-policy"), "noeviction");
    EXPECT_EQ(server.setting("save"), "");
    EXPECT_TRUE(store().copies[i].empty());
    EXPECT_TRUE(server.port >= 20'000 && server.port < 32'768) << server.port;
  }
}

TEST_F(Hosts, AreOpenedByTheirPasswordOnlyAndAtTheirAddressOnly) {
  begin(kTwo);
  for (FarServer server : store().servers) {
    EXPECT_EQ(server.password.size(), 32U);
    EXPECT_TRUE(server.answers());
    EXPECT_NE(server.ask({"PING"}, "").text, "PONG");
    EXPECT_NE(server.ask({"PING"}, "guess").text, "PONG");
    server.host = "127.0.0.2";
    EXPECT_FALSE(server.answers());
  }
}

TEST_F(Hosts, HaveAPasswordThatNoListOfProcessesShows) {
  begin(kTwo);
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string words = text_of_file(entry.path().string() + "/cmdline");
    EXPECT_EQ(words.find(store().servers[0].password), std::string::npos) << words;
  }
}

TEST_F(Hosts, HaveTheBudgetOfTheFirstLineUnlessOneIsGiven) {
  const std::string show = "-- sh -c 'echo $OUTCORE_BUDGET'";
  EXPECT_EQ(start_with(kTwo, show).out, std::to_string(64 << 20) + "\n");
  EXPECT_EQ(start_with(kTwo, "--budget 7M " + show).out, "7M\n");
  EXPECT_EQ(start_with(kTwo, show, "OUTCORE_BUDGET=9M").out, "9M\n");
}

TEST_F(Hosts, MayBeNamedByTheVariableWhichTheProgramDoesNotGet) {
  write_hosts(kTwo);
  const Outcome outcome =
      start("-- sh -c 'echo $OUTCORE_STORE; echo \"[$OUTCORE_HOSTS$OUTCORE_RUN_REPLICAS]\"; " +
                command_path() + " run -q -- sh -c \"echo \\$OUTCORE_STORE\"'",
            "OUTCORE_HOSTS=hosts OUTCORE_RUN_REPLICAS=0");
  std::istringstream lines(outcome.out);
  std::string outer, variables, inner;
  std::getline(lines, outer), std::getline(lines, variables), std::getline(lines, inner);
  EXPECT_EQ(FarStore::parse(outer).servers.size(), 2U) << outcome.err;
  EXPECT_EQ(variables, "[]");
  EXPECT_EQ(inner, outer) << "the program's own runs use the same servers";
}

TEST_F(Hosts, MayBeNamedAsTheStoreWhichReachesTheProgram) {
  const Outcome outcome =
      start_with(kTwo, "-- sh -c 'echo $OUTCORE_STORE; store=$OUTCORE_STORE; " +
                           std::string("unset OUTCORE_STORE; ") + command_path() +
                           " run -q --store \"$store\" -- sh -c \"echo \\$OUTCORE_STORE\"'");
  std::istringstream lines(outcome.out);
  std::string outer, inner;
  std::getline(lines, outer), std::getline(lines, inner);
  EXPECT_EQ(FarStore::parse(outer).servers.size(), 2U) << outcome.err;
  EXPECT_EQ(inner, outer) << outcome.err;
}

TEST_F(Hosts, TryAnotherPortWhereOneIsTaken) {
  put_in_front(
      "config=$(cat)\nport=$(echo \"$config\" | sed -n 's/^port //p')\n"
      "if [ -e " +
      path("first") +
      " ]; then echo \"$config\" | /usr/bin/redis-server -; exit; fi\n"
      "echo $port > " +
      path("first") +
      "\n"
      "echo \"$config\" | python3 -c 'import socket, subprocess, sys\n"
      "taken = socket.create_server((\"127.0.0.1\", int(sys.argv[1])))\n"
      "subprocess.run([\"/usr/bin/redis-server\", \"-\"])' $port");
  const Outcome outcome =
      start_with("localhost 64M\nlocalhost 32M\n", "-- sh -c 'echo $OUTCORE_STORE'", in_front());
  const FarStore store = FarStore::parse(outcome.out);
  ASSERT_EQ(store.servers.size(), 1U) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(std::to_string(store.servers[0].port) + "\n", text_of_file(path("first")));
}

// -- The program --

TEST_F(Hosts, LeaveTheProgramItsInputOutputAndStatus) {
  write_hosts(kTwo);
  const Outcome outcome =
      run_lines("sh", "printf 'a\\0b' | " + line("--hosts hosts -- sh -c 'cat; exit 42'"));
  EXPECT_EQ(outcome.out, std::string("a\0b", 3));
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.status, 42);
}

TEST_F(Hosts, LeaveOneMoreDescriptorToTheProgram) {
  const std::string list = "sh -c 'for f in /proc/$$/fd/*; do echo ${f##*/}; done'";
  const Outcome with = start_with(kTwo, "-- " + list), without = start(list);
  const auto count = [](const Outcome& outcome) {
    return std::count(outcome.out.begin(), outcome.out.end(), '\n');
  };
  EXPECT_EQ(count(with), count(without) + 1) << with.out;
  std::istringstream numbers(with.out);
  int last = 0;
  for (int number = 0; numbers >> number;) last = std::max(last, number);
  EXPECT_GE(last, 900);
}

TEST_F(Hosts, AreNoChildrenOfTheProgram) {
  const Outcome outcome = start_with(kTwo,
                                     "-- python3 -c 'import os\n"
                                     "try: os.waitpid(-1, 0)\n"
                                     "except ChildProcessError: print(\"none\")'");
  EXPECT_EQ(outcome.out, "none\n") << outcome.err;
}

// -- The end --

TEST_F(Hosts, EndWithTheProgram) {
  begin(kTwo, "mkfifo go; read line < go; exit 3");
  let_go("go");
  const int status = wait_for_program();
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_TRUE(are_servers_gone());
  EXPECT_EQ(errors(), "");
}

TEST_F(Hosts, EndWithAProgramThatIsKilled) {
  begin(kTwo);
  ::kill(program(), SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(wait_for_program()));
  EXPECT_TRUE(are_servers_gone());
}

TEST_F(Hosts, EndWhenTheirKeeperIsKilledAndTheProgramGoesOn) {
  begin(kTwoAddresses, "exec sleep 300", "", "--replicas 1");
  ASSERT_EQ(processes().size(), 4U);
  ASSERT_EQ(keepers().size(), 1U);
  ::kill(keepers()[0], SIGKILL);
  EXPECT_TRUE(are_servers_gone());
  EXPECT_TRUE(is_running(program()));
}

TEST_F(Hosts, EndWhenTheirKeeperIsAskedTo) {
  begin(kTwo);
  ::kill(keepers()[0], SIGTERM);
  EXPECT_TRUE(are_servers_gone());
  EXPECT_TRUE(is_running(program()));
  EXPECT_NE(errors().find("were told to end"), std::string::npos) << errors();
}

TEST_F(Hosts, StayWhenTheTerminalInterruptsAProgramThatGoesOn) {
  begin(kTwo, "trap 'touch asked' INT; mkfifo stop; until read line < stop; do :; done");
  // The trap is set before it.
  ASSERT_TRUE(becomes([&] { return std::filesystem::exists(path("stop")); }));
  ::kill(-program(), SIGINT);
  EXPECT_TRUE(becomes([&] { return std::filesystem::exists(path("asked")); }));
  expect_all_answer();
  EXPECT_EQ(keepers().size(), 1U);
}

TEST_F(Hosts, StayForAChildThatGoesOnInTheBackground) {
  begin(kTwo, "mkfifo stop; (read line < stop) & exit 0");
  EXPECT_EQ(wait_for_program(), 0);
  expect_all_answer();
  EXPECT_EQ(keepers().size(), 1U);
  let_go("stop");
  EXPECT_TRUE(are_servers_gone());
}

TEST_F(Hosts, EndWhereTheProgramIsNotThere) {
  put_in_front(kRealServer);
  const Outcome outcome = start_with(kTwo, "-- no-such-program", in_front());
  EXPECT_EQ(outcome.status, 127);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_EQ(numbers().size(), 2U);
  EXPECT_TRUE(becomes([&] {
    const std::vector<pid_t> all = numbers();
    return std::none_of(all.begin(), all.end(), is_running) && keepers().empty();
  }));
}

// -- Copies --

TEST_F(Hosts, HaveTheirCopiesOnTheNextInARing) {
  begin(kTwoAddresses, "exec sleep 300", "", "--replicas 1");
  ASSERT_EQ(store().servers.size(), 2U) << store().text;
  EXPECT_EQ(store().replicas, "1");
  for (size_t i = 0; i < 2; ++i) {
    const FarServer& server = store().servers[i];
    ASSERT_EQ(store().copies[i].size(), 1U) << store().text;
    const FarServer& copy = store().copies[i][0];
    EXPECT_EQ(server.host, i == 0 ? "127.0.0.1" : "127.0.0.2");
    EXPECT_EQ(copy.host, i == 0 ? "127.0.0.2" : "127.0.0.1");
    EXPECT_EQ(copy.info("role"), "slave");
    EXPECT_EQ(copy.info("master_port"), std::to_string(server.port));
    for (const FarServer* one : {&server, &copy})
      EXPECT_EQ(one->setting("maxmemory"), std::to_string(16 << 20)) << "half of the smaller";
    EXPECT_EQ(server.ask({"SET", "key", "value"}, server.password).text, "OK");
    EXPECT_TRUE(becomes([&] { return copy.ask({"GET", "key"}, copy.password).text == "value"; }));
  }
}

TEST_F(Hosts, SayThatTheRunGoesOnByACopy) {
  begin(kTwoAddresses, "exec sleep 300", "", "--replicas 1");
  ::kill(store().servers[1].process(), SIGKILL);
  EXPECT_TRUE(becomes([&] { return errors().find('\n') != std::string::npos; }));
  EXPECT_NE(errors().find("the server on 127.0.0.2"), std::string::npos) << errors();
  EXPECT_NE(errors().find("goes on by its copy on 127.0.0.1"), std::string::npos) << errors();
}

TEST_F(Hosts, SayWhatIsLostWithoutACopy) {
  begin("localhost 64M\nlocalhost 32M\n127.0.0.2 32M\n");
  ::kill(store().servers[1].process(), SIGKILL);
  EXPECT_TRUE(becomes([&] { return errors().find('\n') != std::string::npos; }));
  EXPECT_NE(errors().find("the server on 127.0.0.2"), std::string::npos) << errors();
  EXPECT_NE(errors().find("what it held is lost"), std::string::npos) << errors();
  EXPECT_TRUE(store().servers[0].answers());
}

}  // namespace
}  // namespace outcore::cli
