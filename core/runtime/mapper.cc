#include "core/runtime/mapper.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/address_space.h"
#include "core/os/private_frames.h"
#include "core/os/protected_frames.h"
#include "core/os/shared_frames.h"
#include "core/os/signal_delivery.h"
#include "core/region/address_map.h"
#include "core/region/view_pool.h"
#include "core/runtime/inheritance.h"
#include "core/runtime/last_writer.h"
#include "core/runtime/learnt_starts.h"
#include "core/runtime/map_checks.h"
#include "core/runtime/overlay.h"
#include "core/runtime/run_recording.h"
#include "core/runtime/sharing.h"
#include "core/runtime/store_size.h"

namespace outcore::runtime {

using base::format_bytes;
using base::kPageBytesMax;
using base::kSystemPage;
using base::round_up;
using paging::PageCache;

Result<std::unique_ptr<Region::Impl>> Mapper::map(std::shared_ptr<Store> store,
                                                  const std::string& uri, const MapOptions& asked,
                                                  const Runtime::Impl::Lent* lent) {
  const std::lock_guard<std::mutex> guard(runtime_.mapping);
  MapOptions o = asked;
  if (Status s = check_size(uri, o); !s) return s.error();
  // The claim comes before any change; if no writable cache results, it is given back.
  struct Settle {
    Mapper& mapper;
    const std::string key;
    ~Settle() {
      const auto& caches = mapper.runtime_.caches;
      const auto found = caches.find(key);
      if (found == caches.end() || !found->second->is_writable) mapper.claims_.erase(key);
    }
  } const settle{*this, key_of(*store)};
  if (o.access == Access::kReadWrite)
    if (Status s = claim(*store, uri); !s) return s.error();
  const uint64_t store_bytes = StoreSize::after(*store, o);
  if (Status s = check_map(uri, o, store_bytes, lent != nullptr); !s) return s.error();
  if (o.size_bytes == 0 && lent == nullptr) o.size_bytes = store_bytes - o.offset;
  if (Status s = check_size(uri, o); !s) return s.error();
  const uint64_t shown_bytes = std::max<uint64_t>(round_up(o.size_bytes, kSystemPage), kSystemPage);
  const uint64_t reserve_bytes =
      lent != nullptr ? lent->size_bytes
                      : std::max(round_up(o.reserve_bytes, kSystemPage), shown_bytes);
  if (Status s = may_map(*store, uri, o, reserve_bytes, lent); !s) return s.error();
  if (Status s = StoreSize(runtime_).enlarge(*store, uri, o); !s) return s.error();
  auto region = std::make_unique<Region::Impl>();
  Result<PageCache*> cache =
      cache_for(std::move(store), uri, o, o.offset + reserve_bytes, lent, &region->cache_key);
  if (!cache) return cache.error();
  const Result<std::byte*> address = place(o, reserve_bytes, cache.value()->page_bytes, lent);
  if (!address) {
    drop_cache(region->cache_key);
    return address.error();
  }
  region->runtime = runtime_.shared_from_this();
  region->cache = cache.value();
  region->uri = uri;
  region->access = o.access;
  region->reserve_bytes = reserve_bytes;
  region->is_fixed = o.address != nullptr;
  region->is_lent = lent != nullptr;
  region->wants_zeros = o.on_error == OnError::kZeroFill;
  region::View* view = region->view = region::ViewPool::instance().allocate();
  view->address = address.value();
  view->offset = o.offset;
  OC_CHECK(o.size_bytes <= reserve_bytes);
  OC_CHECK(reinterpret_cast<uintptr_t>(view->address) % kSystemPage == 0);
  view->size_bytes = o.size_bytes;
  view->reserved_bytes = reserve_bytes;
  view->is_writable = o.access != Access::kReadOnly;
  view->on_error = o.on_error.value_or(runtime_.options.on_error);
  view->advice = o.advice;
  if (Status s = runtime_.engine->add_view(*region->cache, view); !s) {
    runtime_.engine->remove_view(view);
    release_place(*region);
    region::ViewPool::instance().free(view);
    drop_cache(region->cache_key);
    return Error{s.code(), "map " + uri + ": " + s.message()};
  }
  runtime_.regions.push_back(region.get());
  begin_writing(runtime_, *region);
  Inheritance::note_mapped(*region);
  runtime_.learnt->learn_by_option(*region);
  return region;
}

Status Mapper::may_map(const Store& store, const std::string& uri, const MapOptions& o,
                       uint64_t reserve_bytes, const Runtime::Impl::Lent* lent) const {
  if (lent == nullptr && o.address != nullptr)
    if (Status s = check_place(o, reserve_bytes); !s) return s;
  const uint64_t page_bytes = o.page_bytes != 0 ? o.page_bytes : runtime_.options.page_bytes;
  const auto found = runtime_.caches.find(key_of(store));
  if (o.access == Access::kPrivate || found == runtime_.caches.end())
    // In a buffer memory for pages of its own comes with the first of them.
    return runtime_.sharing->buffer() != nullptr
               ? Status()
               : runtime_.engine->check_page_bytes(uri, page_bytes);
  const PageCache& cache = *found->second;
  if (o.offset + reserve_bytes > cache.page_count() * cache.page_bytes)
    return refuse(EBUSY, uri,
                  "it is mapped already, with less room to grow: unmap it first, or reserve more "
                  "at the first map");
  if (Status s = Sharing::may_join(cache, store, o); !s) return s;
  if (o.page_bytes != 0 && page_bytes != cache.page_bytes)
    return refuse(EBUSY, cache.uri,
                  "it is mapped already, with pages of " + format_bytes(cache.page_bytes) +
                      ": use the same, or unmap it first");
  if (o.delivery.has_value() && *o.delivery != Delivery::kAuto && *o.delivery != cache.delivery)
    return refuse(EBUSY, cache.uri,
                  "it is mapped already, with another delivery: use the same, or unmap it first");
  return {};
}

Status Mapper::claim(const Store& store, const std::string& uri) {
  const std::string identity = store.identity();
  if (identity.empty() || claims_.contains(identity)) return {};
  if (claims_[identity].acquire(identity)) return {};
  claims_.erase(identity);
  return Error{EBUSY, "map " + uri +
                          ": another runtime of this process has it mapped for writing, and "
                          "neither would see what the other writes: map it by that runtime, or "
                          "unmap it there first"};
}

Result<std::byte*> Mapper::place(const MapOptions& o, uint64_t bytes, uint64_t page_bytes,
                                 const Runtime::Impl::Lent* lent) {
  if (lent != nullptr) return lent->address;
  if (o.address != nullptr) return static_cast<std::byte*>(o.address);
  return os::reserve_addresses(bytes, std::max(page_bytes, kSystemPage));
}

Status Mapper::check_place(const MapOptions& o, uint64_t reserve_bytes) const {
  auto* const address = static_cast<std::byte*>(o.address);
  OC_CHECK(address != nullptr);
  const bool is_inside = std::any_of(
      runtime_.reservations.begin(), runtime_.reservations.end(), [&](const Reservation::Impl* r) {
        return address >= r->address && address + reserve_bytes <= r->address + r->size_bytes;
      });
  if (!is_inside)
    return Error{EINVAL, "map at a fixed address: it is not inside a Reservation of this runtime"};
  if (region::AddressMap::instance().overlaps(address, reserve_bytes))
    return Error{EEXIST, "map at a fixed address: another region is there; unmap it first"};
  return {};
}

void Mapper::release_place(const Region::Impl& region) {
  if (region.is_lent) return;
  if (region.is_fixed)
    os::make_inaccessible(region.view->address, region.reserve_bytes);
  else
    os::release_addresses(region.view->address, region.reserve_bytes);
}

// The cache of the store: an existing one with the same bytes, or a new one.
Result<PageCache*> Mapper::cache_for(std::shared_ptr<Store> store, const std::string& uri,
                                     const MapOptions& o, uint64_t end_bytes,
                                     const Runtime::Impl::Lent* lent, std::string* key) {
  const uint64_t page_bytes = o.page_bytes != 0 ? o.page_bytes : runtime_.options.page_bytes;
  *key = key_of(*store);
  if (o.access == Access::kPrivate) {
    if (const auto found = runtime_.caches.find(*key);
        found != runtime_.caches.end() && found->second->is_writable) {
      const os::SignalBlock block;
      if (Status s = runtime_.engine->flush(*found->second, 0, found->second->page_count()); !s)
        return s.error();
    }
    // Whole pages: frames that do not report which parts were written write back whole pages.
    const uint64_t from = base::round_down(o.offset, page_bytes);
    const uint64_t to = round_up(o.offset + o.size_bytes, page_bytes);
    Result<std::shared_ptr<Store>> overlay =
        private_overlay(store, from, to - from, runtime_.options.scratch_dir);
    if (!overlay) return overlay.error();
    store = std::move(overlay).value();
    *key = "private " + std::to_string(nameless_++);
  } else if (const auto found = runtime_.caches.find(*key); found != runtime_.caches.end()) {
    PageCache& cache = *found->second;
    OC_CHECK(end_bytes <= cache.page_count() * cache.page_bytes);
    if (Status s = join(cache, store, o); !s) return s.error();
    publish(cache);
    return &cache;
  }

  Result<std::unique_ptr<PageCache>> made = make_cache(std::move(store), uri, o, end_bytes, lent);
  if (!made) return made.error();
  std::unique_ptr<PageCache> cache = std::move(made).value();
  if (Status s = runtime_.engine->add_cache(cache.get()); !s) return s.error();
  cache->store.load()->register_buffer(runtime_.engine->pager().buffers());
  publish(*cache);
  return (runtime_.caches[*key] = std::move(cache)).get();
}

Result<std::unique_ptr<PageCache>> Mapper::make_cache(std::shared_ptr<Store> store,
                                                      const std::string& uri, const MapOptions& o,
                                                      uint64_t end_bytes,
                                                      const Runtime::Impl::Lent* lent) {
  const uint64_t page_bytes = o.page_bytes != 0 ? o.page_bytes : runtime_.options.page_bytes;
  const Wanted wanted{o.delivery.value_or(runtime_.options.delivery),
                      o.frames.value_or(runtime_.options.frames), page_bytes,
                      o.access != Access::kReadOnly, runtime_.engine->pager().policy_wants_rescue};
  Result<Mechanism> mechanism = choose_mechanism(runtime_.kernel, wanted);
  if (!mechanism) return refuse(mechanism.code(), uri, mechanism.message());
  auto cache = std::make_unique<PageCache>(runtime_.sheet);
  cache->traits = store->traits();
  cache->uri = uri;
  cache->store_bytes = store->size_bytes();
  cache->store = store.get();
  cache->owned.push_back(std::move(store));
  cache->page_bytes = page_bytes;
  cache->is_writable = o.access != Access::kReadOnly;
  cache->read_gate.set_limit(cache->traits.read_concurrency);
  cache->write_gate.set_limit(cache->traits.write_concurrency);
  if (cache->traits.device != 0)
    cache->write_gate.share(paging::TransferCount::of_writers(cache->traits.device));
  // The table spans the whole store, because a second view may show more than the first. Its memory
  // is used where it is touched.
  const uint64_t room_bytes = lent != nullptr ? lent->room_bytes : 0;
  const uint64_t span_bytes =
      std::max({end_bytes, room_bytes, round_up(cache->store_bytes, kSystemPage)});
  if (Status s = cache->allocate_words(round_up(span_bytes, page_bytes) / page_bytes); !s)
    return s.error();
  if (Status s = cache->was_here.allocate(cache->page_count() / 64 + 1); !s) return s.error();
  const Result<bool> is_shared = runtime_.sharing->try_to_share(*cache, o, lent, mechanism.value());
  if (!is_shared) return refuse(is_shared.code(), uri, is_shared.message());
  if (!is_shared.value()) {
    if (lent != nullptr && lent->must_share)
      return refuse(EBUSY, uri, "its pages cannot be shared just now");
    Status s = runtime_.sharing->acquire_private_memory();
    if (s.ok()) s = make_frames(*cache, mechanism.value());
    if (!s.ok()) return refuse(s.code(), uri, s.message());
  }
  if (runtime_.options.checkpoint_every_ms !=
      0)  // each checkpoint copies what has changed since the last
    if (const auto logged = cache->log_changes(); !logged) return logged.error();
  if (!is_shared.value() && wanted.frames == FrameKind::kAuto &&
      cache->delivery == Delivery::kInThread && runtime_.kernel.has_write_tracking &&
      cache->frames->has_write_faults())
    cache->share_frames = [this, s = cache.get()] {
      // While frames are replaced, touches raise SIGSEGV, which a handler of the program would see.
      if (os::is_segv_handler_replaced()) return;
      // A thread that maps or unmaps may be waiting for the caller's view: then not now.
      const std::unique_lock<std::mutex> guard(runtime_.mapping, std::try_to_lock);
      if (guard.owns_lock() && !s->frames->can_share()) static_cast<void>(share_frames(*s));
    };
  return cache;
}

void Mapper::set_delivery(PageCache& cache, Delivery delivery) {
  cache.delivery = delivery;
  // Measured (docs/internals/kernel-facts.md): a fault that is answered in its thread, and one that
  // an event thread answers, without what the pager does.
  cache.fetches.cost.set_trap_ns(delivery == Delivery::kMessages ? 12'000 : 2'000);
}

Status Mapper::make_frames(PageCache& cache, const Mechanism& mechanism) const {
  set_delivery(cache, mechanism.delivery);
  const uint64_t bytes = cache.page_count() * cache.page_bytes;
  OC_CHECK(bytes != 0);
  if (mechanism.delivery == Delivery::kMprotect) {
    Result<std::unique_ptr<os::Frames>> frames = os::ProtectedFrames::make(bytes);
    if (!frames) return frames.error();
    cache.frames = std::move(frames).value();
    return {};
  }
  Result<const os::FaultSource*> source = runtime_.sources->source_for(mechanism);
  if (!source) return source.error();
  if (mechanism.frames == FrameKind::kPrivate) {
    cache.frames = os::PrivateFrames::make(*source.value());
    return {};
  }
  Result<std::unique_ptr<os::Frames>> frames = os::SharedFrames::make(*source.value(), bytes);
  if (!frames) return frames.error();
  cache.frames = std::move(frames).value();
  return {};
}

// REQUIRES: the mapping lock is held.
Status Mapper::share_frames(PageCache& cache) const {
  OC_CHECK(!cache.frames->can_share());
  Result<const os::FaultSource*> source =
      runtime_.sources->source_for({cache.delivery, FrameKind::kShared});
  if (!source) return source.error();
  Result<std::unique_ptr<os::Frames>> frames =
      os::SharedFrames::make(*source.value(), cache.page_count() * cache.page_bytes);
  if (!frames) return frames.error();
  return runtime_.engine->replace_frames(cache, std::move(frames).value());
}

// Adds another view of a cache: the same pages, the same frames. REQUIRES: may_map().
Status Mapper::join(PageCache& cache, const std::shared_ptr<Store>& store, const MapOptions& o) {
  if (!cache.frames->can_share()) {
    if (!runtime_.kernel.has_write_tracking)
      return refuse(ENOTSUP, cache.uri,
                    "it is mapped already, and this kernel cannot share its frames (Linux 6.7 "
                    "can): map it with delivery=mprotect");
    // While frames are replaced, touches raise SIGSEGV, except with message delivery.
    if (cache.delivery != Delivery::kMessages && os::is_segv_handler_replaced())
      return refuse(EBUSY, cache.uri,
                    "it is mapped already with private frames, which are replaced by means of "
                    "SIGSEGV, and that signal's handler is not Outcore's any more: map the first "
                    "with frames=shared");
    if (Status s = share_frames(cache); !s) return s;
  }
  const bool becomes_writable = o.access == Access::kReadWrite && !cache.is_writable;
  if (cache.is_writable && o.on_error == OnError::kZeroFill)
    return refuse(EINVAL, cache.uri, kNoZeros);
  const auto wants_zeros = [&](const Region::Impl* r) {
    return r->cache == &cache && r->wants_zeros;
  };
  if (becomes_writable &&
      std::any_of(runtime_.regions.begin(), runtime_.regions.end(), wants_zeros))
    return refuse(
        EBUSY, cache.uri,
        "it is mapped with on_error=zero, which goes only with reading: unmap that region "
        "first, or map it with on_error=signal or abort");
  // The existing store may have been opened read-only, and knows the size it had then.
  const uint64_t store_bytes = std::max(store->size_bytes(), cache.store.load()->size_bytes());
  const bool is_outgrown = store_bytes > cache.store.load()->size_bytes();
  if (cache.shared != nullptr && store_bytes > cache.store_bytes.load())
    return refuse(EBUSY, cache.uri, "it has grown, and others share its pages: unmap it first");
  if (is_outgrown && cache.is_writable && o.access != Access::kReadWrite)
    return refuse(EBUSY, cache.uri,
                  "it has grown to " + std::to_string(store_bytes) +
                      " bytes since it was mapped for writing: unmap that region first, or map "
                      "this one for writing, too");
  if ((becomes_writable || is_outgrown) && store.get() != cache.store.load()) {
    store->register_buffer(runtime_.engine->pager().buffers());
    cache.owned.push_back(store);
    cache.store.store(store.get());
  }
  if (becomes_writable) {
    cache.is_writable.store(true, std::memory_order_seq_cst);
    // If zeros were only the runtime's default, the option counts as not set from now on.
    if (Status s = runtime_.engine->end_zeroed(cache); !s) {
      cache.is_writable = false;
      return s;
    }
  }
  return runtime_.engine->lengthen(cache, store_bytes);
}

void Mapper::drop_cache(const std::string& key) {
  const auto found = runtime_.caches.find(key);
  if (found == runtime_.caches.end() || found->second->view_count != 0) return;
  runtime_.learnt->end(*found->second);
  runtime_.engine->remove_cache(found->second.get());
  runtime_.sharing->leave(*found->second);
  runtime_.recording->note_end(found->second->entry);
  runtime_.sheet->memory().end(*found->second->entry);
  runtime_.caches.erase(found);
  claims_.erase(key);
}

Status Mapper::unmap(Region::Impl& region, bool force) {
  const std::lock_guard<std::mutex> guard(runtime_.mapping);
  OC_CHECK(region.view != nullptr);
  OC_CHECK(region.view->cache == region.cache);
  PageCache& cache = *region.cache;
  const Status first = store_before_unmap(runtime_, region, force);
  if (!first.ok() && !force) return first;
  // If no other view shows its pages, they are dropped together with the view.
  const uint64_t from = region.view->first_page(), to = region.view->end_page();
  const bool must_empty = cache.view_count > 1 && !cache.frames->can_share();
  if (must_empty) {
    if (Status s = runtime_.engine->evict_and_block(cache, from, to); !s) {
      begin_writing(runtime_, region);
      return s;
    }
    region.view->is_replaced = true;
  }
  runtime_.engine->hide_view(region.view);
  if (cache.view_count == 1) runtime_.engine->drop_frames(cache);
  runtime_.engine->remove_view(region.view);
  if (must_empty) runtime_.engine->unblock(cache, from, to);
  release_place(region);
  region::ViewPool::instance().free(region.view);
  region.view = nullptr;
  drop_cache(region.cache_key);
  std::erase(runtime_.regions, &region);
  return first;
}

}  // namespace outcore::runtime
