#include "umap/session/session.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/at_fork.h"
#include "core/os/memory_limit.h"
#include "core/region/address_map.h"
#include "core/runtime/resolved_options.h"

namespace outcore::umapped {
namespace {

using base::kSystemPage;
using base::round_down;
using base::round_up;
using Shared = std::shared_lock<std::shared_timed_mutex>;
using Alone = std::unique_lock<std::shared_timed_mutex>;

constexpr uint64_t kBudgetBytesEnough = uint64_t{1} << 30;  // whatever the page size
constexpr std::chrono::seconds kExitWait{2};

std::atomic<Session*> session_of_process{nullptr};

Error refused(const std::string& what) { return {EINVAL, what}; }

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

Session::Session(Settings& settings) : settings_(settings), generation_(os::process_generation()) {}

Session& Session::of_process() {
  Session* now = session_of_process.load(std::memory_order_acquire);
  while (now == nullptr || now->generation_ != os::process_generation()) {
    // Never deleted: threads may use it until the process ends. A parent's is left as it is, as its
    // lock may be held by a thread that this process does not have.
    auto made = std::make_unique<Session>(Settings::of_process());
    if (session_of_process.compare_exchange_strong(now, made.get())) return *made.release();
  }
  return *now;
}

// REQUIRES: the lock, alone.
Status Session::start_runtime() {
  if (runtime_.has_value()) return {};
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
  static std::once_flag once;
  std::call_once(once, [] { std::atexit([] { Session::of_process().flush_at_exit(); }); });
  return {};
}

// Where the program wants the region. REQUIRES: the lock, alone; the runtime.
Result<Reservation> Session::reserve(const MapRequest& request) {
  OC_CHECK(request.address != nullptr);
  const uint64_t bytes = round_up(request.size_bytes, kSystemPage);
  Result<Reservation> reservation = runtime_->reserve(bytes, request.address);
  if (reservation.ok() || reservation.code() != EEXIST) return reservation;
  if (!request.is_fixed()) return Reservation();  // only a wish, as with mmap
  if (region::AddressMap::instance().overlaps(request.address, bytes))
    return Error{EEXIST, "umap: a region is at these addresses: unmap it first"};
  if (::munmap(request.address, bytes) != 0)
    return base::system_error(errno, "umap: replace what is mapped at the address");
  return runtime_->reserve(bytes, request.address);
}

// With message delivery system calls work on absent pages, as they do with UMap; so it is tried
// first.
Result<Region> Session::map_best(const std::shared_ptr<Store>& store, MapOptions options) {
  if (!is_delivery_set_) {
    options.delivery = Delivery::kMessages;
    Result<Region> region = runtime_->map(store, options);
    // Where it is not permitted, a file that is mapped already has another delivery.
    if (region.ok() || (region.code() != EPERM && region.code() != EBUSY)) return region;
    options.delivery.reset();
  }
  return runtime_->map(store, options);
}

Result<std::byte*> Session::map(const MapRequest& asked) {
  MapRequest request = asked;
  if (request.page_bytes == 0) request.page_bytes = settings_.get(Setting::kPageBytes);
  if (Status s = request.check(); !s) return s.error();
  Result<std::shared_ptr<Store>> store = request.open();
  if (!store) return store.error();
  const Alone guard(lock_);
  if (Status s = start_runtime(); !s) return s.error();
  struct End {
    Session& session;
    ~End() { session.end_if_unused(); }
  } const end{*this};
  auto mapped = std::make_unique<Mapped>();
  mapped->has_own_store = request.store != nullptr;
  MapOptions options;
  options.access = request.is_writable() ? Access::kReadWrite : Access::kReadOnly;
  options.offset = static_cast<uint64_t>(request.offset);
  options.size_bytes = request.size_bytes;
  options.page_bytes = request.page_bytes;
  if (request.address != nullptr) {
    Result<Reservation> reservation = reserve(request);
    if (!reservation) return reservation.error();
    mapped->reservation = std::move(reservation).value();
    options.address = mapped->reservation.data();
  }
  Result<Region> region = map_best(store.value(), options);
  if (!region) return region.error();
  mapped->region = std::move(region).value();
  std::byte* const first = mapped->region.data();
  OC_CHECK(first != nullptr);
  const bool is_new = regions_.emplace(first, std::move(mapped)).second;
  OC_CHECK(is_new);
  return first;
}

Status Session::unmap(const std::byte* address) {
  const Alone guard(lock_);
  const auto found = regions_.find(address);
  if (found == regions_.end()) return refused("uunmap: no region of umap() begins at this address");
  if (Status s = found->second->region.unmap(); !s) {
    OC_CHECK(found->second->region.is_mapped());
    return s;
  }
  regions_.erase(found);
  end_if_unused();
  return {};
}

// REQUIRES: the lock, alone.
void Session::end_if_unused() {
  if (!regions_.empty()) return;
  running_budget_bytes_ = 0;
  runtime_.reset();
}

Status Session::flush() {
  const Shared guard(lock_);
  return flush_regions(true);
}

// REQUIRES: the lock.
Status Session::flush_regions(bool with_own_stores) {
  Status first;
  for (const auto& [address, mapped] : regions_) {
    if (mapped->region.access() == Access::kReadOnly) continue;
    if (mapped->has_own_store && !with_own_stores) continue;
    Status status = mapped->region.flush();
    if (first.ok()) first = std::move(status);
  }
  return first;
}

void Session::flush_at_exit() {
  const Shared guard(lock_, kExitWait);
  if (!guard.owns_lock()) return;
  if (const Status s = flush_regions(false); !s)
    std::fprintf(stderr, "outcore: exit: %s\n", s.message().c_str());
}

Session::Mapped* Session::find(const std::byte* address) const {
  auto after = regions_.upper_bound(address);
  if (after == regions_.begin()) return nullptr;
  Mapped* const mapped = std::prev(after)->second.get();
  const uint64_t offset = static_cast<uint64_t>(address - mapped->region.data());
  return offset < mapped->region.size_bytes() ? mapped : nullptr;
}

Status Session::prefetch(std::span<const std::byte* const> pages) {
  const Shared guard(lock_);
  Status first;
  const auto note = [&](Status status) {
    if (first.ok()) first = std::move(status);
  };
  std::vector<uint64_t> numbers;
  for (size_t i = 0; i < pages.size();) {
    Mapped* const mapped = find(pages[i]);
    if (mapped == nullptr) {
      note(refused("umap_prefetch: an address in no region of umap()"));
      ++i;
      continue;
    }
    // A list of one region goes to it in one call.
    const Region& region = mapped->region;
    numbers.clear();
    for (; i < pages.size() && find(pages[i]) == mapped; ++i)
      numbers.push_back(static_cast<uint64_t>(pages[i] - region.data()) / region.page_bytes());
    note(mapped->region.prefetch(numbers));
  }
  return first;
}

Status Session::pin(const std::byte* address, uint64_t size_bytes) {
  const Shared guard(lock_);
  Mapped* const mapped = find(address);
  if (mapped == nullptr) return refused("umap_fetch_and_pin: an address in no region of umap()");
  const auto offset = static_cast<uint64_t>(address - mapped->region.data());
  // As UMap does, which takes a range that is too long for one up to the region's end.
  const uint64_t bytes = std::min(size_bytes, mapped->region.size_bytes() - offset);
  return mapped->region.pin(offset, bytes);
}

uint64_t Session::budget_bytes() const {
  if (const uint64_t running = running_budget_bytes_.load(); running != 0) return running;
  const Result<runtime::ResolvedOptions> resolved = runtime::resolve_options(settings_.options());
  return resolved.ok() ? resolved->budget_bytes : default_budget().first;
}

}  // namespace outcore::umapped
