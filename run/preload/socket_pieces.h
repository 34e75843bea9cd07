// SocketPieces: how socket calls of more bytes than a Bounce has pass through memory that is not
// managed: at once, or in pieces that behave like the kernel's one call. See decision 0005.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

namespace outcore::preload {

// How the bytes of a call pass through memory that is not managed, if they are more than a Bounce
// has.
enum class Passage {
  kOnePiece,  // the rest is left
  kPieces,    // of a stream, until the call would end
  kWhole,     // a message, or as much as the kernel has of a stream
  kRefused,   // a message that is longer than any
};

// How a message is received, and in how much memory.
struct Receiving {
  Passage passage = Passage::kOnePiece;
  size_t room_bytes = 0;
};

Passage passage_of_sent(int fd, size_t bytes, int flags);
// Who does not wait for all gets no more of a stream than the kernel has. Descriptors come with the
// bytes beside which they were sent: those are asked for with one call.
Receiving how_to_receive(int fd, size_t bytes, const msghdr& m, int flags);

// The pieces of one call on a stream after the first. An error or the end must stay in the socket
// for the program's next call, as the kernel leaves it if the call has moved something.
class LaterPieces {
 public:
  LaterPieces(int fd, int flags, bool is_sent);  // before the first piece
  bool never_waits() const { return end_ns_ == 0; }
  // Whether another piece may be begun; one to receive is waited for. False: the call ends. errno
  // is kept.
  bool can_begin() const;

 private:
  static constexpr uint64_t kNever = UINT64_MAX;
  bool can_send() const;
  bool can_receive() const;

  int fd_;
  bool is_sent_;
  uint64_t end_ns_ = kNever;  // 0: it does not wait
};

}  // namespace outcore::preload
