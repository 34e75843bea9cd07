// far_floor: what the network of this machine, and Redis by its usual client, give without Outcore.
//
//   far_floor echo REPLIES            a server of ours that answers with bytes, over TCP
//   far_floor redis PORT KEYS REPLIES a Redis on 127.0.0.1 (password: REDISCLI_AUTH), into which
//                                     KEYS values of 64 KiB go, floor:000000000000 and so on
//
// Each prints one line of JSON: the median of round trips of 4 KiB, and MiB a second of 64 KiB
// replies, of which 8 are on their way at a time.
#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "bench/clock.h"
#include "bench/random.h"

namespace outcore::bench {
namespace {

constexpr size_t kSmallBytes = 4096, kLargeBytes = 65536, kDepth = 8;
constexpr size_t kRequestBytes = 64;  // about as long as a GETRANGE

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "far_floor: %s\n", what.c_str());
  std::exit(1);
}

// A connected TCP socket. All calls wait until everything has gone or come.
class Socket {
 public:
  explicit Socket(int file) : file_(file) {
    const int on = 1;
    setsockopt(file_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~Socket() { close(file_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  static int connect_to(uint16_t port) {
    const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in where = loopback(port);
    if (connect(file, reinterpret_cast<sockaddr*>(&where), sizeof where) != 0)
      fail("connect to port " + std::to_string(port) + ": " + strerrordesc_np(errno));
    return file;
  }
  static sockaddr_in loopback(uint16_t port) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return where;
  }

  bool send_all(const char* bytes, size_t size) const {
    while (size != 0) {
      const ssize_t n = send(file_, bytes, size, MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes += n;
      size -= static_cast<size_t>(n);
    }
    return true;
  }
  bool receive_all(char* bytes, size_t size) const {
    while (size != 0) {
      const ssize_t n = recv(file_, bytes, size, 0);
      if (n <= 0) return false;
      bytes += n;
      size -= static_cast<size_t>(n);
    }
    return true;
  }

 private:
  int file_;
};

double median_us(std::vector<uint64_t>& times_ns) {
  const auto middle = times_ns.begin() + static_cast<int64_t>(times_ns.size() / 2);
  std::nth_element(times_ns.begin(), middle, times_ns.end());
  return static_cast<double>(*middle) / 1000;
}

void tell(double p50_us, uint64_t replies, double seconds) {
  std::printf("{\"p50_us\": %.2f, \"mib_s\": %.1f, \"seconds\": %.3f}\n", p50_us,
              static_cast<double>(replies * kLargeBytes) / (1 << 20) / seconds, seconds);
}

// -- echo --

// Each request begins with how many bytes are wanted.
[[noreturn]] void serve(int listener) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Socket client(accept(listener, nullptr, nullptr));
  std::vector<char> reply(kLargeBytes, 'x');
  std::array<char, kRequestBytes> request;
  while (client.receive_all(request.data(), request.size())) {
    uint32_t wanted = 0;
    std::memcpy(&wanted, request.data(), sizeof wanted);
    if (wanted > reply.size() || !client.send_all(reply.data(), wanted)) break;
  }
  _exit(0);
}

uint16_t start_server() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where = Socket::loopback(0);
  socklen_t size = sizeof where;
  if (bind(listener, reinterpret_cast<sockaddr*>(&where), size) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&where), &size) != 0)
    fail(std::string("listen: ") + strerrordesc_np(errno));
  if (fork() == 0) serve(listener);
  close(listener);
  return ntohs(where.sin_port);
}

void measure_echo(uint64_t replies) {
  Socket server(Socket::connect_to(start_server()));
  std::vector<char> reply(kLargeBytes);
  const auto ask = [&](uint32_t bytes) {
    std::array<char, kRequestBytes> request{};
    std::memcpy(request.data(), &bytes, sizeof bytes);
    if (!server.send_all(request.data(), request.size())) fail("the echo's server has gone");
  };
  const auto take = [&](size_t bytes) {
    if (!server.receive_all(reply.data(), bytes)) fail("the echo's server has gone");
  };
  std::vector<uint64_t> times_ns;
  for (uint64_t i = 0; i < replies; ++i) {
    const uint64_t start_ns = now_ns();
    ask(kSmallBytes);
    take(kSmallBytes);
    times_ns.push_back(now_ns() - start_ns);
  }
  const uint64_t start_ns = now_ns();
  for (uint64_t i = 0; i < replies + kDepth; ++i) {
    if (i < replies) ask(kLargeBytes);
    if (i >= kDepth) take(kLargeBytes);
  }
  tell(median_us(times_ns), replies, seconds_since(start_ns));
}

// -- Redis --

std::string key_of(uint64_t number) {
  std::array<char, 32> key;
  std::snprintf(key.data(), key.size(), "floor:%012llu", static_cast<unsigned long long>(number));
  return key.data();
}

std::string request_of(std::initializer_list<std::string> words) {
  std::string request = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words)
    request += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  return request;
}

const char* password() {
  const char* const value = std::getenv("REDISCLI_AUTH");
  return value != nullptr && *value != 0 ? value : nullptr;
}

// hiredis, the client that most others are made of.
class Client {
 public:
  explicit Client(uint16_t port) : context_(redisConnect("127.0.0.1", port)) {
    if (context_ == nullptr || context_->err != 0)
      fail("hiredis cannot connect to port " + std::to_string(port));
    if (password() == nullptr) return;
    redisAppendCommand(context_, "AUTH %s", password());
    take(REDIS_REPLY_STATUS, 2);
  }
  ~Client() { redisFree(context_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  redisContext* context() { return context_; }

  void take(int type, size_t bytes) {
    void* reply = nullptr;
    if (redisGetReply(context_, &reply) != REDIS_OK) fail("Redis has gone");
    const auto* const got = static_cast<redisReply*>(reply);
    if (got->type != type || static_cast<size_t>(got->len) != bytes)
      fail(std::string("Redis said: ") + (got->str != nullptr ? got->str : "nothing"));
    freeReplyObject(reply);
  }

 private:
  redisContext* context_;
};

void load(Client& client, uint64_t keys) {
  std::vector<uint64_t> words(kLargeBytes / sizeof(uint64_t));
  for (uint64_t i = 0; i < keys + kDepth; ++i) {
    if (i < keys) {
      for (size_t w = 0; w < words.size(); ++w) words[w] = mix(i * words.size() + w);
      redisAppendCommand(client.context(), "SET %s %b", key_of(i).c_str(), words.data(),
                         kLargeBytes);
    }
    if (i >= kDepth) client.take(REDIS_REPLY_STATUS, 2);
  }
}

double round_trip_us(uint16_t port, uint64_t keys, uint64_t replies) {
  Socket server(Socket::connect_to(port));
  std::vector<char> reply(kSmallBytes + 64);
  const std::string_view ok = "+OK\r\n";
  if (password() != nullptr) {
    const std::string request = request_of({"AUTH", password()});
    if (!server.send_all(request.data(), request.size()) ||
        !server.receive_all(reply.data(), ok.size()) || !ok.starts_with(reply[0]))
      fail("Redis refuses the password");
  }
  const size_t reply_bytes = std::strlen("$4096\r\n") + kSmallBytes + 2;
  Random random(1);
  std::vector<uint64_t> times_ns;
  for (uint64_t i = 0; i < replies; ++i) {
    const uint64_t at = random.below(kLargeBytes / kSmallBytes) * kSmallBytes;
    const std::string request =
        request_of({"GETRANGE", key_of(random.below(keys)), std::to_string(at),
                    std::to_string(at + kSmallBytes - 1)});
    const uint64_t start_ns = now_ns();
    if (!server.send_all(request.data(), request.size()) ||
        !server.receive_all(reply.data(), reply_bytes))
      fail("Redis has gone");
    times_ns.push_back(now_ns() - start_ns);
  }
  return median_us(times_ns);
}

void measure_redis(uint16_t port, uint64_t keys, uint64_t replies) {
  Client client(port);
  load(client, keys);
  const double p50_us = round_trip_us(port, keys, replies);
  const uint64_t start_ns = now_ns();
  for (uint64_t i = 0; i < replies + kDepth; ++i) {
    if (i < replies)
      redisAppendCommand(client.context(), "GETRANGE %s 0 65535", key_of(i % keys).c_str());
    if (i >= kDepth) client.take(REDIS_REPLY_STRING, kLargeBytes);
  }
  tell(p50_us, replies, seconds_since(start_ns));
}

uint64_t number_of(const char* text) { return std::strtoull(text, nullptr, 10); }

}  // namespace
}  // namespace outcore::bench

int main(int argc, char** argv) {
  using namespace outcore::bench;
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "echo" && argc == 3)
    measure_echo(std::max<uint64_t>(1, number_of(argv[2])));
  else if (what == "redis" && argc == 5)
    measure_redis(static_cast<uint16_t>(number_of(argv[2])),
                  std::max<uint64_t>(1, number_of(argv[3])),
                  std::max<uint64_t>(1, number_of(argv[4])));
  else
    fail("usage: far_floor echo REPLIES | far_floor redis PORT KEYS REPLIES");
  return 0;
}
