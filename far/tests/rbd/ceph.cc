#include "far/tests/rbd/ceph.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "tests/folder.h"
#include "tests/places.h"

namespace outcore::rbd_test {
namespace {

Ceph* started_ceph = nullptr;

bool is_program(const std::string& name) {
  for (const char* folder : {"/usr/bin/", "/usr/sbin/", "/usr/local/bin/"})
    if (::access((folder + name).c_str(), X_OK) == 0) return true;
  return false;
}

// A child of nobody here: who ends our children does not end it before it has tidied up.
void run_detached(const std::string& script, const std::string& folder, int input, int output) {
  const pid_t child = ::fork();
  if (child != 0) {
    ::waitpid(child, nullptr, 0);
    return;
  }
  ::setsid();
  if (::fork() != 0) ::_exit(0);
  const int nothing = ::open("/dev/null", O_WRONLY);
  ::dup2(input, 0);
  ::dup2(output, 1);
  ::dup2(nothing, 2);
  ::close_range(3, ~0u, 0);
  ::execl(script.c_str(), script.c_str(), folder.c_str(), nullptr);
  ::_exit(127);
}

class EndsCeph : public testing::Environment {
 public:
  void TearDown() override {
    if (started_ceph != nullptr) started_ceph->stop();
  }
};
[[maybe_unused]] testing::Environment* const ends_ceph =
    testing::AddGlobalTestEnvironment(new EndsCeph);

}  // namespace

std::string Ceph::why_not() {
  for (const char* program : {"ceph-mon", "ceph-osd", "ceph", "rbd", "setpriv"})
    if (!is_program(program))
      return std::string(program) + " is not installed: tools/install_packages.sh engines";
  return {};
}

Ceph& Ceph::instance() {
  static Ceph* const ceph = started_ceph = new Ceph;
  return *ceph;
}

Ceph::Ceph() : folder_(scene::usual_parent() + "/outcore-ceph-XXXXXX") {
  ::signal(SIGPIPE, SIG_IGN);
  int commands[2], answers[2];
  if (::mkdtemp(folder_.data()) == nullptr || ::pipe2(commands, O_CLOEXEC) != 0 ||
      ::pipe2(answers, O_CLOEXEC) != 0) {
    ::perror("the folder of the Ceph cluster");
    ::abort();
  }
  run_detached(scene::source_folder() + "/far/tests/rbd/ceph_cluster.sh", folder_, commands[0],
               answers[1]);
  ::close(commands[0]);
  ::close(answers[1]);
  commands_ = commands[1];
  answers_ = ::fdopen(answers[0], "r");
  char line[512] = "no answer";
  if (std::fgets(line, sizeof line, answers_) == nullptr || std::string(line) != "ready\n") {
    std::fprintf(stderr, "ceph_cluster.sh: %s\n", line);
    ::abort();
  }
}

void Ceph::stop() {
  ::close(commands_);
  char line[512];
  while (std::fgets(line, sizeof line, answers_) != nullptr) {
  }
  EXPECT_FALSE(std::filesystem::exists(folder_)) << "the cluster left something behind";
}

std::string Ceph::tell(const std::string& command) {
  const std::string line = command + "\n";
  if (::write(commands_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return "the cluster's script has ended";
  char answer[512];
  if (std::fgets(answer, sizeof answer, answers_) == nullptr) return "no answer to " + command;
  return std::string(answer) == "done\n" ? "" : command + " " + answer;
}

std::string Ceph::monitor() const {
  std::ifstream file(conf());
  std::string line;
  while (std::getline(file, line))
    if (const size_t at = line.find("v2:"); line.starts_with("mon host") && at != std::string::npos)
      return line.substr(at + 3, line.find('/', at) - at - 3);
  return {};
}

std::string Ceph::uri(const std::string& image, const std::string& parameters) const {
  return "rbd://data/" + image + "?conf=" + conf() + parameters;
}

std::string Ceph::new_name() {
  static std::atomic<int> count{0};
  return "image-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
}

}  // namespace outcore::rbd_test
