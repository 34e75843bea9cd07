#include "core/paging/engine.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/unseen_by_tsan.h"
#include "core/paging/cut.h"

namespace outcore::paging {

Engine::Engine(const PagerOptions& options)
    : pager_(options),
      keeper_(pager_),
      supply_(pager_, keeper_),
      filler_(pager_, supply_),
      shared_(pager_),
      writer_(pager_, shared_),
      clusters_(pager_, supply_, filler_, shared_, queue_),
      remapper_(pager_, queue_),
      prefetcher_(pager_, supply_, filler_, shared_, clusters_, remapper_, queue_),
      replayer_(pager_, supply_, filler_),
      readahead_(pager_, queue_, prefetcher_, shared_),
      fault_path_(pager_, supply_, filler_, remapper_, queue_, readahead_, clusters_, writer_),
      fresh_pages_(pager_, supply_, filler_),
      pins_(pager_, remapper_, fault_path_, shared_, writer_),
      flusher_(pager_),
      ranges_(pager_),
      discarder_(pager_),
      views_(pager_),
      freezer_(ranges_),
      reshaper_(pager_, ranges_, views_, queue_),
      overwriter_(pager_, supply_, reshaper_),
      budget_control_(pager_, keeper_),
      lending_(std::make_shared<Lending>(budget_control_)),
      caches_(pager_, lending_) {}

Result<std::unique_ptr<Engine>> Engine::start(const PagerOptions& options) {
  std::unique_ptr<Engine> engine(new Engine(options));
  if (Status s = engine->pager_.allocate(); !s) return s.error();
  if (options.buffer_bounce.total_bytes() != 0)
    if (Status s = engine->shared_.allocate(options.buffer_bounce); !s) return s.error();
  if (Status s = engine->filler_.allocate(); !s) return s.error();
  if (!options.has_threads) return engine;
  try {
    engine->start_threads();
  } catch (const std::system_error& e) {
    return base::system_error(e.code().value(), "start a thread of the runtime",
                              "ask for fewer keepers or prefetch_threads, or raise ulimit -u");
  } catch (const std::bad_alloc&) {
    return Error{ENOMEM, "start the threads of the runtime: no memory"};
  }
  return engine;
}

void Engine::start_threads() {
  const os::SignalBlock block;  // inherited: no signal of the program runs on our threads
  // A thread that runs and has no place in the list would end the program.
  threads_.reserve(pager_.shards.size() + pager_.options.prefetch_threads);
  for (const auto& shard : pager_.shards)
    threads_.push_back(os::unseen_thread([this, s = shard.get()] { keeper_.run(*s); }));
  for (unsigned i = 0; i < pager_.options.prefetch_threads; ++i)
    threads_.push_back(os::unseen_thread([this] { prefetcher_.run(); }));
}

Engine::~Engine() {
  lending_->end();
  pager_.is_stopping = true;
  for (const auto& shard : pager_.shards) {
    shard->is_called = 1;
    os::wake_all(&shard->is_called);
  }
  queue_.wake_everybody();
  replayer_.stop();
  for (std::thread& thread : threads_) thread.join();
}

Status Engine::add_cache(PageCache* cache) {
  OC_CHECK(cache->fault_path == nullptr);
  cache->cleaned = &pager_.cleaned;
  Status s = caches_.add(cache);
  if (s.ok() && cache->writes != nullptr) {
    s = writer_.add(cache);
    if (!s.ok()) caches_.remove(cache);
  }
  if (s.ok()) cache->fault_path = &fault_path_;
  return s;
}

void Engine::remove_cache(PageCache* cache) {
  if (cache->writes != nullptr) writer_.remove(cache);
  caches_.remove(cache);
}

void Engine::hide_view(region::View* view) {
  const os::SignalBlock block;
  region::AddressMap::instance().remove(view, [&] { queue_.forget(*view); });
}

void Engine::remove_view(region::View* view) {
  PageCache* const cache = view->cache;
  if (cache == nullptr || cache->writes == nullptr) return views_.remove(view);
  const os::SignalBlock block;
  const os::Locked locked(cache->writes->views);
  views_.remove(view);
}

Result<CutReport> Engine::cut(std::span<PageCache* const> caches, const CutCalls& calls) {
  for (const PageCache* cache : caches)
    if (cache->writes != nullptr)
      return Error{ENOTSUP, "hold " + cache->uri +
                                " as it is now: other processes may write it in "
                                "their buffer; map it by a runtime without one"};
  const os::SignalBlock block;
  std::unique_lock<os::Lock> one_at_a_time(cut_lock_, std::defer_lock);
  if (calls.may_wait)
    one_at_a_time.lock();
  else if (!one_at_a_time.try_lock())
    return Error{EAGAIN, "another cut is under way"};
  return std::make_unique<Cut>(pager_, keeper_, flusher_, caches, calls)->run();
}

uint64_t Engine::used_bytes() const { return pager_.budget.used() + budget_control_.lent_bytes(); }

uint64_t Engine::metadata_bytes() const {
  constexpr uint64_t kFreshNs = 100'000'000;
  const uint64_t now_ns = os::now_ns();
  if (now_ns - metadata_ns_.load() >= kFreshNs) {
    metadata_bytes_.store(pager_.metadata_bytes());
    metadata_ns_.store(now_ns);
  }
  return metadata_bytes_.load();
}

void Engine::add_to(Metrics& metrics) const {
  const uint64_t total = budget_bytes(), used = used_bytes();
  metrics.gauges.budget_bytes = total;
  metrics.gauges.used_bytes = budget_control_.lent_bytes() == 0 ? used : std::min(used, total);
  metrics.gauges.used_bytes_max = std::max(pager_.budget.used_max(), metrics.gauges.used_bytes);
  metrics.gauges.bounce_bytes = pager_.buffer_bytes();
  metrics.gauges.metadata_bytes = metadata_bytes();
  metrics.gauges.replays = replayer_.count();
  for (const auto& shard : pager_.shards) metrics.policies.push_back(shard->policy->metrics());
}

}  // namespace outcore::paging
