#include "far/redis/tls.h"

#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/os/late_calls.h"

namespace outcore::redis {

class TlsSession {
 public:
  explicit TlsSession(SSL* the_ssl) : ssl(the_ssl) {}
  SSL* const ssl;
};

namespace {

// All functions of OpenSSL that are called here.
#define OUTCORE_OF_OPENSSL(X)           \
  X(TLS_client_method)                  \
  X(SSL_CTX_new)                        \
  X(SSL_CTX_free)                       \
  X(SSL_CTX_ctrl)                       \
  X(SSL_CTX_set_verify)                 \
  X(SSL_CTX_load_verify_locations)      \
  X(SSL_CTX_set_default_verify_paths)   \
  X(SSL_CTX_use_certificate_chain_file) \
  X(SSL_CTX_use_PrivateKey_file)        \
  X(SSL_CTX_check_private_key)          \
  X(SSL_new)                            \
  X(SSL_free)                           \
  X(SSL_set_fd)                         \
  X(SSL_connect)                        \
  X(SSL_read)                           \
  X(SSL_write)                          \
  X(SSL_get_error)                      \
  X(ERR_get_error)                      \
  X(ERR_error_string_n)                 \
  X(ERR_clear_error)

struct OpenSsl {
#define OUTCORE_POINTER(name) decltype(&::name) name = nullptr;
  OUTCORE_OF_OPENSSL(OUTCORE_POINTER)
#undef OUTCORE_POINTER
  bool is_whole = false;
};

OpenSsl load() {
  OpenSsl it;
  void* const library = os::open_library("libssl.so.3", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return it;
  it.is_whole = true;
#define OUTCORE_LOOK_UP(name)                                             \
  it.name = reinterpret_cast<decltype(&::name)>(::dlsym(library, #name)); \
  it.is_whole = it.is_whole && it.name != nullptr;
  OUTCORE_OF_OPENSSL(OUTCORE_LOOK_UP)
#undef OUTCORE_LOOK_UP
  return it;
}

// Loaded once and never unloaded: the library's thread-local data would not survive that.
const OpenSsl& openssl() {
  static const OpenSsl loaded = load();
  return loaded;
}

// OpenSSL writes without MSG_NOSIGNAL, so a SIGPIPE for a broken stream is removed again in this
// thread.
class PipeSignalBlock {
 public:
  PipeSignalBlock() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~PipeSignalBlock() {
    const int saved = errno;
    const timespec now{0, 0};
    if (!was_pending_)
      while (::sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = saved;
  }
  PipeSignalBlock(const PipeSignalBlock&) = delete;
  PipeSignalBlock& operator=(const PipeSignalBlock&) = delete;

 private:
  sigset_t pipe_, before_;
  bool was_pending_ = false;
};

std::string last_reason() {
  char text[200];
  openssl().ERR_error_string_n(openssl().ERR_get_error(), text, sizeof text);
  return text;
}

// What it means that a call of OpenSSL returned `count` <= 0.
int64_t outcome(SSL* ssl, int count) {
  const int saved = errno;
  switch (openssl().SSL_get_error(ssl, count)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
      return 0;
    case SSL_ERROR_SYSCALL:
      return saved == 0 ? 0 : -saved;
    default:
      return -EPROTO;
  }
}

class OpenSslTls final : public Tls {
 public:
  explicit OpenSslTls(SSL_CTX* context) : context_(context) {}
  ~OpenSslTls() override { openssl().SSL_CTX_free(context_); }

  TlsSession* start(int fd, uint64_t deadline_ns, int* error) const override {
    const PipeSignalBlock block;
    SSL* const ssl = openssl().SSL_new(context_);
    if (ssl == nullptr) {
      *error = -ENOMEM;
      return nullptr;
    }
    openssl().SSL_set_fd(ssl, fd);
    for (;;) {
      openssl().ERR_clear_error();
      errno = 0;
      const int result = openssl().SSL_connect(ssl);
      if (result == 1) return new TlsSession(ssl);
      const int64_t why = outcome(ssl, result);
      *error = why == 0 ? -ECONNRESET : static_cast<int>(why);
      if (why == -EAGAIN && base::now_ns() < deadline_ns) continue;
      if (why == -EAGAIN) *error = -ETIMEDOUT;
      openssl().SSL_free(ssl);
      return nullptr;
    }
  }

 private:
  SSL_CTX* const context_;
};

Error refuse_files(const std::string& what) {
  return {EINVAL, "tls: " + what + ": " + last_reason()};
}

}  // namespace

Result<std::unique_ptr<Tls>> Tls::make(const TlsFiles& files) {
  const OpenSsl& ssl = openssl();
  if (!ssl.is_whole)
    return Error{ENOSYS, "tls=1: libssl.so.3 cannot be loaded: install OpenSSL 3 (libssl3)"};
  SSL_CTX* const context = ssl.SSL_CTX_new(ssl.TLS_client_method());
  if (context == nullptr) return refuse_files("no context");
  std::unique_ptr<Tls> made = std::make_unique<OpenSslTls>(context);
  ssl.SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, nullptr);
  ssl.SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  const bool has_authorities =
      files.authorities.empty()
          ? ssl.SSL_CTX_set_default_verify_paths(context) == 1
          : ssl.SSL_CTX_load_verify_locations(context, files.authorities.c_str(), nullptr) == 1;
  if (!has_authorities) return refuse_files("read tls_ca " + files.authorities);
  if (files.certificate.empty()) return made;
  const std::string& key = files.key.empty() ? files.certificate : files.key;
  if (ssl.SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1)
    return refuse_files("read tls_cert " + files.certificate);
  if (ssl.SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      ssl.SSL_CTX_check_private_key(context) != 1)
    return refuse_files("read tls_key " + key);
  return made;
}

void Tls::end(TlsSession* session) {
  openssl().SSL_free(session->ssl);
  delete session;
}

int64_t Tls::send(TlsSession* session, const void* bytes, size_t size_bytes) {
  const PipeSignalBlock block;
  openssl().ERR_clear_error();
  errno = 0;
  const int count = openssl().SSL_write(session->ssl, bytes,
                                        static_cast<int>(std::min<size_t>(size_bytes, 1 << 20)));
  return count > 0 ? count : outcome(session->ssl, count);
}

int64_t Tls::receive(TlsSession* session, void* bytes, size_t size_bytes) {
  const PipeSignalBlock block;
  openssl().ERR_clear_error();
  errno = 0;
  const int count = openssl().SSL_read(session->ssl, bytes,
                                       static_cast<int>(std::min<size_t>(size_bytes, 1 << 20)));
  return count > 0 ? count : outcome(session->ssl, count);
}

}  // namespace outcore::redis
