// Runtime: start and end, and the calls that do not belong to a single region.
#include "outcore/runtime.h"
#include "core/base/assert.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/address_space.h"
#include "core/os/cancel_block.h"
#include "core/os/wait.h"
#include "core/region/address_map.h"
#include "core/runtime/exit_report.h"
#include "core/runtime/learnt_starts.h"
#include "core/runtime/map_checks.h"
#include "core/runtime/mapper.h"
#include "core/runtime/region_changes.h"
#include "core/runtime/run_recording.h"
#include "core/runtime/runtime_impl.h"
#include "core/runtime/sharing.h"
#include "core/runtime/start_checks.h"
#include "core/runtime/store_size.h"
#include "core/store/buffer_set.h"
#include "core/store/registry.h"
#include "outcore/buffers.h"

namespace outcore {

using base::kSystemPage;

namespace runtime {
namespace {

std::atomic<CheckpointMaker> checkpoint_maker{nullptr};
std::atomic<PoolOpener> pool_opener{nullptr};

Result<std::unique_ptr<Runtime::Impl::Checkpointer>> start_checkpoints(
    const std::shared_ptr<Runtime::Impl>& runtime) {
  static_cast<void>(store_kinds());  // registers the products
  const CheckpointMaker maker = checkpoint_maker.load();
  if (maker != nullptr) return maker(runtime);
  return Error{
      ENOTSUP,
      "make checkpoints: this program has the core of Outcore alone: link it with outcore"};
}

}  // namespace

void set_checkpoint_maker(CheckpointMaker maker, PoolOpener opener) {
  checkpoint_maker.store(maker);
  pool_opener.store(opener);
}

Status open_pool_once(const std::string& uri) {
  static_cast<void>(store_kinds());  // registers the products
  const PoolOpener opener = pool_opener.load();
  return opener == nullptr ? Status() : opener(uri);
}

}  // namespace runtime

Runtime::Impl::Impl()
    : learnt(std::make_unique<runtime::LearntStarts>(*this)),
      sharing(std::make_unique<runtime::Sharing>(*this)),
      recording(std::make_unique<runtime::RunRecording>(*this)),
      mapper(std::make_unique<runtime::Mapper>(*this)),
      changes(std::make_unique<runtime::RegionChanges>(*this)),
      generation(runtime::process_generation()) {}

Runtime::Impl::~Impl() {
  if (generation != runtime::process_generation()) {
    // In a forked child: the threads are the parent's, so nothing can be ended here.
    static_cast<void>(checkpointer.release());
    static_cast<void>(governor.release());
    recording->leave_to_parent();
    static_cast<void>(engine.release());
    static_cast<void>(sources.release());
    // Nor may its place in a buffer be given up, which is the parent's.
    sharing->leave_to_parent();
    for (auto& [key, cache] : caches) static_cast<void>(cache.release());
    static_cast<void>(new std::shared_ptr<published::Sheet>(std::move(sheet)));
    return;
  }
  checkpointer.reset();
  if (governor != nullptr) governor->end();
  if (engine != nullptr) runtime::report_end(*this);
  recording->end();
  sources.reset();  // event threads use the engine, so they end first
  // A store of the program may outlive the buffers that it was lent.
  if (engine != nullptr) store::BufferSet::of_process().forget(engine->pager().buffers());
  governor.reset();
  engine.reset();
  sharing->release_private_memory();
}

Status Runtime::Impl::check_alive(const std::string& what) const {
  if (generation == runtime::process_generation()) return {};
  return Error{
      EPERM,
      what +
          ": this is a forked child, where the parent's regions are placeholders; start a runtime "
          "of its own in it"};
}

Result<std::shared_ptr<Runtime::Impl>> Runtime::Impl::start(const RuntimeOptions& options,
                                                            bool has_own_budget_beside) {
  const os::CancelBlock uncancelled;
  Result<runtime::ResolvedOptions> resolved = runtime::resolve_options(options);
  if (!resolved) return resolved.error();
  auto impl = std::make_shared<Impl>();
  impl->given = options;
  impl->options = std::move(resolved).value();
  const runtime::ResolvedOptions& o = impl->options;
  Result<os::KernelFeatures> kernel = os::detect_kernel_features(o.kernel);
  if (!kernel) return kernel.error();
  impl->kernel = std::move(kernel).value();
  impl->sources =
      std::make_unique<runtime::FaultSources>(impl->kernel, o.event_threads, o.event_batch);
  if (Status s = impl->sharing->join(has_own_budget_beside); !s) return s.error();
  impl->sheet = published::Sheet::make();
  if (impl->sheet == nullptr)
    return base::system_error(ENOMEM, "make room for counters", "no memory or addresses are left");
  paging::PagerOptions e;
  e.budget_cells = &impl->sheet->memory().budget;
  e.policy_now = &impl->sheet->memory().policy_now;
  e.budget_bytes = base::round_down(impl->sharing->pages_bytes(), kSystemPage);
  e.buffer_bounce = impl->sharing->bounce_shape();
  const uint64_t memory_bytes =
      static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES))) * kSystemPage;
  e.frames_max = std::max({e.budget_bytes, memory_bytes, o.largest_budget()}) / kSystemPage;
  e.policy = o.policy;
  e.keepers = o.keepers;
  e.prefetch_threads = o.prefetch_threads;
  e.high_watermark = o.high_watermark;
  e.low_watermark = o.low_watermark;
  e.readahead_bytes = o.readahead_bytes;
  e.fetches_clusters = o.fetch == Fetch::kAuto;
  e.wait_ns_max = o.wait_ms_max * 1'000'000;
  Result<std::unique_ptr<paging::Engine>> engine = paging::Engine::start(e);
  const std::string budget_from = "budget (" + o.source_of("budget") + "): ";
  if (!engine) return Error{engine.code(), budget_from + engine.message()};
  impl->engine = std::move(engine).value();
  impl->publish();
  if (Status s = paging::Pager::check_budget(e, o.page_bytes); !s)
    return Error{s.code(), budget_from + s.message()};
  impl->learnt->start();
  if (Status s = impl->start_governor(); !s) return s.error();
  if (Status s = impl->recording->start_by_option(); !s) {
    // Set from outside, it is no reason to have no budget.
    if (o.source_of("report") == "the program") return s.error();
    std::fprintf(stderr, "outcore: %s: the run is not recorded\n", s.message().c_str());
  }
  runtime::install_handlers(true);
  runtime::report_at_exit(impl);
  if (o.checkpoint_every_ms != 0) {
    auto checkpointer = runtime::start_checkpoints(impl);
    if (!checkpointer) return checkpointer.error();
    impl->checkpointer = std::move(checkpointer).value();
  }
  return impl;
}

// What others may see of the runtime beside its counts.
void Runtime::Impl::publish() const {
  published::Layout& seen = sheet->memory();
  seen.policy.set(options.policy);
  seen.budget_source.set(options.source_of("budget"));
  seen.shared_buffer.set(sharing->buffer() != nullptr ? options.buffer : "");
  seen.buffer_bytes = engine->pager().buffer_bytes();
  sheet->show();
}

Status Runtime::Impl::start_governor() {
  if (!options.adapts_budget || sharing->buffer() != nullptr) return {};
  Result<runtime::BudgetGovernor::Meter> meter = runtime::BudgetGovernor::machine_meter();
  if (!meter) return meter.error();
  const uint64_t frames_bytes = uint64_t{engine->pager().frames.count()} * kSystemPage;
  runtime::BudgetGovernor::Options bounds;
  bounds.max_bytes = std::min(options.budget_max_bytes, frames_bytes);
  // A region of the usual pages may be mapped at any moment.
  const uint64_t needed =
      base::round_up(engine->pager().least_budget(options.page_bytes), kSystemPage);
  bounds.min_bytes = std::min(std::max(options.budget_min_bytes, needed), bounds.max_bytes);
  governor =
      std::make_unique<runtime::BudgetGovernor>(*engine, ended(), bounds, std::move(meter).value());
  return governor->start();
}

Result<Runtime> Runtime::start(const RuntimeOptions& options) {
  Result<std::shared_ptr<Impl>> impl = Impl::start(options);
  if (!impl) return impl.error();
  if (const std::string complaint = impl.value()->learnt->complaint(); !complaint.empty())
    std::fprintf(stderr, "outcore: %s\n", complaint.c_str());
  if (impl.value()->learnt->learns_by_option()) runtime::keep_learnt_at_exit(impl.value());
  return Runtime(std::move(impl).value());
}

Status Runtime::check(const RuntimeOptions& options) {
  return runtime::resolve_options(options).status();
}

Status Runtime::check_start(const RuntimeOptions& options) {
  const os::CancelBlock uncancelled;
  const Result<runtime::ResolvedOptions> resolved = runtime::resolve_options(options);
  return resolved ? runtime::check_start(resolved.value()) : resolved.status();
}

Runtime::Runtime(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Runtime::Runtime(Runtime&&) noexcept = default;

Runtime& Runtime::operator=(Runtime&& other) noexcept {
  if (this != &other) {
    Runtime ended(std::move(*this));
    impl_ = std::move(other.impl_);
  }
  return *this;
}

Runtime::~Runtime() {
  const os::CancelBlock uncancelled;
  if (impl_ == nullptr || impl_->generation != runtime::process_generation()) return;
  if (!impl_->is_stand_in.load()) impl_->checkpointer.reset();  // it has none, and several handles
  const std::lock_guard<std::mutex> guard(impl_->mapping);
  OC_CHECK((impl_->regions.empty() || impl_->is_stand_in.load()) &&
           "a runtime must outlive its regions");
}

Result<Region> Runtime::map(const std::string& uri, const MapOptions& options) {
  const os::CancelBlock uncancelled;
  if (Status s = impl_->check_alive("map " + uri); !s) return s.error();
  // Before a store is made for it.
  if (Status s = runtime::check_size(uri, options); !s) return s.error();
  if (options.may_create)
    if (Status s = runtime::check_map(uri, options, options.offset + options.size_bytes, false); !s)
      return s.error();
  OpenOptions open;
  open.is_writable = options.access == Access::kReadWrite;
  open.may_create = options.may_create;
  open.keeps_size = true;
  open.size_bytes =
      options.may_create && options.size_bytes != 0 ? options.offset + options.size_bytes : 0;
  open.scratch_dir = impl_->options.scratch_dir;
  if (store::dies_with_process(uri)) {
    open.size_bytes = options.offset + options.size_bytes;  // it is always new
    open.is_writable = open.may_create = true;
  }
  // Opening some stores that may be created makes them as large as they are to be.
  if (Status s = impl_->sharing->may_enlarge(uri, open.size_bytes); !s)
    return Error{s.code(), "map " + uri + ": " + s.message()};
  Result<std::shared_ptr<Store>> store = open_store(uri, open);
  if (!store) return store.error();
  return map(std::move(store).value(), options);
}

Result<Region> Runtime::map(std::shared_ptr<Store> store, const MapOptions& options) {
  const os::CancelBlock uncancelled;
  if (store == nullptr) return Error{EINVAL, "map: no store was given"};
  const std::string uri = store->uri();
  if (Status s = impl_->check_alive("map " + uri); !s) return s.error();
  Result<std::unique_ptr<Region::Impl>> region = impl_->mapper->map(std::move(store), uri, options);
  if (!region) return region.error();
  return Region(std::move(region).value());
}

Status Runtime::shorten(const std::string& uri, uint64_t bytes) {
  const os::CancelBlock uncancelled;
  if (Status s = impl_->check_alive("shorten " + uri); !s) return s;
  OpenOptions open;
  open.is_writable = true;
  const Result<std::shared_ptr<Store>> store = open_store(uri, open);
  return store ? runtime::StoreSize(*impl_).shorten(*store.value(), bytes) : Status(store.error());
}

Status Runtime::resize_budget(uint64_t bytes) {
  const os::CancelBlock uncancelled;
  if (Status s = impl_->check_alive("resize the budget"); !s) return s;
  if (impl_->sharing->buffer() != nullptr) return resize_buffer(impl_->options.buffer, bytes);
  return impl_->governor != nullptr ? impl_->governor->fix(bytes)
                                    : impl_->engine->resize_budget(bytes);
}

uint64_t Runtime::budget_bytes() const {
  if (!impl_->check_alive("").ok())
    return impl_->options.budget_bytes;  // the board is the parent's
  return impl_->sharing->buffer() != nullptr ? impl_->sharing->buffer()->room().limit_bytes()
                                             : impl_->engine->budget_bytes();
}

Metrics Runtime::metrics() const {
  if (!impl_->check_alive("metrics").ok()) return {};  // the parent's metrics are not the child's
  return runtime::collect_metrics(*impl_);
}

std::string Runtime::describe_options() const { return impl_->options.describe(); }

const char* version() { return OUTCORE_VERSION; }

// -- Addresses: reserved ones, and those of regions --

Reservation::Reservation() = default;
Reservation::Reservation(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reservation::Reservation(Reservation&&) noexcept = default;
Reservation& Reservation::operator=(Reservation&&) noexcept = default;
Reservation::~Reservation() = default;
std::byte* Reservation::data() const { return impl_ == nullptr ? nullptr : impl_->address; }
uint64_t Reservation::size_bytes() const { return impl_ == nullptr ? 0 : impl_->size_bytes; }

Reservation::Impl::~Impl() {
  const std::shared_ptr<Runtime::Impl> owner = runtime.lock();
  if (owner != nullptr && owner->check_alive("release addresses").ok()) {
    const std::lock_guard<std::mutex> guard(owner->mapping);
    std::erase(owner->reservations, this);
    OC_CHECK(!region::AddressMap::instance().overlaps(address, size_bytes) &&
             "a reservation must outlive its regions");
    // With the lock: reserve_over() may want them just now.
    os::release_addresses(address, size_bytes);
    return;
  }
  os::release_addresses(address, size_bytes);
}

Result<Reservation> Runtime::reserve(uint64_t size_bytes, void* at) {
  const os::CancelBlock uncancelled;
  if (Status s = impl_->check_alive("reserve addresses"); !s) return s.error();
  if (size_bytes == 0) return Error{EINVAL, "reserve 0 bytes: ask for at least 4096"};
  if (size_bytes > uint64_t{1} << 62)
    return Error{EINVAL, "reserve " + std::to_string(size_bytes) + " bytes: there are fewer"};
  if (reinterpret_cast<uintptr_t>(at) % kSystemPage != 0)
    return Error{EINVAL, "reserve addresses: the address is not a multiple of 4096"};
  auto reservation = std::make_unique<Reservation::Impl>();
  size_bytes = base::round_up(size_bytes, kSystemPage);
  Result<std::byte*> address = at == nullptr
                                   ? os::reserve_addresses(size_bytes, base::kPageBytesMax)
                                   : os::reserve_addresses_at(at, size_bytes);
  if (!address) return address.error();
  OC_CHECK(reinterpret_cast<uintptr_t>(address.value()) % kSystemPage == 0);
  reservation->address = address.value();
  reservation->size_bytes = size_bytes;
  reservation->runtime = impl_;
  const std::lock_guard<std::mutex> guard(impl_->mapping);
  impl_->reservations.push_back(reservation.get());
  return Reservation(std::move(reservation));
}

Result<Reservation> Runtime::reserve_over(void* at, uint64_t size_bytes) {
  const os::CancelBlock uncancelled;
  if (Status s = impl_->check_alive("reserve addresses"); !s) return s.error();
  auto* const address = static_cast<std::byte*>(at);
  const auto first = reinterpret_cast<uintptr_t>(at);
  if (size_bytes == 0 || first == 0 || size_bytes % kSystemPage != 0 || first % kSystemPage != 0 ||
      size_bytes > UINTPTR_MAX - first)
    return Error{EINVAL, "reserve addresses: address and size are multiples of 4096, and not 0"};
  auto reservation = std::make_unique<Reservation::Impl>();
  const std::lock_guard<std::mutex> guard(impl_->mapping);
  impl_->reservations.reserve(impl_->reservations.size() + 1);
  if (region::AddressMap::instance().overlaps(address, size_bytes))
    return Error{EEXIST, "reserve addresses: a region is there; unmap it first"};
  for (const Reservation::Impl* other : impl_->reservations)
    if (address < other->address + other->size_bytes && other->address < address + size_bytes)
      return Error{EEXIST, "reserve addresses: a reservation is there; end it first"};
  if (const int result = os::make_inaccessible(address, size_bytes); result != 0)
    return base::system_error(result, "reserve addresses in place of what is mapped there");
  reservation->address = address;
  reservation->size_bytes = size_bytes;
  reservation->runtime = impl_;
  impl_->reservations.push_back(reservation.get());
  return Reservation(std::move(reservation));
}

}  // namespace outcore
