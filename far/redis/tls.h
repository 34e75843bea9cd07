// Tls: encrypted streams by OpenSSL. The library is loaded when the first stream is asked for, so
// that programs without TLS do not need it. Not for the fault path: OpenSSL allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "outcore/result.h"

namespace outcore::redis {

class TlsSession;

struct TlsFiles {
  std::string authorities;       // PEM; empty: those of the system
  std::string certificate, key;  // PEM, of this client; empty: none
};

// Any thread.
class Tls {
 public:
  virtual ~Tls() = default;

  // Errors: ENOSYS (libssl is not installed), ENOENT and other errors of the files.
  static Result<std::unique_ptr<Tls>> make(const TlsFiles& files);

  // Performs the handshake on a connected socket whose calls time out. nullptr: *error is -errno;
  // -EPROTO: no known authority has signed the server's certificate.
  virtual TlsSession* start(int fd, uint64_t deadline_ns, int* error) const = 0;
  static void end(TlsSession* session);
  // The number of bytes, 0 at the end of the stream, or -errno; -EAGAIN: the socket timed out.
  static int64_t send(TlsSession* session, const void* bytes, size_t size_bytes);
  static int64_t receive(TlsSession* session, void* bytes, size_t size_bytes);
};

}  // namespace outcore::redis
