// TestServers: real redis-servers on this machine for one test: one, or a cluster. They end with
// the test, also if it is killed.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "far/redis/call.h"
#include "tests/folder.h"

namespace outcore::redis_test {

inline constexpr char kPassword[] = "open sesame";

struct ServerOptions {
  int masters = 0;  // 0: one server that is no cluster
  int replicas = 1;
  std::string maxmemory = "256mb";
  std::string tls_folder;         // with ca.crt, node.crt and node.key: TLS on a port of its own
  std::vector<std::string> more;  // of each server's command line
  std::string host = "127.0.0.1";
  bool is_fresh = false;  // its replicas have got nothing yet, not even a ping
  std::string network;    // namespace that it lives in; empty: this one
};

// Waits for a condition with a bound.
inline bool becomes(const std::function<bool()>& is_true, int seconds_max = 60) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds_max);
  while (!is_true()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // banned-ok: between two looks
  }
  return true;
}

class TestServers {
 public:
  static bool is_installed() {
    for (const char* const path : {"/usr/bin/redis-server", "/usr/local/bin/redis-server"})
      if (::access(path, X_OK) == 0) return true;
    return false;
  }

  explicit TestServers(ServerOptions options = {}) : options_(std::move(options)) {
    const int count = options_.masters == 0 ? 1 : options_.masters * (1 + options_.replicas);
    for (int i = 0; i < count; ++i) {
      servers_.push_back(
          {take_port(), options_.tls_folder.empty() ? uint16_t{0} : take_port(), -1});
      start(i);
    }
    for (int i = 0; i < count; ++i) EXPECT_TRUE(answers(i)) << log(i);
    if (options_.masters != 0) make_cluster();
  }
  ~TestServers() {
    for (int i = 0; i < count(); ++i) kill(i);
    for (const int fd : held_) ::close(fd);
  }
  TestServers(const TestServers&) = delete;
  TestServers& operator=(const TestServers&) = delete;

  int count() const { return static_cast<int>(servers_.size()); }
  std::string address(int i) const {
    return options_.host + ":" + std::to_string(servers_[i].port);
  }
  std::string uri(const std::string& name, const std::string& parameters = {}) const {
    std::string hosts;
    for (int i = 0; i < count(); ++i) hosts += (i == 0 ? "" : ",") + address(i);
    return "redis://:open%20sesame@" + hosts + "/" + name +
           (parameters.empty() ? "" : "?" + parameters);
  }

  // As the other servers of a replica name them.
  std::vector<std::string> as_master(int i) const {
    return {"--replicaof", options_.host, std::to_string(servers_[i].port)};
  }

  // Of the first, by TLS.
  std::string tls_uri(const std::string& name, const std::string& parameters) const {
    return "redis://:open%20sesame@127.0.0.1:" + std::to_string(servers_[0].tls_port) + "/" + name +
           "?tls=1&" + parameters;
  }

  void start(int i) {
    const std::string port = std::to_string(servers_[i].port), folder = folder_ / port;
    std::filesystem::create_directories(folder);
    // A replica counts as one once it has got something: a ping, if nothing else.
    std::vector<std::string> words;
    if (!options_.network.empty()) words = {"ip", "netns", "exec", options_.network};
    words.insert(words.end(), {"redis-server", "--port", port, "--dir", folder});
    const auto add = [&](std::initializer_list<const char*> more) {
      words.insert(words.end(), more.begin(), more.end());
    };
    add({"--bind", options_.host.c_str(), "--save", "", "--appendonly", "no"});
    add({"--requirepass", kPassword, "--masterauth", kPassword});
    add({"--maxmemory", options_.maxmemory.c_str(), "--maxmemory-policy", "noeviction"});
    add({"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"});
    add({"--repl-ping-replica-period", options_.is_fresh ? "3600" : "1"});
    if (options_.masters != 0)
      add({"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
           "--cluster-node-timeout", "300"});
    const std::string& tls = options_.tls_folder;
    if (!tls.empty())
      add({"--tls-port", std::to_string(servers_[i].tls_port).c_str(), "--tls-cert-file",
           (tls + "/node.crt").c_str(), "--tls-key-file", (tls + "/node.key").c_str(),
           "--tls-ca-cert-file", (tls + "/ca.crt").c_str(), "--tls-auth-clients", "optional"});
    words.insert(words.end(), options_.more.begin(), options_.more.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const std::string log_path = folder + "/log";
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      const int fd = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      ::dup2(fd, 1);
      ::dup2(fd, 2);
      ::execvp(pointers[0], pointers.data());
      ::_exit(127);
    }
    servers_[i].process = child;
  }
  void kill(int i) {
    if (servers_[i].process < 0) return;
    ::kill(servers_[i].process, SIGKILL);
    ::waitpid(servers_[i].process, nullptr, 0);
    servers_[i].process = -1;
  }
  // Starts it as a server that knows no other and has no bytes.
  void start_alone(int i) {
    options_.more.clear();
    start(i);
    EXPECT_TRUE(answers(i)) << log(i);
  }
  void send(int i, int signal) { ::kill(servers_[i].process, signal); }

  // The answer of one server; "" if there is none.
  redis::Value ask(int i, std::vector<std::string> words) {
    redis::Connection stream;
    redis::Address where;
    where.parse_numeric(options_.host, servers_[i].port);
    const redis::Access access{"", kPassword, nullptr};
    const uint64_t until_ns = base::now_ns() + 2'000'000'000;
    redis::Value value;
    if (stream.open(where, access, until_ns) != 0) return value;
    static_cast<void>(redis::talk(stream, {std::move(words), 0, 0}, 0, &value));
    return value;
  }
  std::string info(int i, const std::string& key) {
    const std::string text = "\n" + ask(i, {"INFO"}).text;
    const size_t at = text.find("\n" + key + ":");
    if (at == std::string::npos) return {};
    const size_t begin = at + key.size() + 2;
    return text.substr(begin, text.find('\r', begin) - begin);
  }
  bool answers(int i) {
    return becomes([&] { return ask(i, {"PING"}).text == "PONG"; }, 20);
  }
  // One that has slots now and runs.
  int some_master() {
    for (int i = 0; i < count(); ++i)
      if (servers_[i].process >= 0 && info(i, "role") == "master") return i;
    return -1;
  }

 private:
  struct Server {
    uint16_t port, tls_port;
    pid_t process;
  };

  // Also the port of the cluster's own talk, 10000 above, is free. Both lie below those that the
  // system gives to whoever connects.
  uint16_t take_port() {
    static uint16_t next = static_cast<uint16_t>(10'000 + ::getpid() % 1100 * 10);
    for (;;) {
      const uint16_t port = next++;
      if (next > 22'000) next = 10'000;
      if (hold(port) && hold(static_cast<uint16_t>(port + 10'000))) return port;
    }
  }
  // No other test gets the port, also while its server is dead. Sockets that share an address may
  // be bound beside ours, as those of servers are, and one of them may listen.
  bool hold(uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    held_.push_back(fd);
    return ::bind(fd, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0 &&
           ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0;
  }
  std::string log(int i) const {
    return folder_ / std::to_string(servers_[i].port) + "/log: does not answer";
  }

  void make_cluster() {
    const int masters = options_.masters;
    for (int i = 0; i < masters; ++i) {
      const int first = 16384 * i / masters, last = 16384 * (i + 1) / masters - 1;
      ask(i, {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
      ask(i, {"CLUSTER", "ADDSLOTSRANGE", std::to_string(first), std::to_string(last)});
    }
    for (int i = 0; i < count(); ++i)  // everybody: gossip alone takes seconds
      for (int j = 0; j < i; ++j)
        ask(i, {"CLUSTER", "MEET", options_.host, std::to_string(servers_[j].port)});
    for (int i = masters; i < count(); ++i) {
      const std::string id = ask(i % masters, {"CLUSTER", "MYID"}).text;
      EXPECT_TRUE(becomes([&] {
        return ask(i, {"CLUSTER", "REPLICATE", id}).text == "OK";
      })) << log(i);
    }
    for (int i = 0; i < count(); ++i) EXPECT_TRUE(becomes([&] { return is_ready(i); })) << log(i);
  }
  bool is_ready(int i) {
    const std::string text = ask(i, {"CLUSTER", "INFO"}).text;
    if (text.find("cluster_state:ok") == std::string::npos) return false;
    const redis::Value slots = ask(i, {"CLUSTER", "SLOTS"});
    if (slots.items.size() != static_cast<size_t>(options_.masters)) return false;
    for (const redis::Value& range : slots.items)
      if (!options_.is_fresh && range.items.size() != 3 + static_cast<size_t>(options_.replicas))
        return false;
    return i < options_.masters || info(i, "master_link_status") == "up";
  }

  ServerOptions options_;
  scene::Folder folder_;
  std::vector<int> held_;  // sockets
  std::vector<Server> servers_;
};

}  // namespace outcore::redis_test
