#include "umap/session/shared_runtime.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/memory_limit.h"
#include "core/runtime/resolved_options.h"

namespace outcore::umapped {
namespace {

using base::kSystemPage;
using base::round_down;
using base::round_up;

constexpr uint64_t kBudgetBytesEnough = uint64_t{1} << 30;  // whatever the page size

// As UMap, which takes nine tenths of the memory at most: a program that counts its buffer in pages
// and then makes them larger would ask for many times as much as there is.
void keep_within_memory(RuntimeOptions* options) {
  const uint64_t available = os::memory_available().bytes;
  const uint64_t most = std::max(available / 10 * 9, kSystemPage);
  if (!options->budget_bytes.has_value() || *options->budget_bytes <= most) return;
  std::fprintf(stderr, "outcore: UMAP_BUFSIZE: a buffer of %s is more than there is; it has %s\n",
               base::format_bytes(*options->budget_bytes).c_str(),
               base::format_bytes(most).c_str());
  options->budget_bytes = round_down(most, kSystemPage);
}

// Starts with a buffer that a program of UMap's chose, and that may be less than what Outcore
// needs: the least that works is found in steps, and told.
Result<Runtime> start_with_least(RuntimeOptions options) {
  OC_CHECK(options.budget_bytes.has_value());
  const uint64_t asked = *options.budget_bytes;
  Result<Runtime> runtime = Runtime::start(options);
  while (!runtime.ok() && runtime.code() == EINVAL && runtime.message().starts_with("budget") &&
         *options.budget_bytes < kBudgetBytesEnough) {
    options.budget_bytes = round_up(*options.budget_bytes + *options.budget_bytes / 8, kSystemPage);
    runtime = Runtime::start(options);
  }
  if (runtime.ok() && *options.budget_bytes > asked)
    std::fprintf(stderr, "outcore: UMAP_BUFSIZE: a buffer of %s is too small; it has %s\n",
                 base::format_bytes(asked).c_str(),
                 base::format_bytes(*options.budget_bytes).c_str());
  return runtime;
}

}  // namespace

SharedRuntime::Use& SharedRuntime::Use::operator=(Use&& other) noexcept {
  if (this == &other) return *this;
  end();
  of_ = std::exchange(other.of_, nullptr);
  return *this;
}

void SharedRuntime::Use::end() {
  if (of_ != nullptr) std::exchange(of_, nullptr)->leave();
}

Runtime& SharedRuntime::Use::runtime() const {
  OC_CHECK(of_ != nullptr);
  OC_CHECK(of_->runtime_.has_value());
  return *of_->runtime_;
}

bool SharedRuntime::Use::is_delivery_set() const {
  OC_CHECK(of_ != nullptr);
  return of_->is_delivery_set_;
}

Result<SharedRuntime::Use> SharedRuntime::use() {
  {
    std::unique_lock<std::mutex> guard(lock_);
    changed_.wait(guard, [&] { return !is_changing_; });
    if (users_ != 0) {
      ++users_;
      return Use(this);
    }
    is_changing_ = true;
  }
  // Whatever happens, an exception too, others go on.
  struct Settle {
    SharedRuntime& shared;
    ~Settle() {
      const std::lock_guard<std::mutex> guard(shared.lock_);
      shared.is_changing_ = false;
      if (shared.runtime_.has_value()) ++shared.users_;
      shared.changed_.notify_all();
    }
  } const settle{*this};
  if (Status s = start(); !s) return s.error();
  return Use(this);
}

// REQUIRES: is_changing_, set by this thread; no lock.
Status SharedRuntime::start() {
  OC_CHECK(!runtime_.has_value());
  const Result<runtime::ResolvedOptions> resolved = runtime::resolve_options({});
  if (!resolved) return resolved.error();
  is_delivery_set_ = resolved->source_of("delivery") != "default";
  RuntimeOptions options = settings_.options();
  keep_within_memory(&options);
  Result<Runtime> started =
      options.budget_bytes.has_value() ? start_with_least(options) : Runtime::start(options);
  if (!started) return started.status();
  runtime_ = std::move(started).value();
  running_budget_bytes_ = runtime_->budget_bytes();
  return {};
}

void SharedRuntime::leave() {
  std::unique_lock<std::mutex> guard(lock_);
  OC_CHECK(users_ != 0);
  if (--users_ != 0) return;
  OC_CHECK(!is_changing_);
  is_changing_ = true;
  running_budget_bytes_ = 0;
  guard.unlock();
  runtime_.reset();
  guard.lock();
  is_changing_ = false;
  changed_.notify_all();
}

uint64_t SharedRuntime::budget_bytes() const {
  if (const uint64_t running = running_budget_bytes_.load(); running != 0) return running;
  const Result<runtime::ResolvedOptions> resolved = runtime::resolve_options(settings_.options());
  return resolved.ok() ? resolved->budget_bytes : default_budget().first;
}

}  // namespace outcore::umapped
