#include "umap/session/session.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/at_fork.h"
#include "core/region/address_map.h"

namespace outcore::umapped {
namespace {

using base::kSystemPage;
using base::round_down;
using base::round_up;

std::atomic<Session*> session_of_process{nullptr};

Error refused(const std::string& what) { return {EINVAL, what}; }
Error region_is_there() { return {EEXIST, "umap: a region is at these addresses: unmap it first"}; }

// With message delivery system calls work on absent pages, as they do with UMap; so it is tried
// first.
Result<Region> map_best(const SharedRuntime::Use& runtime, const std::shared_ptr<Store>& store,
                        MapOptions options) {
  if (!runtime.is_delivery_set()) {
    options.delivery = Delivery::kMessages;
    Result<Region> region = runtime.runtime().map(store, options);
    // Where it is not permitted, a file that is mapped already has another delivery.
    if (region.ok() || (region.code() != EPERM && region.code() != EBUSY)) return region;
    options.delivery.reset();
  }
  return runtime.runtime().map(store, options);
}

}  // namespace

Session::Session(Settings& settings)
    : settings_(settings), generation_(os::process_generation()), runtime_(settings) {}

Session& Session::of_process() {
  Session* now = session_of_process.load(std::memory_order_acquire);
  while (now == nullptr || now->generation_ != os::process_generation()) {
    // Never deleted: threads may use it until the process ends. A parent's is left as it is, as its
    // locks may be held by threads that this process does not have.
    auto made = std::make_unique<Session>(Settings::of_process());
    if (session_of_process.compare_exchange_strong(now, made.get())) return *made.release();
  }
  return *now;
}

// A page of a program's store is written as a whole. Two regions that both do would undo each
// other's writes, as each has pages of its own. REQUIRES: the request is checked.
Status Session::claim_pages(const MapRequest& request, MappedRegion* mapped) {
  if (mapped->program_store == nullptr || !request.is_writable()) return {};
  const auto offset = static_cast<uint64_t>(request.offset);
  mapped->pages = claims_.take(request.store, round_down(offset, request.page_bytes),
                               round_up(request.end_bytes(), request.page_bytes));
  if (mapped->pages) return {};
  return Error{EBUSY, "umap: the range at offset " + std::to_string(offset) +
                          " of the store shares a page of " + std::to_string(request.page_bytes) +
                          " bytes with a region that is mapped for writing: unmap that first, or "
                          "map whole pages that no other region has"};
}

// Reserves the addresses that the program chose, if they can be had. Memory of the program's that
// is there goes at the very end, once the map has worked elsewhere. True: it was replaced.
// REQUIRES: the request is checked, and has an address.
Result<bool> Session::place(const MapRequest& request, const std::shared_ptr<Store>& store,
                            const MapOptions& options, MappedRegion* mapped) {
  OC_CHECK(request.address != nullptr);
  OC_CHECK(options.address == nullptr);
  const uint64_t bytes = round_up(request.size_bytes, kSystemPage);
  const auto first = reinterpret_cast<uintptr_t>(request.address);
  mapped->addresses = claims_.take(Claims::kAddresses, first, first + bytes);
  if (!mapped->addresses && request.is_fixed()) return region_is_there();
  if (!mapped->addresses) return false;  // only a wish, as with mmap
  Runtime& runtime = mapped->runtime.runtime();
  Result<Reservation> reservation = runtime.reserve(bytes, request.address);
  const bool is_taken = !reservation.ok() && reservation.code() == EEXIST;
  if (is_taken && !request.is_fixed()) {
    mapped->addresses = {};
    return false;
  }
  if (is_taken) {
    if (region::AddressMap::instance().overlaps(request.address, bytes)) return region_is_there();
    Result<Region> trial = map_best(mapped->runtime, store, options);
    if (!trial) return trial.error();
    // Nothing was written there. An error is that of another region of the file, of which nobody
    // would hear again.
    if (Status s = trial.value().unmap(true); !s) return s.error();
    reservation = runtime.reserve_over(request.address, bytes);
  }
  if (!reservation) return reservation.error();
  mapped->reservation = std::move(reservation).value();
  return is_taken;
}

Result<std::byte*> Session::map(const MapRequest& asked) {
  MapRequest request = asked;
  if (request.page_bytes == 0) request.page_bytes = settings_.get(Setting::kPageBytes);
  if (Status s = request.check(); !s) return s.error();
  Result<std::shared_ptr<Store>> store = request.open();
  if (!store) return store.error();
  Result<SharedRuntime::Use> runtime = runtime_.use();
  if (!runtime) return runtime.error();
  static std::once_flag once;
  std::call_once(once, [] { std::atexit([] { Session::of_process().flush_at_exit(); }); });
  auto mapped = std::make_unique<MappedRegion>();
  mapped->runtime = std::move(runtime).value();
  mapped->program_store = std::dynamic_pointer_cast<ProgramStore>(store.value());
  if (Status s = claim_pages(request, mapped.get()); !s) return s.error();
  MapOptions options;
  options.access = request.is_writable() ? Access::kReadWrite : Access::kReadOnly;
  options.offset = static_cast<uint64_t>(request.offset);
  options.size_bytes = request.size_bytes;
  options.page_bytes = request.page_bytes;
  bool is_memory_replaced = false;
  if (request.address != nullptr) {
    const Result<bool> placed = place(request, store.value(), options, mapped.get());
    if (!placed) return placed.error();
    is_memory_replaced = placed.value();
  }
  options.address = mapped->reservation.data();
  Result<Region> region = map_best(mapped->runtime, store.value(), options);
  if (!region) {
    if (!is_memory_replaced) return region.error();
    return Error{region.code(), region.message() + ": what was mapped at the address is gone"};
  }
  mapped->region = std::move(region).value();
  std::byte* const first = mapped->region.data();
  OC_CHECK(first != nullptr);
  if (!mapped->addresses) {
    const auto from = reinterpret_cast<uintptr_t>(first);
    mapped->addresses = claims_.take_given(Claims::kAddresses, from, from + request.size_bytes);
  }
  table_.add(std::move(mapped));
  return first;
}

Status Session::unmap(const std::byte* address) {
  const Error none = refused("uunmap: no region of umap() begins at this address");
  RegionTable::Use use = table_.use_at(address);
  if (!use) return none;
  // Here others may still use it, and exit() may write it back, too: it takes as long as the store.
  if (Status s = use->region.flush(); !s) return s;
  std::unique_ptr<MappedRegion> leaving = table_.take_out(std::move(use));
  return leaving == nullptr ? Status(none) : end(std::move(leaving));
}

// REQUIRES: it is stored, and out of the table.
Status Session::end(std::unique_ptr<MappedRegion> leaving) {
  OC_CHECK(leaving != nullptr);
  OC_CHECK(leaving->region.is_mapped());
  // The core has a lock while it unmaps, and waits there for prefetches. So none of those is in the
  // program's code from here on.
  if (leaving->program_store != nullptr) leaving->program_store->stop_reads();
  leaving->pins.give_back(leaving->region);
  Status status = leaving->region.unmap();
  if (status.ok()) return status;
  OC_CHECK(leaving->region.is_mapped());
  if (leaving->program_store != nullptr) leaving->program_store->allow_reads();
  leaving->pins.take_again(leaving->region);
  table_.add(std::move(leaving));
  return status;
}

Status Session::flush() {
  Status first;
  RegionTable::Use use;
  for (use = table_.use_after(nullptr); use; use = table_.use_after(use->region.data())) {
    Status status = use->region.flush();
    if (first.ok()) first = std::move(status);
  }
  return first;
}

void Session::flush_at_exit() {
  uint64_t own = 0;
  RegionTable::Use use;
  for (use = table_.use_after(nullptr); use; use = table_.use_after(use->region.data())) {
    if (use->region.access() == Access::kReadOnly) continue;
    if (use->program_store != nullptr) {  // which may be gone already
      ++own;
      continue;
    }
    if (const Status s = use->region.flush(); !s)
      std::fprintf(stderr, "outcore: exit: not all of %s is stored: %s\n",
                   use->region.uri().c_str(), s.message().c_str());
  }
  if (own == 0) return;
  std::fprintf(stderr,
               "outcore: exit: %lu region%s of the program's own stores: what was written since "
               "the last umap_flush() is not stored: call uunmap() first\n",
               static_cast<unsigned long>(own), own == 1 ? "" : "s");
}

Status Session::prefetch(std::span<const std::byte* const> pages) {
  Status first;
  const auto note = [&](Status status) {
    if (first.ok()) first = std::move(status);
  };
  std::vector<uint64_t> numbers;
  for (size_t i = 0; i < pages.size();) {
    const RegionTable::Use use = table_.use_with(pages[i]);
    if (!use) {
      note(refused("umap_prefetch: an address in no region of umap()"));
      ++i;
      continue;
    }
    // A list of one region goes to it in one call.
    Region& region = use->region;
    numbers.clear();
    for (; i < pages.size() && use->contains(pages[i]); ++i)
      numbers.push_back(static_cast<uint64_t>(pages[i] - region.data()) / region.page_bytes());
    note(region.prefetch(numbers));
  }
  return first;
}

Status Session::pin(const std::byte* address, uint64_t size_bytes) {
  const RegionTable::Use use = table_.use_with(address);
  if (!use) return refused("umap_fetch_and_pin: an address in no region of umap()");
  Region& region = use->region;
  const auto offset = static_cast<uint64_t>(address - region.data());
  // As UMap does, which takes a range that is too long for one up to the region's end.
  const uint64_t bytes = std::min(size_bytes, region.size_bytes() - offset);
  return use->pins.pin(region, offset, bytes);
}

}  // namespace outcore::umapped
