// Tls: encrypted streams by OpenSSL, which is loaded when the first is asked for: programs that use
// none neither load nor need it. Not for the fault path: OpenSSL allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "outcore/result.h"

namespace outcore::redis {

class TlsSession;

struct TlsFiles {
  std::string authorities;       // PEM; empty: the system's
  std::string certificate, key;  // PEM, of this client; empty: none
};

// Any thread.
class Tls {
 public:
  virtual ~Tls() = default;

  // Errors: ENOSYS (no libssl), ENOENT and the like of the files.
  static Result<std::unique_ptr<Tls>> make(const TlsFiles& files);

  // Shakes hands on a connected socket that waits a while at a time. nullptr: *error is -errno,
  // -EPROTO if the server's certificate is none of an authority's.
  virtual TlsSession* start(int fd, uint64_t deadline_ns, int* error) const = 0;
  static void end(TlsSession* session);
  // Bytes, 0 at the end of the stream, or -errno: -EAGAIN when the socket waited in vain.
  static int64_t send(TlsSession* session, const void* bytes, size_t size_bytes);
  static int64_t receive(TlsSession* session, void* bytes, size_t size_bytes);
};

}  // namespace outcore::redis
