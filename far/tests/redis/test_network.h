// TestNetwork: a network namespace with one cable to this one, which can be cut and slowed down.
// As root. It goes with the test, also if that is killed: names are those of the process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace outcore::redis_test {

class TestNetwork {
 public:
  // False where this process may not have one, or there is no ip(8).
  static bool is_possible() {
    return ::geteuid() == 0 && run({"ip", "netns", "add", name()}) &&
           run({"ip", "netns", "del", name()});
  }

  TestNetwork() {
    const std::string near = cable(), far = cable() + "f";
    is_up_ = run({"ip", "netns", "add", name()}) &&
             run({"ip", "link", "add", near, "type", "veth", "peer", "name", far}) &&
             run({"ip", "link", "set", far, "netns", name()}) &&
             run({"ip", "addr", "add", near_host() + "/30", "dev", near}) &&
             run({"ip", "link", "set", near, "up"}) &&
             inside({"ip", "addr", "add", host() + "/30", "dev", far}) &&
             inside({"ip", "link", "set", far, "up"}) && inside({"ip", "link", "set", "lo", "up"});
  }
  ~TestNetwork() {
    run({"ip", "link", "del", cable()});
    run({"ip", "netns", "del", name()});
  }
  TestNetwork(const TestNetwork&) = delete;
  TestNetwork& operator=(const TestNetwork&) = delete;

  bool is_up() const { return is_up_; }
  static std::string name() { return "outcore-test-" + std::to_string(::getpid()); }
  // Where its servers are, and where they see this side: addresses for benchmarks (RFC 2544).
  static std::string host() { return address(2); }
  static std::string near_host() { return address(1); }

  // Nothing arrives from now on; nobody is told.
  bool cut() { return inside({"ip", "link", "set", cable() + "f", "down"}); }
  bool mend() { return inside({"ip", "link", "set", cable() + "f", "up"}); }
  // At most so many bits a second in either direction, as "20mbit".
  bool slow_down(const std::string& rate) {
    return run({"tc", "qdisc", "replace", "dev", cable(), "root", "tbf", "rate", rate, "burst",
                "32kbit", "latency", "400ms"}) &&
           inside({"tc", "qdisc", "replace", "dev", cable() + "f", "root", "tbf", "rate", rate,
                   "burst", "32kbit", "latency", "400ms"});
  }

 private:
  static std::string cable() { return "oc" + std::to_string(::getpid() % 1'000'000); }
  static std::string address(int last) {
    const int number = static_cast<int>(::getpid()) % 16'000;  // of a subnet of four addresses
    return "198.18." + std::to_string(number / 64) + "." + std::to_string(number % 64 * 4 + last);
  }
  static bool inside(std::vector<std::string> words) {
    words.insert(words.begin(), {"ip", "netns", "exec", name()});
    return run(words);
  }
  static bool run(std::vector<std::string> words) {
    const pid_t child = ::fork();
    if (child == 0) {
      std::vector<char*> pointers;
      for (std::string& word : words) pointers.push_back(word.data());
      pointers.push_back(nullptr);
      ::execvp(pointers[0], pointers.data());
      ::_exit(127);
    }
    int status = -1;
    return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
  }

  bool is_up_ = false;
};

}  // namespace outcore::redis_test
