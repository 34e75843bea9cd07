// HostServer: one Redis or Valkey server on this machine or another. It ends when this process
// does, in whatever way this process ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "far/commands/hosts_file.h"

namespace outcore::cli {

// Which server is to be started, and where.
struct ServerPlan {
  Host host;
  std::string place;    // "FILE:3": the line of its host
  std::string address;  // numeric; it listens there and is reached there
  bool is_started_here = false;
  uint64_t memory_bytes = 0;
  int copy_of = -1;          // index of the server that this is a copy of
  std::string why_not = {};  // not empty: it cannot be started
};

// The same for all servers of one run.
struct ServerAccess {
  std::vector<std::string> ssh;  // the command and its options
  std::string password;
};

// A shell holds the server, and a pipe (through ssh: a connection) holds the shell: when the
// shell's input ends, it ends the server. Its output is the log of the server, which says how the
// start goes; it must be read as long as the server runs. One thread.
class HostServer {
 public:
  enum class State { kIdle, kStarting, kUp, kNever, kDead };

  static constexpr int kPatienceSeconds = 60;  // of a server elsewhere that hears nothing from us
  static constexpr int kBeatSeconds = 10;
  static constexpr int kPortsMax = 16;  // how many ports are tried

  HostServer(ServerPlan plan, const ServerAccess& access);
  ~HostServer();
  HostServer(const HostServer&) = delete;
  HostServer& operator=(const HostServer&) = delete;

  // Its state is kStarting afterwards, or kNever. `primary`: the server of which this is a copy,
  // which is up; or nullptr.
  void start(const HostServer* primary);
  // Reads what the server has written. REQUIRES: output() can be read.
  void read_output();
  // Tells a server elsewhere that this process is still there. At least every kBeatSeconds.
  void beat();
  // Gives up a start that has neither succeeded nor failed.
  void fail(const std::string& why);
  // Asks it to end. Afterwards output() ends, and is_gone() becomes true.
  void end();
  bool is_gone() const;  // the shell, or ssh, has ended
  void kill();           // kills those of its processes that are on this machine

  const ServerPlan& plan() const { return plan_; }
  State state() const { return state_; }
  const std::string& why() const { return why_; }  // why it failed, or its last words
  int output() const { return output_; }           // -1: there is nothing to read
  std::string address() const;                     // "192.0.2.7:21234", "[fd00::7]:21234"

 private:
  void launch();
  std::string config() const;
  std::vector<std::string> command() const;
  void read_line(const std::string& line);
  void on_end_of_output();
  void close_pipes();

  const ServerPlan plan_;
  const ServerAccess& access_;
  State state_ = State::kIdle;
  std::string why_;
  std::string last_line_, unread_;
  std::string primary_;  // "192.0.2.7 21234"
  uint16_t port_ = 0;
  int ports_tried_ = 0;
  bool is_port_taken_ = false;
  pid_t process_ = -1;
  int input_ = -1, output_ = -1;
};

}  // namespace outcore::cli
