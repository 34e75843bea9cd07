// `outcore run --hosts` by ssh: with a stand-in for what cannot be provoked, with a real sshd on
// this machine, and with one in a network of its own.
#include "cli/tests/hosts_case.h"

namespace outcore::cli {
namespace {

constexpr const char* kSshd = "/usr/sbin/sshd";

// Whoever names a user goes by ssh, also to this machine.
class HostsBySsh : public HostsCase {
 protected:
  static std::string user() {
    const char* const name = std::getenv("USER");
    return name != nullptr && *name != 0 ? name : "somebody";
  }
  // A command in place of ssh, `lines` of sh: "$last" is what the host is to do.
  std::string stand_in(const std::string& lines) const {
    const std::string file = path("stand-in");
    std::ofstream(file) << "#!/bin/sh\necho \"$@\" >> " + path("asked") +
                               "\nfor last do :; done\n" + lines + "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return "OUTCORE_SSH='" + file + " -p 22'";
  }
  std::string asked() const { return text_of_file(path("asked")); }
};

TEST_F(HostsBySsh, GetTheirOptionsTheirHostAndNoPassword) {
  begin("localhost 64M\n" + user() + "@127.0.0.2 32M\n", "exec sleep 300",
        stand_in("exec sh -c \"$last\""));
  ASSERT_EQ(store().servers.size(), 1U);
  EXPECT_EQ(store().servers[0].host, "127.0.0.2");
  EXPECT_EQ(store().servers[0].setting("maxmemory"), std::to_string(32 << 20));
  EXPECT_EQ(asked().rfind("-p 22 -o BatchMode=yes", 0), 0U) << asked();
  EXPECT_NE(asked().find(" " + user() + "@127.0.0.2 exec sh -c '"), std::string::npos) << asked();
  EXPECT_EQ(asked().find(store().servers[0].password), std::string::npos);
}

TEST_F(HostsBySsh, AreWarnedOfWhereTheyCannotBeReachedAndTheRestGoesOn) {
  const std::string ssh = stand_in(
      "case \"$*\" in *198.51.100.1*) echo 'ssh: no route' >&2; exit 255;; esac\n"
      "exec sh -c \"$last\"");
  const std::string lines =
      "localhost 64M\n127.0.0.2 16M\n198.51.100.1 32M\n" + user() + "@127.0.0.1 48M\n";
  const std::string show = "-- sh -c 'echo $OUTCORE_STORE'";
  const Outcome outcome = start_with(lines, show, ssh);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("hosts:3: 198.51.100.1: ssh: no route; the run goes on without it"),
            std::string::npos)
      << outcome.err;
  const FarStore store = FarStore::parse(outcome.out);
  ASSERT_EQ(store.servers.size(), 2U) << outcome.out;
  EXPECT_EQ(store.servers[0].host, "127.0.0.2");
  EXPECT_EQ(store.servers[1].host, "127.0.0.1");
  EXPECT_EQ(start_with(lines, "--quiet " + show, ssh).err, "");
  const Outcome with_copies = start_with(lines, "--replicas 1 -- touch made", ssh);
  EXPECT_EQ(with_copies.status, 1);
  EXPECT_EQ(with_copies.error_lines(), 1U) << with_copies.err;
  EXPECT_NE(with_copies.err.find("198.51.100.1: ssh: no route"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path("made")));
}

TEST_F(HostsBySsh, AreRefusedInOneLineWhereNoneCanBeReached) {
  const std::string lines = "localhost 64M\n198.51.100.1 32M\n198.51.100.2 32M\n";
  Outcome outcome =
      start_with(lines, "-- touch made", stand_in("echo 'ssh: no route' >&2; exit 255"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  for (const char* said : {"no host of", "hosts:2: 198.51.100.1: ssh: no route", "hosts:3:"})
    EXPECT_NE(outcome.err.find(said), std::string::npos) << said << " in: " << outcome.err;
  outcome = start_with(lines, "-- touch made", "OUTCORE_SSH=/no/ssh");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("/no/ssh: No such file"), std::string::npos) << outcome.err;
  outcome = start_with(lines, "-- touch made",
                       stand_in("last=$(echo \"$last\" | sed 's/redis-server valkey-server/no-r "
                                "no-v/')\nexec sh -c \"$last\""));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("install redis-server or valkey-server"), std::string::npos)
      << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(path("made")));
  EXPECT_TRUE(becomes([&] { return keepers().empty(); }));
}

TEST_F(HostsBySsh, AreToldWhereTheAddressIsNotTheHosts) {
  const Outcome outcome =
      start_with("localhost 64M\n198.51.100.1 32M\n", "-- true", stand_in("exec sh -c \"$last\""));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("198.51.100.1 is not one of its own addresses"), std::string::npos)
      << outcome.err;
}

TEST_F(HostsBySsh, LeaveNothingOfAStartThatIsKilled) {
  write_hosts("localhost 64M\n198.51.100.1 32M\n");
  const std::string ssh =
      stand_in("echo $$ > number.new && mv number.new " + path("number") + "; exec sleep 300");
  std::ofstream(path("begin")) << "exec env " + line("--hosts " + path("hosts") + " true", ssh) +
                                      "\n";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::chdir(dir().c_str()) == 0) ::execlp("sh", "sh", "./begin", nullptr);
    ::_exit(127);
  }
  EXPECT_TRUE(becomes([&] { return std::filesystem::exists(path("number")); }));
  EXPECT_EQ(keepers().size(), 1U);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const pid_t number = std::stoi("0" + text_of_file(path("number")));
  EXPECT_TRUE(becomes([&] { return keepers().empty() && !is_running(number); }));
}

// -- A real sshd --

class HostsByRealSsh : public HostsBySsh {
 protected:
  void SetUp() override {
    HostsBySsh::SetUp();
    if (IsSkipped()) return;
    if (::access(kSshd, X_OK) != 0)
      GTEST_SKIP() << "sshd is not installed: tools/install_packages.sh engines";
    if (::geteuid() != 0) GTEST_SKIP() << "sshd would need a password of whoever is not root";
    std::filesystem::create_directories("/run/sshd");  // where it locks itself in
    for (const char* key : {"host", "own"})
      ASSERT_EQ(outcome_of("ssh-keygen -q -t ed25519 -N '' -f " + path(key)).status, 0);
    std::filesystem::copy_file(path("own.pub"), path("authorized"));
  }
  ~HostsByRealSsh() override {
    if (sshd_ > 0) {
      ::kill(sshd_, SIGKILL);
      ::waitpid(sshd_, nullptr, 0);
    }
  }
  // In front of it: what puts it elsewhere.
  void start_sshd(const std::string& address, const std::string& in_front = "") {
    const std::string command =
        "exec " + in_front + kSshd + " -D -e -f /dev/null -h " + path("host") +
        " -o ListenAddress=" + address + " -o Port=" + port_ +
        " -o PidFile=none -o UsePAM=no -o StrictModes=no" +
        " -o PermitRootLogin=yes -o AuthorizedKeysFile=" + path("authorized") + " 2> " +
        path("sshd.log");
    sshd_ = ::fork();
    if (sshd_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::execlp("sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    ASSERT_TRUE(becomes([&] {
      return text_of_file(path("sshd.log")).find("Server listening") != std::string::npos;
    })) << text_of_file(path("sshd.log"));
  }
  std::string ssh() const {
    return "OUTCORE_SSH='ssh -F none -p " + port_ + " -i " + path("own") +
           " -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null'";
  }
  void expect_log() const { EXPECT_FALSE(HasFailure()) << text_of_file(path("sshd.log")); }

 private:
  const std::string port_ = std::to_string(18'000 + ::getpid() % 2000);
  pid_t sshd_ = -1;
};

TEST_F(HostsByRealSsh, EndWithTheProgramWithItsKeeperAndWithTheConnection) {
  start_sshd("127.0.0.1");
  const std::string lines = "localhost 64M\nroot@127.0.0.1 32M\n127.0.0.2 16M\n";
  begin(lines, "mkfifo go; read line < go", ssh());
  ASSERT_EQ(store().servers.size(), 2U) << errors();
  let_go("go");
  EXPECT_EQ(wait_for_program(), 0);
  EXPECT_TRUE(are_servers_gone());
  EXPECT_EQ(errors(), "");
  expect_log();
}

TEST_F(HostsByRealSsh, EndWhenTheirKeeperIsKilled) {
  start_sshd("127.0.0.1");
  begin("localhost 64M\nroot@127.0.0.1 32M\nroot@127.0.0.1 16M\n", "exec sleep 300", ssh());
  ASSERT_EQ(processes().size(), 2U) << errors();
  ::kill(keepers()[0], SIGKILL);
  EXPECT_TRUE(are_servers_gone());
  expect_log();
}

TEST_F(HostsByRealSsh, AreRefusedWithTheWordsOfSsh) {
  start_sshd("127.0.0.1");
  std::ofstream(path("authorized")) << "\n";
  const Outcome outcome = start_with("localhost 64M\nroot@127.0.0.1 32M\n", "-- true", ssh());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("Permission denied"), std::string::npos) << outcome.err;
}

// A machine with an address of its own, as far as networks go: it shares processes and files.
class HostsElsewhere : public HostsByRealSsh {
 protected:
  // Of a subnet of this process: other tests have networks of their own meanwhile.
  static std::string address(int last) {
    const int number = static_cast<int>(::getpid()) % 16'000;
    return "198.19." + std::to_string(number / 64) + "." + std::to_string(number % 64 * 4 + last);
  }
  const std::string here_ = address(1), there_ = address(2);

  void SetUp() override {
    HostsByRealSsh::SetUp();
    if (IsSkipped()) return;
    net_ = "oc" + std::to_string(::getpid());
    if (outcome_of("ip netns add " + net_).status != 0)
      GTEST_SKIP() << "no network can be made here: it takes root and ip";
    const std::string there = "ip -n " + net_;
    const Outcome made = run_lines(
        "sh -e", "ip link add " + net_ + "a type veth peer name " + net_ + "b netns " + net_ +
                     "\nip addr add " + here_ + "/30 dev " + net_ + "a\nip link set " + net_ +
                     "a up\n" + there + " addr add " + there_ + "/30 dev " + net_ + "b\n" + there +
                     " link set " + net_ + "b up\n" + there + " link set lo up\n");
    if (made.status != 0) GTEST_SKIP() << "no network can be made here: " << made.err;
    start_sshd(there_, "ip netns exec " + net_ + " ");
  }
  ~HostsElsewhere() override {
    if (!net_.empty()) outcome_of("ip link del " + net_ + "a; ip netns del " + net_);
  }

 private:
  std::string net_;
};

TEST_F(HostsElsewhere, GiveTheirMemoryAtTheirAddress) {
  begin("localhost 64M\nlocalhost 16M\n" + std::string(there_) + " 32M\n",
        "mkfifo go; read line < go", ssh());
  ASSERT_EQ(store().servers.size(), 2U) << errors();
  EXPECT_EQ(store().servers[0].host, "127.0.0.1");
  EXPECT_EQ(store().servers[1].host, there_);
  EXPECT_EQ(store().servers[1].setting("bind"), there_);
  let_go("go");
  EXPECT_EQ(wait_for_program(), 0);
  EXPECT_TRUE(are_servers_gone());
  EXPECT_EQ(errors(), "");
  expect_log();
}

TEST_F(HostsElsewhere, CopyToAndFromThisMachine) {
  begin("localhost 64M\nlocalhost 32M\n" + std::string(there_) + " 32M\n", "exec sleep 300", ssh(),
        "--replicas 1");
  ASSERT_EQ(store().copies.size(), 2U) << errors();
  EXPECT_EQ(store().servers[0].host, here_) << "the copy there cannot reach a loopback here";
  EXPECT_EQ(store().copies[0][0].host, there_);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(store().copies[i][0].info("master_link_status"), "up");
  ::kill(program(), SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(wait_for_program()));
  EXPECT_TRUE(are_servers_gone());
  expect_log();
}

}  // namespace
}  // namespace outcore::cli
