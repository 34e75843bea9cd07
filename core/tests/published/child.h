// Child: a process of a test that does something, says so, and then waits until it is ended.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <utility>

#include "core/tests/conformance/common.h"

namespace outcore::scene {

class Child {
 public:
  // `work` gets a function that says "I am ready" and returns when the test lets the child go on.
  // Its result is the exit status.
  using Work = std::function<int(const std::function<void()>& be_ready)>;
  explicit Child(const Work& work) {
    int told[2], go[2];
    EXPECT_EQ(::pipe2(told, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(go, O_CLOEXEC), 0);
    process_ = ::fork();
    if (process_ == 0) {
      ::close(told[0]);
      ::close(go[1]);
      ::_exit(work([&] {
        char word = 0;
        if (::write(told[1], "x", 1) != 1 || ::read(go[0], &word, 1) < 0) ::_exit(100);
      }));
    }
    ::close(told[1]);
    ::close(go[0]);
    go_ = go[1];
    char word = 0;
    is_ready_ = ::read(told[0], &word, 1) == 1;
    ::close(told[0]);
  }
  ~Child() {
    if (process_ > 0) ::kill(process_, SIGKILL), end();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t process() const { return process_; }
  // False: it has ended without saying so.
  bool is_ready() const { return is_ready_; }
  // Lets it go on and waits for its end: the exit status, or -signal.
  int end() {
    if (go_ >= 0) ::close(go_);
    go_ = -1;
    return status_of(std::exchange(process_, 0));
  }
  void kill() {
    ::kill(process_, SIGKILL);
    end();
  }
  // Stops it, and returns when it has stopped.
  void stop() const {
    ::kill(process_, SIGSTOP);
    int status = 0;
    EXPECT_EQ(::waitpid(process_, &status, WUNTRACED), process_);
    EXPECT_TRUE(WIFSTOPPED(status));
  }

 private:
  pid_t process_ = 0;
  int go_ = -1;
  bool is_ready_ = false;
};

}  // namespace outcore::scene
