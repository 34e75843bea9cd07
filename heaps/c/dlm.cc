// The dlm data of a program: one runtime and one region; first the arrays, then what dlm_alloc has
// allocated. See outcore/dlm.h.
#include "outcore/dlm.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/c/outcome.h"
#include "core/os/at_fork.h"
#include "core/runtime/exit_report.h"
#include "core/runtime/resolved_options.h"
#include "core/store/registry.h"
#include "heaps/c/dlm_ranges.h"
#include "outcore/runtime.h"

using outcore::Delivery;
using outcore::Error;
using outcore::MapOptions;
using outcore::OpenOptions;
using outcore::Region;
using outcore::Reservation;
using outcore::Result;
using outcore::Runtime;
using outcore::Status;
using outcore::Store;
using outcore::base::kSystemPage;
using outcore::base::round_down;
using outcore::base::round_up;
using namespace outcore::c;

namespace {

constexpr const char* kUsualStore = "scratch:?reserve=no";
// Addresses reserved for dlm_alloc. Sanitizers with shadow memory leave fewer
// (heaps/occ/section.h).
constexpr uint64_t kAllocBytesMax = uint64_t{1} << 42;
constexpr uint64_t kLowEnd = 0x7f'0000'0000;  // for arrays that begin below this
constexpr uint64_t kStepBytes = 64 << 20;     // the region grows by this
constexpr uint64_t kUsualPageBytesMax = 256 << 10;
constexpr uint64_t kGivenBackBytesMin = 64 << 10;

struct Data {
  Runtime runtime;
  Reservation reservation;
  std::shared_ptr<Store> store;
  Region region;
  std::string metrics_at_exit;
  bool is_volatile = true;  // the bytes are not needed after the process
  uint64_t alloc_offset = 0;
  DlmRanges ranges{};
};

// What the options say that the region does not.
struct Settings {
  std::string metrics_at_exit, scratch_dir;
  bool is_delivery_set = false;
};

std::mutex lock;
Data* data = nullptr;  // never deleted: threads may use it until the process ends
pid_t owner = 0;
bool has_begun = false, has_ended = false;
// Addresses that system calls must not touch; with message delivery there are none.
std::atomic<uintptr_t> untouchable_first{0}, untouchable_end{0};

// Large pages suit arrays (DLM, section IV), as long as a thousand of them fit into the budget.
uint64_t usual_page_bytes(uint64_t budget_bytes) {
  return std::clamp(std::bit_floor(budget_bytes / 1024), kSystemPage, kUsualPageBytesMax);
}

struct Mapped {
  std::shared_ptr<Store> store;
  Region region;
};

// With `scratch_dir` for a store without a folder of its own.
Result<Mapped> map_store(Runtime& runtime, const std::string& uri, const MapOptions& options,
                         const std::string& scratch_dir) {
  const bool is_volatile = outcore::store::dies_with_process(uri);
  OpenOptions open;
  open.is_writable = open.may_create = true;
  open.scratch_dir = scratch_dir;
  if (is_volatile) open.size_bytes = options.size_bytes;
  Result<std::shared_ptr<Store>> store = outcore::open_store(uri, open);
  if (!store) return store.error();
  if (!is_volatile && store.value()->size_bytes() != 0)
    return Error{EEXIST, "map " + uri + " (OUTCORE_STORE): it holds " +
                             outcore::base::format_bytes(store.value()->size_bytes()) +
                             ", and dlm data begins as zeros; name one that is new or empty"};
  Result<Region> region = runtime.map(store.value(), options);
  // Empties the store, so that another attempt finds it as it was.
  if (!region && !is_volatile) static_cast<void>(store.value()->resize(0));
  if (!region) return region.error();
  return Mapped{std::move(store).value(), std::move(region).value()};
}

// With message delivery, system calls on absent pages work, and debuggers are not disturbed by
// SIGBUS; so it is tried first.
Result<Mapped> map_best(Runtime& runtime, const std::string& uri, MapOptions options,
                        const Settings& settings) {
  if (!settings.is_delivery_set) {
    options.delivery = Delivery::kMessages;
    Result<Mapped> mapped = map_store(runtime, uri, options, settings.scratch_dir);
    if (mapped.ok() || mapped.code() != EPERM) return mapped;
    options.delivery.reset();
  }
  return map_store(runtime, uri, options, settings.scratch_dir);
}

// Starts the runtime with defaults that suit arrays.
Result<Runtime> start_runtime(Settings* settings) {
  Result<outcore::runtime::ResolvedOptions> resolved = outcore::runtime::resolve_options({});
  if (!resolved) return resolved.error();
  const outcore::runtime::ResolvedOptions& set = resolved.value();
  const auto is_default = [&](const char* name) { return set.source_of(name) == "default"; };
  outcore::RuntimeOptions options;
  if (is_default("page")) options.page_bytes = usual_page_bytes(set.budget_bytes);
  // A program that does not know Outcore would die of SIGBUS without a message.
  if (is_default("on_error")) options.on_error = outcore::OnError::kAbort;
  settings->metrics_at_exit = set.metrics_at_exit;
  settings->scratch_dir = set.scratch_dir;
  options.metrics_at_exit = "none";  // this runtime never ends
  settings->is_delivery_set = !is_default("delivery");
  return Runtime::start(options);
}

void register_fork() {
  outcore::os::at_fork(
      outcore::os::ForkOrder::kStaticArrays, [] { lock.lock(); }, [] { lock.unlock(); },
      [] { lock.unlock(); });
}

// Makes the data with arrays at `first`, or without arrays and `size_bytes` for dlm_alloc.
// REQUIRES: the lock.
Status make(void* first, uint64_t size_bytes) {
  Settings settings;
  Result<Runtime> runtime = start_runtime(&settings);
  if (!runtime) return runtime.error();
  auto made = std::make_unique<Data>(
      Data{std::move(runtime).value(), {}, {}, {}, settings.metrics_at_exit});
  const uint64_t bytes = round_up(size_bytes, kSystemPage);
  uint64_t reserve_bytes = bytes + kAllocBytesMax;
  if (const auto at = reinterpret_cast<uint64_t>(first); first != nullptr && at < kLowEnd)
    reserve_bytes = std::max(bytes, std::min(reserve_bytes, kLowEnd - at));
  Result<Reservation> reservation = made->runtime.reserve(reserve_bytes, first);
  if (!reservation) return reservation.error();
  made->reservation = std::move(reservation).value();
  const char* variable = std::getenv("OUTCORE_STORE");
  const std::string uri = variable != nullptr && *variable != 0 ? variable : kUsualStore;
  MapOptions options;
  options.access = outcore::Access::kReadWrite;
  options.size_bytes = bytes;
  options.may_create = true;
  options.reserve_bytes = reserve_bytes;
  options.address = made->reservation.data();
  Result<Mapped> mapped = map_best(made->runtime, uri, options, settings);
  if (!mapped) return mapped.error();
  made->store = std::move(mapped.value().store);
  made->region = std::move(mapped.value().region);
  made->is_volatile = outcore::store::dies_with_process(uri);
  if (first != nullptr) made->alloc_offset = bytes;
  if (first == nullptr) made->ranges.extend(bytes);
  if (made->region.delivery() != Delivery::kMessages) {
    const auto at = reinterpret_cast<uintptr_t>(made->region.data());
    untouchable_end = at + reserve_bytes;
    untouchable_first = at;
  }
  register_fork();
  owner = ::getpid();
  data = made.release();
  if (!has_begun) std::atexit([] { static_cast<void>(oc_dlm_end()); });
  return {};
}

Status check_alive(const char* what) {
  if (data == nullptr || owner == ::getpid()) return {};
  return Error{EPERM, std::string(what) +
                          ": this is a forked child, which has no dlm data: do it in the parent, "
                          "or exec"};
}

// Adds bytes for dlm_alloc, and one step more if there is room.
Status lengthen(Data& d, uint64_t least_bytes) {
  const uint64_t before = d.region.size_bytes();
  OC_CHECK(before <= d.reservation.size_bytes());
  const uint64_t room_bytes = d.reservation.size_bytes() - before;
  least_bytes = round_up(least_bytes, kSystemPage);
  if (least_bytes > room_bytes)
    return Error{ENOMEM, "dlm_alloc: " + outcore::base::format_bytes(room_bytes) +
                             " of addresses are left; ask for less, or declare an array"};
  uint64_t bytes = std::min(round_up(least_bytes, kStepBytes), room_bytes);
  Status grown = d.region.grow(before + bytes);
  if (!grown && bytes > least_bytes) {
    bytes = least_bytes;
    grown = d.region.grow(before + bytes);
  }
  if (grown.ok()) d.ranges.extend(bytes);
  return grown;
}

Result<std::byte*> take(uint64_t size_bytes, uint64_t alignment) {
  if (Status s = check_alive("dlm_alloc"); !s) return s.error();
  if (size_bytes >= kAllocBytesMax)
    return Error{ENOMEM, "dlm_alloc: " + outcore::base::format_bytes(size_bytes) +
                             " at once: less than 4 TiB will do"};
  if (data == nullptr) {
    const uint64_t least_bytes = DlmRanges::needed(size_bytes, alignment);
    if (Status s = make(nullptr, round_up(least_bytes, kStepBytes)); !s) return s.error();
  }
  std::optional<uint64_t> offset = data->ranges.allocate(size_bytes, alignment);
  if (!offset.has_value()) {
    if (Status s = lengthen(*data, DlmRanges::needed(size_bytes, alignment)); !s) return s.error();
    offset = data->ranges.allocate(size_bytes, alignment);
  }
  OC_CHECK(offset.has_value());
  return data->region.data() + data->alloc_offset + *offset;
}

void* give(const Result<std::byte*>& taken) {
  if (taken.ok()) return taken.value();
  static_cast<void>(outcome(taken.error()));
  errno = taken.code();
  return nullptr;
}

// Calls of(offset) if the range is inside of dlm data.
template <typename Call>
int on_range(const char* function, const void* memory, size_t size_bytes, Call&& of) {
  return guarded(function, [&] {
    if (Status s = check_alive(function); !s) return outcome(s);
    Region* region = nullptr;
    {
      const std::lock_guard<std::mutex> guard(lock);
      if (data != nullptr) region = &data->region;
    }
    const auto* at = static_cast<const std::byte*>(memory);
    if (region == nullptr || at < region->data() ||
        at + size_bytes > region->data() + region->size_bytes())
      return fail(EINVAL, std::string(function) + ": the range is not inside dlm data");
    return outcome(of(*region, static_cast<uint64_t>(at - region->data())));
  });
}

}  // namespace

int oc_dlm_begin(void* first, size_t size_bytes) {
  return guarded("oc_dlm_begin", [&] {
    const std::lock_guard<std::mutex> guard(lock);
    has_begun = true;
    if (size_bytes == 0) return 0;
    if (data != nullptr) return fail(EBUSY, "oc_dlm_begin: the program has dlm data already");
    return outcome(make(first, size_bytes));
  });
}

void* oc_dlm_alloc(size_t size_bytes) {
  void* memory = nullptr;
  const int result = guarded("dlm_alloc", [&] {
    const std::lock_guard<std::mutex> guard(lock);
    // A large block has whole pages of its own, so that they can be released when it is freed.
    const uint64_t alignment =
        size_bytes >= kGivenBackBytesMin ? kSystemPage : DlmRanges::kUnitBytes;
    memory = give(take(size_bytes, alignment));
    return 0;
  });
  if (result != 0) errno = -result;
  return memory;
}

void* oc_dlm_array(size_t size_bytes) {
  void* memory = nullptr;
  const int result = guarded("dlm_array", [&] {
    const std::lock_guard<std::mutex> guard(lock);
    // allocate() refuses sizes that are too large to be rounded up.
    const uint64_t whole = size_bytes >= kAllocBytesMax
                               ? size_bytes
                               : round_up(std::max<uint64_t>(size_bytes, 1), kSystemPage);
    memory = give(take(whole, kSystemPage));
    if (memory == nullptr) return 0;
    const auto offset =
        static_cast<uint64_t>(static_cast<std::byte*>(memory) - data->region.data());
    return outcome(data->region.discard(offset, whole));  // it may have been another's
  });
  if (result == 0) return memory;
  errno = -result;
  return nullptr;
}

void oc_dlm_free(void* memory) {
  if (memory == nullptr) return;
  static_cast<void>(guarded("dlm_free", [&] {
    if (!check_alive("dlm_free").ok()) return 0;
    const std::lock_guard<std::mutex> guard(lock);
    OC_CHECK(data != nullptr && "dlm_free of what dlm_alloc gave");
    const uint64_t at =
        static_cast<uint64_t>(static_cast<std::byte*>(memory) - data->region.data());
    const std::optional<uint64_t> size_bytes = data->ranges.free(at - data->alloc_offset);
    OC_CHECK(size_bytes.has_value() && "dlm_free of what dlm_alloc gave, once");
    const uint64_t from = round_up(at, kSystemPage);
    const uint64_t to = round_down(at + *size_bytes, kSystemPage);
    // An error is ignored: the space is then only used again later.
    if (*size_bytes >= kGivenBackBytesMin && to > from)
      static_cast<void>(data->region.discard(from, to - from));
    return 0;
  }));
}

int oc_dlm_prefault(const void* memory, size_t size_bytes) {
  return on_range("dlm_prefault", memory, size_bytes, [&](Region& region, uint64_t offset) {
    return region.prefault(offset, size_bytes);
  });
}

int oc_dlm_pin(const void* memory, size_t size_bytes) {
  return on_range("dlm_pin", memory, size_bytes,
                  [&](Region& region, uint64_t offset) { return region.pin(offset, size_bytes); });
}

int oc_dlm_unpin(const void* memory, size_t size_bytes) {
  return on_range("dlm_unpin", memory, size_bytes, [&](Region& region, uint64_t offset) {
    return region.unpin(offset, size_bytes);
  });
}

int oc_dlm_must_copy(const void* memory, size_t size_bytes) {
  const auto at = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t first = untouchable_first.load(std::memory_order_relaxed);
  return static_cast<int>(first != 0 && at < untouchable_end.load(std::memory_order_relaxed) &&
                          (at >= first || first - at < size_bytes));
}

int oc_dlm_end(void) {
  return guarded("oc_dlm_end", [&] {
    if (data == nullptr || owner != ::getpid() || std::exchange(has_ended, true)) return 0;
    outcore::runtime::write_metrics((*data).metrics_at_exit, (*data).runtime.metrics());
    if (!data->is_volatile) return outcome(data->region.flush());
    // The next program may need its space. Without occ this is not the very end of a program:
    // functions that were registered before may use it.
    if (has_begun) data->store->retire();
    return 0;
  });
}
