// Custom stores in the C API. See outcore.h.
#include "outcore/store.h"

#include <cerrno>
#include <string>

#include "core/c/handles.h"
#include "core/c/outcome.h"
#include "core/c/sized_struct.h"
#include "outcore/outcore.h"

namespace outcore::c {
namespace {

constexpr size_t kStoreCallsBytes = 96;  // in release 0.1
static_assert(sizeof(oc_store_calls) >= kStoreCallsBytes);

// 0 or -errno. A custom store may wrongly return a count or a positive errno value.
int told(int result) { return result > 0 ? -EIO : result; }

class CallStore final : public Store {
 public:
  CallStore(const oc_store_calls& calls, void* context)
      : calls_(calls), context_(context), uri_(calls.name == nullptr ? "custom:" : calls.name) {}
  ~CallStore() override {
    if (calls_.end != nullptr) calls_.end(context_);
  }
  CallStore(const CallStore&) = delete;
  CallStore& operator=(const CallStore&) = delete;

  uint64_t size_bytes() const override { return calls_.size(context_); }

  int read(uint64_t offset, std::span<std::byte> into) override {
    return told(calls_.read(context_, offset, into.data(), into.size()));
  }

  int write(uint64_t offset, std::span<const std::byte> from) override {
    if (calls_.write == nullptr) return -EROFS;
    return told(calls_.write(context_, offset, from.data(), from.size()));
  }

  int sync() override { return calls_.sync == nullptr ? 0 : told(calls_.sync(context_)); }

  int resize(uint64_t size_bytes) override {
    return calls_.resize == nullptr ? -ENOTSUP : told(calls_.resize(context_, size_bytes));
  }

  int discard(uint64_t offset, uint64_t size_bytes) override {
    if (calls_.discard == nullptr) return Store::discard(offset, size_bytes);
    return told(calls_.discard(context_, offset, size_bytes));
  }

  StoreTraits traits() const override {
    StoreTraits traits;
    traits.is_fault_safe = calls_.is_fault_safe != 0;
    if (calls_.alignment_bytes != 0) traits.alignment_bytes = calls_.alignment_bytes;
    traits.read_concurrency = calls_.read_concurrency;
    traits.write_concurrency = calls_.write_concurrency;
    traits.is_volatile = calls_.is_volatile != 0;
    return traits;
  }

  std::string uri() const override { return uri_; }

 private:
  const oc_store_calls calls_;
  void* const context_;
  const std::string uri_;
};

int make_store(const oc_store_calls* calls, void* context, oc_store** store) {
  oc_store_calls taken;
  const Status status = take_struct(calls, kStoreCallsBytes, "oc_store_calls", &taken);
  if (!status.ok()) return outcome(status);
  if (taken.size == nullptr) return fail_null("oc_store_new", "calls->size");
  if (taken.read == nullptr) return fail_null("oc_store_new", "calls->read");
  if (taken.is_fault_safe > 1 || taken.is_volatile > 1)
    return fail(EINVAL, "oc_store_new: is_fault_safe and is_volatile are 0 or 1");
  if ((taken.alignment_bytes & (taken.alignment_bytes - 1)) != 0)
    return fail(EINVAL, "oc_store_new: alignment_bytes = " + std::to_string(taken.alignment_bytes) +
                            ": a power of two will do, or 0 for any");
  auto handle = std::make_unique<oc_store>();
  handle->is_writable = taken.write != nullptr;
  // This is the last step that can fail. It comes before a CallStore exists that would call `end`,
  // so a failed call has no effects.
  handle->store = std::make_shared<CallStore>(taken, context);
  *store = handle.release();
  return 0;
}

}  // namespace
}  // namespace outcore::c

using namespace outcore::c;

int oc_store_new(const oc_store_calls* calls, void* context, oc_store** store) {
  if (store == nullptr) return fail_null("oc_store_new", "store");
  *store = nullptr;
  if (calls == nullptr) return fail_null("oc_store_new", "calls");
  return guarded("oc_store_new", [&] { return make_store(calls, context, store); });
}

void oc_store_free(oc_store* store) { delete store; }
