#include "core/paging/pager.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/region/address_map.h"

namespace outcore::paging {

using base::format_bytes;

namespace {

// Pages that must fit beside the buffers, so that a fill, the pages ahead and a batch on its way
// out can coexist.
constexpr uint64_t kPagesLeast = 8;
constexpr uint64_t kBudgetLeast = 256 << 10;

uint64_t write_buffer_bytes(uint64_t budget_bytes, unsigned keepers) {
  return std::clamp<uint64_t>(base::round_down(budget_bytes / 32 / keepers, base::kSystemPage),
                              16 << 10, 1 << 20);
}

// What is no page: of transfers, and of what is written back.
uint64_t buffer_bytes_of(const PagerOptions& options) {
  return budget::BouncePool::shape_for(options.budget_bytes).total_bytes() +
         options.keepers * write_buffer_bytes(options.budget_bytes, options.keepers);
}

}  // namespace

Status Pager::check_budget(const PagerOptions& options, uint64_t page_bytes) {
  OC_CHECK(options.keepers != 0);
  const auto refuse = [&](const std::string& use, uint64_t least_bytes) {
    return Error{EINVAL, "a budget of " + format_bytes(options.budget_bytes) +
                             " is too small for " + use + ": the least that would do is " +
                             format_bytes(least_bytes)};
  };
  const uint64_t fixed = buffer_bytes_of(options);
  if (options.budget_bytes < kBudgetLeast || fixed > options.budget_bytes / 2)
    return refuse(std::to_string(options.keepers) + (options.keepers == 1 ? " keeper" : " keepers"),
                  std::max(kBudgetLeast, 2 * options.keepers * uint64_t{64 << 10}));
  const uint64_t least = fixed + (kPagesLeast + options.prefetch_threads) * page_bytes;
  if (page_bytes > base::kSystemPage && least > options.budget_bytes)
    return refuse("pages of " + format_bytes(page_bytes), least);
  return {};
}

Pager::~Pager() {
  for (uint32_t i = 0; i < caches_end; ++i) OC_CHECK(caches[i].load() == nullptr);
}

Status Pager::allocate() {
  OC_CHECK(options.keepers != 0);
  OC_CHECK(options.low_watermark <= options.high_watermark);
  OC_CHECK(options.high_watermark <= 100);
  const uint64_t buffers = write_buffer_bytes(options.budget_bytes, options.keepers);
  const budget::BouncePool::Shape shape = budget::BouncePool::shape_for(options.budget_bytes);
  const uint64_t fixed = buffer_bytes_of(options);
  if (Status s = check_budget(options, base::kSystemPage); !s) return s;
  if (Status s = bounce.allocate(shape, options.keepers * buffers); !s) return s;
  if (Status s = frames.allocate(
          static_cast<uint32_t>(std::min<uint64_t>(options.frames_max, 0xFFFFFFF0)));
      !s)
    return s;
  if (Status s = caches.allocate(kCachesMax); !s) return s;
  if (Status s = tuner.allocate(); !s) return s;
  OC_CHECK(budget.try_acquire(fixed));
  for (unsigned i = 0; i < options.keepers; ++i) {
    auto shard = std::make_unique<Shard>();
    const uint64_t capacity = options.budget_bytes / base::kSystemPage / options.keepers;
    Result<std::unique_ptr<Policy>> policy = make_policy(options.policy, frames.count(), capacity);
    if (!policy) return policy.error();
    shard->policy = std::move(policy).value();
    policy_wants_rescue = shard->policy->leaving_target() > 0;
    shard->write_buffer = bounce.own().data() + i * buffers;
    shard->write_buffer_bytes = buffers;
    shards.push_back(std::move(shard));
  }
  tell_policy(*shards.front());
  return {};
}

void Pager::tell_policy(Shard& shard) const {
  const std::string_view taken = shard.policy->taken();
  // One of several is told, as its shards see the same program.
  if (taken == shard.told_policy || &shard != shards.front().get()) return;
  shard.told_policy = taken;
  if (options.policy_now != nullptr) options.policy_now->set(taken);
}

Shard& Pager::shard_of(const PageCache& cache, uint64_t page) const {
  OC_ASSERT(page < cache.page_count());
  if (shards.size() == 1) return *shards[0];
  // Stretches of 8 MiB stay together, so that neighbours are evicted and written back together.
  const uint64_t stretch = page * cache.page_bytes >> 23;
  return *shards[(stretch * 0x9E3779B97F4A7C15ull + cache.id) % shards.size()];
}

Pager::Watermarks Pager::watermarks() const {
  const uint64_t limit = budget.limit();
  const uint64_t room = limit - std::min(limit, page_bytes_max.load(std::memory_order_relaxed));
  const Watermarks marks{std::min(limit / 100 * options.low_watermark, room),
                         std::min(limit / 100 * options.high_watermark, room)};
  OC_CHECK(marks.low <= marks.high);
  OC_CHECK(marks.high <= limit);
  return marks;
}

uint64_t Pager::buffer_bytes() const {
  return bounce.shape().total_bytes() +
         options.keepers * write_buffer_bytes(options.budget_bytes, options.keepers);
}

uint64_t Pager::least_budget(uint64_t page_bytes) const {
  return buffer_bytes() + (kPagesLeast + options.prefetch_threads) * page_bytes;
}

void Pager::for_each_framed(const PageCache& cache, uint64_t first, uint64_t end,
                            const std::function<void(uint64_t)>& f) {
  end = std::min(end, cache.page_count());
  if (first >= end) return;
  if (end - first <= frames.used_once()) {
    for (uint64_t page = first; page < end; ++page) f(page);
    return;
  }
  for (uint32_t frame = 0; frame < frames.used_once(); ++frame) {
    budget::FrameRecord& record = frames[frame];
    if (std::atomic_ref(record.cache).load() != cache.id) continue;
    const uint64_t page = std::atomic_ref(record.page).load();
    if (page >= first && page < end) f(page);
  }
}

std::span<std::byte> Pager::buffers() const { return bounce.memory(); }

uint64_t Pager::metadata_bytes() const {
  uint64_t bytes = frames.touched_bytes() + tuner.metadata_bytes();
  for (const auto& shard : shards) bytes += shard->policy->metadata_bytes();
  for (uint32_t i = 0; i < caches_end; ++i) {
    const PageCache* cache = caches[i].load();
    if (cache != nullptr) bytes += cache->words.touched() + cache->was_here.touched();
  }
  return bytes;
}

bool Pager::is_valid() const {
  uint64_t resident = 0;
  for (uint32_t i = 0; i < caches_end; ++i)
    if (const PageCache* cache = caches[i].load(); cache != nullptr)
      resident += cache->resident_bytes.load();
  return resident <= budget.used() && region::AddressMap::instance().is_valid();
}

}  // namespace outcore::paging
