// Program: a running program of a test's own, at the address where the preload library of `outcore
// run` would answer.
#pragma once

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace outcore::cli {

// Answers each question until it ends.
class Program {
 public:
  using Answer = std::function<std::string(const std::string& question)>;

  explicit Program(Answer answer, uid_t listens_as = ::geteuid()) : answer_(std::move(answer)) {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = "outcore/" + std::to_string(::getpid()) + ".cafe";
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), length), 0);
    std::thread([this, listens_as] {  // the call itself is of this thread alone
      EXPECT_TRUE(listens_as == ::geteuid() || ::syscall(SYS_setresuid, -1, listens_as, -1) == 0);
      EXPECT_EQ(::listen(listener_, 8), 0);
    })
        .join();
    thread_ = std::thread([this] { serve(); });
  }
  ~Program() {
    ::shutdown(listener_, SHUT_RDWR);  // ends accept()
    thread_.join();
    ::close(listener_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  std::vector<std::string> questions() {
    const std::lock_guard<std::mutex> guard(mutex_);
    return questions_;
  }

 private:
  void serve() {
    for (int peer = 0; (peer = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) != -1;) {
      std::string question;
      for (char c = 0; ::read(peer, &c, 1) == 1 && c != '\n';) question += c;
      {
        const std::lock_guard<std::mutex> guard(mutex_);
        questions_.push_back(question);
      }
      const std::string answer = answer_(question);
      static_cast<void>(::send(peer, answer.data(), answer.size(), MSG_NOSIGNAL));
      if (answer == "silence") {  // until the other side has given up
        char c = 0;
        static_cast<void>(::read(peer, &c, 1));
      }
      ::close(peer);
    }
  }

  Answer answer_;
  int listener_ = -1;
  std::mutex mutex_;
  std::vector<std::string> questions_;
  std::thread thread_;
};

}  // namespace outcore::cli
