#include "core/runtime/writer_claim.h"

#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>

#include "core/base/assert.h"

namespace outcore::runtime {
namespace {

// The claims of one process. A forked child starts with none, because its parent's lock may be held
// by a thread that the child does not have. Never freed: runtimes may end after static objects.
struct Claims {
  const pid_t process = ::getpid();
  std::mutex mutex;
  std::set<std::string> identities;

  static Claims& instance() {
    static std::atomic<Claims*> current{nullptr};
    Claims* claims = current.load(std::memory_order_acquire);
    while (claims == nullptr || claims->process != ::getpid()) {
      auto fresh = std::make_unique<Claims>();
      if (current.compare_exchange_strong(claims, fresh.get(), std::memory_order_acq_rel))
        claims = fresh.release();
    }
    return *claims;
  }
};

}  // namespace

bool WriterClaim::acquire(const std::string& identity) {
  OC_CHECK(identity_.empty());
  OC_CHECK(!identity.empty());
  Claims& claims = Claims::instance();
  const std::lock_guard<std::mutex> guard(claims.mutex);
  if (!claims.identities.insert(identity).second) return false;
  identity_ = identity;
  process_ = claims.process;
  return true;
}

WriterClaim::~WriterClaim() {
  if (identity_.empty() || process_ != ::getpid()) return;
  Claims& claims = Claims::instance();
  const std::lock_guard<std::mutex> guard(claims.mutex);
  claims.identities.erase(identity_);
}

}  // namespace outcore::runtime
