// What messages say of servers that refuse.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "far/tests/redis/redis_case.h"

namespace outcore::redis_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// OneAnswer: a server that says the same to everybody, and hangs up.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer) : answer_(std::move(answer) + "\r\n") {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(::listen(fd_, 16), 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &bytes), 0);
    port_ = ::ntohs(at.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~OneAnswer() {
    ::shutdown(fd_, SHUT_RDWR);  // accept() returns
    thread_.join();
    ::close(fd_);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  void serve() {
    for (int client = 0; (client = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      char request[4096];  // it has come whole: what is unread would reset the connection
      if (::recv(client, request, sizeof request, 0) > 0) {
        EXPECT_GT(::send(client, answer_.data(), answer_.size(), MSG_NOSIGNAL), 0);
      }
      ::close(client);
    }
  }

  const std::string answer_;
  const int fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  uint16_t port_ = 0;
  std::thread thread_;
};

TEST(RedisRefusal, OnlyWhatIsAboutThePasswordIsSaidOfIt) {
  const struct {
    const char* answer;
    int code;
    const char* said;
  } all[] = {
      {"-ERR max number of clients reached", EUSERS, "reached: raise its maxclients"},
      {"-LOADING Redis is loading the dataset", EREMOTEIO, "LOADING Redis is loading the dataset"},
      {"-ERR unknown command 'AUTH', with args beginning with: 'topsecret'", EREMOTEIO,
       "ERR unknown command 'AUTH'"},
      {"-WRONGPASS invalid username-password pair", EACCES, "refuses the user or password"},
      {"-NOAUTH Authentication required.", EACCES, "refuses the user or password"},
      {"-NOPERM this user has no permissions", EACCES, "refuses the user or password"},
      {"-ERR AUTH <password> called without any password", EACCES, "refuses the user or password"},
      {"-ERR invalid password", EACCES, "refuses the user or password"},
  };
  for (const auto& one : all) {
    const OneAnswer server(one.answer);
    for (const std::string login : {"", ":topsecret@"}) {
      const auto refused = open_store("redis://" + login + server.address() + "/a?timeout=5s");
      EXPECT_EQ(refused.code(), one.code) << refused.message();
      EXPECT_THAT(refused.message(), HasSubstr(one.said));
      EXPECT_THAT(refused.message(), Not(HasSubstr("topsecret")));
      if (one.code != EACCES) {
        EXPECT_THAT(refused.message(), Not(HasSubstr("password")));
      }
    }
  }
}

}  // namespace
}  // namespace outcore::redis_test
