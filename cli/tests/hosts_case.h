// HostsCase: runs of `outcore run --hosts`, and a look at the servers that belong to them.
#pragma once

#include <signal.h>

#include <fstream>
#include <memory>

#include "cli/tests/command_line.h"
#include "far/tests/redis/test_servers.h"

namespace outcore::cli {

using redis_test::becomes;

inline std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();  // a process of /proc may go meanwhile: no bytes then
  return text.str();
}

// Zombies are none: who reaps them is the business of the system's init.
inline bool is_running(pid_t process) {
  const std::string stat = text_of_file("/proc/" + std::to_string(process) + "/stat");
  const size_t at = stat.rfind(") ");
  return at != std::string::npos && stat[at + 2] != 'Z' && stat[at + 2] != 'X';
}

// A server of OUTCORE_STORE.
struct FarServer {
  std::string host;
  uint16_t port = 0;
  std::string password;

  redis::Value ask(std::vector<std::string> words, const std::string& with) const {
    redis::Connection stream;
    redis::Address where;
    where.parse_numeric(host.c_str(), port);
    const redis::Access access{"", with, nullptr};
    redis::Value value;
    if (stream.open(where, access, base::now_ns() + 2'000'000'000) != 0) return value;
    static_cast<void>(redis::talk(stream, {std::move(words), 0, 0}, 0, &value));
    return value;
  }
  std::string setting(const std::string& name) const {
    const redis::Value value = ask({"CONFIG", "GET", name}, password);
    return value.items.size() == 2 ? value.items[1].text : "";
  }
  std::string info(const std::string& key) const {
    const std::string text = "\n" + ask({"INFO"}, password).text;
    const size_t at = text.find("\n" + key + ":");
    if (at == std::string::npos) return {};
    const size_t begin = at + key.size() + 2;
    return text.substr(begin, text.find('\r', begin) - begin);
  }
  bool answers() const { return ask({"PING"}, password).text == "PONG"; }
  pid_t process() const { return std::stoi("0" + info("process_id")); }
};

// far://:PASSWORD@HOST:PORT[+HOST:PORT],…?replicas=N
struct FarStore {
  std::string text, replicas;
  std::vector<FarServer> servers;
  std::vector<std::vector<FarServer>> copies;  // of each server: none or one

  static FarStore parse(const std::string& uri) {
    FarStore store{.text = uri, .replicas = {}, .servers = {}, .copies = {}};
    const std::string scheme = "far://:";
    const size_t at = uri.find('@'), query = uri.find("?replicas=");
    if (!uri.starts_with(scheme) || at == std::string::npos || query == std::string::npos)
      return store;
    store.replicas = uri.substr(query + 10);
    const std::string password = uri.substr(scheme.size(), at - scheme.size());
    const auto server = [&](const std::string& address) {
      const size_t colon = address.rfind(':');
      return FarServer{address.substr(0, colon),
                       static_cast<uint16_t>(std::stoi("0" + address.substr(colon + 1))), password};
    };
    std::istringstream groups(uri.substr(at + 1, query - at - 1));
    for (std::string group; std::getline(groups, group, ',');) {
      const size_t plus = group.find('+');
      store.servers.push_back(server(group.substr(0, plus)));
      store.copies.emplace_back();
      if (plus != std::string::npos) store.copies.back().push_back(server(group.substr(plus + 1)));
    }
    return store;
  }
};

class HostsCase : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    if (!redis_test::TestServers::is_installed())
      GTEST_SKIP() << "redis-server is not installed: tools/install_packages.sh engines";
  }
  ~HostsCase() override {
    if (program_ > 0) {
      ::kill(-program_, SIGKILL);
      ::waitpid(program_, nullptr, 0);
    }
    EXPECT_TRUE(becomes([&] { return keepers().empty(); })) << "a keeper is left behind";
  }

  void write_hosts(const std::string& lines) const { std::ofstream(path("hosts")) << lines; }
  // The shell's line that starts a run; `before`: variables.
  std::string line(const std::string& arguments, const std::string& before = "") const {
    return "OUTCORE_PRELOAD_LIBRARY=" + a_library() + " " + before + " " + command_path() +
           " run " + arguments;
  }
  Outcome start(const std::string& arguments, const std::string& before = "") const {
    return run_lines("sh", line(arguments, before));
  }
  Outcome start_with(const std::string& hosts, const std::string& arguments,
                     const std::string& before = "") const {
    write_hosts(hosts);
    return start("--hosts " + path("hosts") + " " + arguments, before);
  }

  // A run in the background, whose process group is its own: this program tells its store, then
  // does `script`. program() is the process that becomes the program.
  void begin(const std::string& hosts, const std::string& script = "exec sleep 300",
             const std::string& before = "", const std::string& options = "") {
    write_hosts(hosts);
    std::ofstream(path("script")) << "echo \"$OUTCORE_STORE\" > told && mv told store\n" + script +
                                         "\n";
    std::ofstream(path("begin"))
        << "exec env " + line(options + " --hosts " + path("hosts") + " -- sh ./script", before) +
               " > out 2> err < /dev/null\n";
    program_ = ::fork();
    if (program_ == 0) {
      ::setpgid(0, 0);
      if (::chdir(dir().c_str()) == 0) ::execlp("sh", "sh", "./begin", nullptr);
      ::_exit(127);
    }
    ::setpgid(program_, program_);
    ASSERT_TRUE(becomes([&] { return std::filesystem::exists(path("store")); })) << errors();
    std::istringstream told(text_of_file(path("store")));
    std::string uri;
    std::getline(told, uri);
    store_ = FarStore::parse(uri);
    for (const FarServer& server : all_servers()) {
      processes_.push_back(server.process());
      EXPECT_TRUE(is_running(processes_.back())) << server.host << ":" << server.port;
    }
    ASSERT_FALSE(processes_.empty()) << errors();
  }
  // How the program ended, as waitpid says it.
  int wait_for_program() {
    int status = -1;
    ::waitpid(program_, &status, 0);
    program_ = -1;
    return status;
  }
  // A line for whoever reads this pipe.
  void let_go(const std::string& pipe) const {
    int fd = -1;
    ASSERT_TRUE(becomes([&] {
      fd = ::open(path(pipe).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
      return fd != -1;
    })) << pipe;
    EXPECT_EQ(::write(fd, "\n", 1), 1);
    ::close(fd);
  }
  bool are_servers_gone() const {
    return becomes([&] {
      return std::none_of(processes_.begin(), processes_.end(), is_running) && keepers().empty();
    });
  }

  // Processes of this test that keep servers.
  std::vector<pid_t> keepers() const {
    std::vector<pid_t> all;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
      const std::string folder = entry.path();
      if (text_of_file(folder + "/comm") != "outcore-hosts\n") continue;
      if (text_of_file(folder + "/cmdline").find(dir()) == std::string::npos) continue;
      all.push_back(std::stoi("0" + entry.path().filename().string()));
    }
    return all;
  }
  std::vector<FarServer> all_servers() const {
    std::vector<FarServer> all = store_.servers;
    for (const auto& copies : store_.copies) all.insert(all.end(), copies.begin(), copies.end());
    return all;
  }
  const FarStore& store() const { return store_; }
  const std::vector<pid_t>& processes() const { return processes_; }
  pid_t program() const { return program_; }
  std::string errors() const { return text_of_file(path("err")); }

 private:
  pid_t program_ = -1;
  FarStore store_;
  std::vector<pid_t> processes_;
};

}  // namespace outcore::cli
