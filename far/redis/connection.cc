#include "far/redis/connection.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/clock.h"
#include "core/os/wait.h"
#include "far/redis/tls.h"

namespace outcore::redis {

int Connection::open(const Address& address, const Access& access, uint64_t deadline_ns) {
  close();
  refusal_[0] = 0;
  deadline_ns_ = deadline_ns;
  if (const int result = connect_to(address); result != 0) return fail(result);
  if (access.tls != nullptr) {
    int result = 0;
    session_ = access.tls->start(fd_, deadline_ns, &result);
    if (session_ == nullptr) return fail(result);
  }
  if (const int result = access.password.empty() ? 0 : log_in(access); result != 0)
    return fail(result);
  return 0;
}

int Connection::connect_to(const Address& address) {
  fd_ = ::socket(address.socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) return -errno;
  const int yes = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  ::setsockopt(fd_, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address.socket), address.socket_bytes) !=
      0) {
    if (errno != EINPROGRESS) return -errno;
    if (const int result = wait_for(POLLOUT); result != 0) return result;
    int error = 0;
    socklen_t error_bytes = sizeof error;
    ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &error_bytes);
    if (error != 0) return -error;
  }
  // The socket blocks: one system call for each reply, not two. Transfers sleep in it for a bounded
  // time.
  ::fcntl(fd_, F_SETFL, 0);
  const timeval slice{0, 500'000};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice);
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &slice, sizeof slice);
  return 0;
}

int Connection::log_in(const Access& access) {
  begin(access.user.empty() ? 2 : 3);
  word("AUTH");
  if (!access.user.empty()) word(access.user);
  word(access.password);
  flush();
  Reply reply;
  if (const int result = read(&reply); result != 0) return result;
  return reply.type == '-' ? refuse(reply) : 0;
}

int Connection::refuse(const Reply& reply) {
  if (reply.type != '-') return -EPROTO;
  const bool is_full = reply.text.find("max number of clients") != std::string_view::npos;
  const std::string_view said =
      is_full ? "ERR max number of clients reached: raise its maxclients, or end other clients"
              : reply.text.substr(0, reply.text.find(", with args"));  // perhaps the password
  const size_t bytes = std::min(said.size(), sizeof refusal_ - 1);
  for (size_t i = 0; i < bytes; ++i)  // one line of a message
    refusal_[i] = said[i] < ' ' || said[i] > '~' ? '?' : said[i];
  refusal_[bytes] = 0;
  for (const char* const name : {"WRONGPASS", "NOAUTH", "NOPERM", "ERR AUTH",
                                 "ERR invalid password", "ERR Client sent AUTH"})
    if (reply.text.starts_with(name)) return -EACCES;
  return is_full ? -EUSERS : -EREMOTEIO;
}

void Connection::close() {
  if (session_ != nullptr) Tls::end(session_);
  session_ = nullptr;
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  error_ = 0;
  out_used_ = out_begin_ = piece_count_ = in_begin_ = in_end_ = 0;
  bytes_left_ = 0;
}

// Discards what the kernel has not sent yet: it must not arrive after what is sent elsewhere
// instead of it.
void Connection::abandon() {
  const linger none{1, 0};
  if (fd_ >= 0) ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  close();
}

int Connection::fail(int error) {
  if (error_ == 0) error_ = error;
  return error_;
}

// A wait in the kernel timed out. 0: try again.
int Connection::give_up_or_go_on(uint64_t since_ns) {
  const uint64_t now_ns = base::now_ns();
  return now_ns >= deadline_ns_ || now_ns - since_ns > kSilenceNsMax ? -ETIMEDOUT : 0;
}

int Connection::wait_for(short events) {
  const uint64_t start_ns = base::now_ns();
  for (;;) {
    pollfd about{fd_, events, 0};
    const int ready = ::poll(&about, 1, 100);
    if (ready > 0) return 0;
    if (ready < 0 && errno != EINTR) return -errno;
    if (const int result = give_up_or_go_on(start_ns); result != 0) return result;
  }
}

void Connection::put(std::string_view text) {
  OC_ASSERT(out_used_ + text.size() <= sizeof out_);
  std::memcpy(out_ + out_used_, text.data(), text.size());
  out_used_ += text.size();
}

void Connection::put_number(char mark, uint64_t number) {
  char text[32];
  text[0] = mark;
  char* end = std::to_chars(text + 1, text + 24, number).ptr;
  *end++ = '\r';
  *end++ = '\n';
  put({text, static_cast<size_t>(end - text)});
}

void Connection::end_piece() {
  if (out_used_ == out_begin_) return;
  OC_CHECK(out_used_ > out_begin_ && piece_count_ < kPieceMax);
  piece_[piece_count_++] = {out_ + out_begin_, out_used_ - out_begin_};
  out_begin_ = out_used_;
}

// Makes room for a word, or for the two pieces and the line ends of a payload.
void Connection::make_room() {
  if (sizeof out_ - out_used_ < 2 * kCopiedMax || piece_count_ + 4 > kPieceMax) flush();
}

void Connection::begin(uint32_t words) {
  OC_ASSERT(words != 0);
  make_room();
  put_number('*', words);
}

void Connection::word(std::string_view text) {
  if (text.size() > kCopiedMax) return bytes(std::as_bytes(std::span(text)));
  make_room();
  put_number('$', text.size());
  put(text);
  put("\r\n");
}

void Connection::word(uint64_t number) {
  char text[24];
  const char* const end = std::to_chars(text, text + sizeof text, number).ptr;
  word({text, static_cast<size_t>(end - text)});
}

void Connection::bytes(std::span<const std::byte> payload) {
  make_room();
  put_number('$', payload.size());
  end_piece();
  // The pieces of writev are not const, although it only reads them.
  if (!payload.empty())
    piece_[piece_count_++] = {const_cast<std::byte*>(payload.data()), payload.size()};
  put("\r\n");
}

int64_t Connection::send_some(iovec* pieces, size_t count) {
  if (session_ != nullptr) return Tls::send(session_, pieces[0].iov_base, pieces[0].iov_len);
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = count;
  const ssize_t sent = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
  return sent < 0 ? -errno : sent;
}

int Connection::flush() {
  end_piece();
  uint64_t since_ns = 0;
  for (size_t at = 0; at < piece_count_ && error_ == 0;) {
    const int64_t sent = send_some(piece_ + at, piece_count_ - at);
    if (sent < 0) {
      if (since_ns == 0) since_ns = base::now_ns();
      if (sent != -EINTR && sent != -EAGAIN) fail(static_cast<int>(sent));
      if (const int result = give_up_or_go_on(since_ns); result != 0) fail(result);
      continue;
    }
    if (sent == 0) fail(-ECONNRESET);
    since_ns = 0;
    for (auto left = static_cast<size_t>(sent); left > 0;) {
      OC_CHECK(at < piece_count_);
      const size_t part = std::min(left, piece_[at].iov_len);
      piece_[at].iov_base = static_cast<char*>(piece_[at].iov_base) + part;
      piece_[at].iov_len -= part;
      left -= part;
      if (piece_[at].iov_len == 0) ++at;
    }
  }
  out_used_ = out_begin_ = piece_count_ = 0;
  return error_;
}

// Polls for a reply for a while before it sleeps, because a thread that sleeps is woken much later
// than the reply arrives. If replies take longer than that, it soon sleeps at once, and polls only
// now and then.
int64_t Connection::look_for(iovec (&pieces)[2]) {
  if (!is_hasty_) return -EAGAIN;
  if (looks_left_ == 0 && ++skipped_ < kSkippedMax) return -EAGAIN;
  skipped_ = 0;
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = 2;
  const uint64_t end_ns = base::now_ns() + kLookNs;
  do {
    const ssize_t count = ::recvmsg(fd_, &message, MSG_DONTWAIT);
    if (count < 0 && errno != EAGAIN) return -errno;
    if (count >= 0) {
      looks_left_ = std::min(looks_left_ + 1, kLooksMax);
      return count;
    }
    os::yield();
  } while (base::now_ns() < end_ns);
  looks_left_ = std::max(looks_left_ - 1, 0);
  return -EAGAIN;
}

int64_t Connection::receive(std::span<std::byte> first, std::span<char> second) {
  if (error_ != 0) return error_;
  uint64_t since_ns = 0;
  for (;;) {
    int64_t count = 0;
    if (session_ != nullptr) {
      count = first.empty() ? Tls::receive(session_, second.data(), second.size())
                            : Tls::receive(session_, first.data(), first.size());
    } else {
      iovec pieces[2] = {{first.data(), first.size()}, {second.data(), second.size()}};
      count = look_for(pieces);
      if (count == -EAGAIN) {
        const ssize_t got = ::readv(fd_, pieces, 2);
        count = got < 0 ? -errno : got;
      }
    }
    if (count > 0) return count;
    if (count == 0) return fail(-ECONNRESET);
    if (since_ns == 0) since_ns = base::now_ns();
    if (count != -EINTR && count != -EAGAIN) return fail(static_cast<int>(count));
    if (const int result = give_up_or_go_on(since_ns); result != 0) return fail(result);
  }
}

// Reads more of the stream into the buffer.
int Connection::fill() {
  if (in_begin_ == in_end_) in_begin_ = in_end_ = 0;
  if (in_end_ == sizeof in_) {
    if (in_begin_ == 0) return fail(-EPROTO);  // no line is so long
    std::memmove(in_, in_ + in_begin_, in_end_ - in_begin_);
    in_end_ -= in_begin_;
    in_begin_ = 0;
  }
  const int64_t count = receive({}, {in_ + in_end_, sizeof in_ - in_end_});
  if (count < 0) return static_cast<int>(count);
  in_end_ += static_cast<size_t>(count);
  OC_CHECK(in_end_ <= sizeof in_);
  return 0;
}

int Connection::ask(std::initializer_list<std::string_view> words, Reply* reply) {
  begin(static_cast<uint32_t>(words.size()));
  for (const std::string_view text : words) word(text);
  flush();
  return read(reply);
}

int Connection::read(Reply* reply) {
  OC_ASSERT(in_begin_ <= in_end_);
  OC_ASSERT(bytes_left_ == 0 || error_ != 0);
  const char* end = nullptr;
  for (size_t seen = 0;;) {
    const char* const begin = in_ + in_begin_;
    end = static_cast<const char*>(std::memchr(begin + seen, '\n', in_end_ - in_begin_ - seen));
    if (end != nullptr) break;
    seen = in_end_ - in_begin_;
    if (const int result = fill(); result != 0) return result;
  }
  const std::string_view line(in_ + in_begin_, static_cast<size_t>(end - in_) - in_begin_);
  in_begin_ += line.size() + 1;
  if (line.size() < 2 || line.back() != '\r') return fail(-EPROTO);
  *reply = {line.front(), 0, line.substr(1, line.size() - 2)};
  if (reply->type == '+' || reply->type == '-') return 0;
  const auto [stopped, error] =
      std::from_chars(reply->text.data(), reply->text.data() + reply->text.size(), reply->number);
  const bool is_known = reply->type == ':' || reply->type == '$' || reply->type == '*';
  if (!is_known || error != std::errc() || stopped != reply->text.data() + reply->text.size())
    return fail(-EPROTO);
  if (reply->type != ':' && reply->number < 0) *reply = {'_', 0, {}};
  if (reply->type == '$') bytes_left_ = static_cast<uint64_t>(reply->number);
  return 0;
}

int Connection::read_bytes(std::span<std::byte> into) {
  if (into.size() > bytes_left_) return fail(-EPROTO);
  bytes_left_ -= into.size();
  const size_t here = std::min(into.size(), in_end_ - in_begin_);
  std::memcpy(into.data(), in_ + in_begin_, here);
  in_begin_ += here;
  into = into.subspan(here);
  while (!into.empty()) {
    in_begin_ = in_end_ = 0;
    const int64_t count = receive(into, {in_, sizeof in_});
    if (count < 0) return static_cast<int>(count);
    const size_t part = std::min(into.size(), static_cast<size_t>(count));
    in_end_ = static_cast<size_t>(count) - part;
    OC_CHECK(in_end_ <= sizeof in_);
    into = into.subspan(part);
  }
  return error_;
}

int Connection::end_bytes() {
  for (uint64_t left = bytes_left_ + 2; left > 0;) {
    if (in_begin_ == in_end_)
      if (const int result = fill(); result != 0) return result;
    const uint64_t part = std::min<uint64_t>(left, in_end_ - in_begin_);
    in_begin_ += part;
    left -= part;
  }
  bytes_left_ = 0;
  return 0;
}

}  // namespace outcore::redis
