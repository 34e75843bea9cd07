// Connection: a stream to one server, over which commands are sent and replies received, in the
// protocol RESP2.
//
// One thread at a time. Without TLS it may be used on the fault path: it allocates nothing, and
// waits are bounded. After the first error every call returns this error, until open().
#pragma once

#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "far/redis/address.h"

namespace outcore::redis {

class Tls;
class TlsSession;

// How to log in to servers. Must outlive the connections.
struct Access {
  std::string user, password;  // no password: no AUTH; no user: the default user
  const Tls* tls = nullptr;    // nullptr: plain TCP
};

// The head of a reply. `text` is valid until the connection reads again.
struct Reply {
  char type = 0;          // '+' status, '-' error, ':' number, '$' bytes, '*' array, '_' nil
  int64_t number = 0;     // of ':'; how many bytes follow for '$', how many replies for '*'
  std::string_view text;  // of '+' and '-'

  bool is_error(std::string_view name) const {
    return type == '-' && text.starts_with(name) &&
           (text.size() == name.size() || text[name.size()] == ' ');
  }
};

class Connection {
 public:
  Connection() = default;
  ~Connection() { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Connects and logs in. 0 or -errno; what the server refuses: as refuse().
  int open(const Address& address, const Access& access, uint64_t deadline_ns);
  void close();
  // Closes it, too, when replies are missing.
  void abandon();
  // What a reply that is not the expected one means. -EACCES: the server refuses the user or the
  // password, or wants one; -EUSERS: it takes no more clients; -EREMOTEIO: any other error reply;
  // -EPROTO: no server of this kind says that.
  int refuse(const Reply& reply);
  static bool is_refusal(int error) { return error == -EUSERS || error == -EREMOTEIO; }
  // The last error reply of which refuse() was asked since open(), and what helps.
  static constexpr size_t kRefusalBytes = 100;
  const char* refusal() const { return refusal_; }
  bool is_open() const { return fd_ >= 0 && error_ == 0; }
  int error() const { return error_; }

  // Until when the calls below may wait. A server that is silent for longer than kSilenceNsMax is
  // given up earlier.
  void set_deadline(uint64_t deadline_ns) { deadline_ns_ = deadline_ns; }
  // Hasty: a thread waits for the reply to what is sent next. It looks for the reply for a moment
  // before it sleeps.
  void set_hasty(bool is_hasty) { is_hasty_ = is_hasty; }
  static constexpr uint64_t kSilenceNsMax = 3'000'000'000;

  // Begins a command of so many words.
  void begin(uint32_t words);
  void word(std::string_view text);  // if longer than kCopiedMax: as bytes()
  void word(uint64_t number);
  void bytes(std::span<const std::byte> payload);  // must stay where it is until flush()
  int flush();
  // Sends a command of these words, and reads the head of the reply.
  int ask(std::initializer_list<std::string_view> words, Reply* reply);

  int read(Reply* reply);
  // Reads at most so many bytes of a '$' reply. end_bytes() must follow; it skips the rest.
  int read_bytes(std::span<std::byte> into);
  int end_bytes();

 private:
  static constexpr size_t kCopiedMax = 256, kPieceMax = 64;

  int connect_to(const Address& address);
  int log_in(const Access& access);
  int fail(int error);
  int wait_for(short events);
  int give_up_or_go_on(uint64_t since_ns);
  void make_room();
  void end_piece();
  void put(std::string_view text);
  void put_number(char mark, uint64_t number);
  // Receives into `first` and then into `second`. Returns the number of bytes, or -errno.
  int64_t receive(std::span<std::byte> first, std::span<char> second);
  int64_t look_for(iovec (&pieces)[2]);
  int64_t send_some(iovec* pieces, size_t count);
  int fill();

  int fd_ = -1;
  int error_ = 0;
  uint64_t deadline_ns_ = 0;
  TlsSession* session_ = nullptr;

  static constexpr uint64_t kLookNs = 100'000;
  static constexpr int kLooksMax = 8, kSkippedMax = 16;
  bool is_hasty_ = false;
  int looks_left_ = kLooksMax, skipped_ = 0;

  char out_[8192];
  size_t out_used_ = 0, out_begin_ = 0;  // bytes after out_begin_ belong to no piece yet
  iovec piece_[kPieceMax];
  size_t piece_count_ = 0;

  char in_[16384];
  size_t in_begin_ = 0, in_end_ = 0;
  uint64_t bytes_left_ = 0;  // of the '$' reply that is being read
  char refusal_[kRefusalBytes] = {};
};

}  // namespace outcore::redis
