#include "core/paging/cut.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/thread_stop.h"

namespace outcore::paging {

using region::PageValue;
using Obstacle = CutObstacle::Kind;

namespace {

constexpr uint64_t kPrecopyRoundsMax = 8;
// What is frozen and copied in no time: to store it beforehand, too, would cost the program its
// write faults twice.
constexpr uint64_t kFewBytes = 64 << 20;
constexpr uint32_t kAttemptsMax = 4;
constexpr uint32_t kLooksAlone = 2, kLooksMax = 10;  // before threads are stopped; in all
constexpr uint64_t kStopNsMax = 20'000'000;          // threads that do not answer
constexpr uint64_t kPinnedNsMax = 200'000'000;

}  // namespace

Cut::Cut(Pager& pager, Keeper& keeper, Flusher& flusher, std::span<PageCache* const> caches,
         const CutCalls& calls)
    : pager_(pager),
      flusher_(flusher),
      calls_(calls),
      pages_(caches),
      search_(pager, pages_),
      memory_(pager, keeper, calls_.memory),
      writer_(pager, keeper, pages_, report_) {}

Result<CutReport> Cut::attempt() {
  if (Status s = prepare(); !s) return s.error();
  if (Status s = find_moment(); !s) return s.error();
  // It may touch frozen pages, which this thread is to store.
  std::thread resumer;
  bool is_resumed = !is_quiesced_ || !calls_.resume;
  if (!is_resumed && pager_.options.has_threads) try {
      resumer = std::thread(calls_.resume);
      is_resumed = true;
    } catch (const std::system_error&) {  // then it is called when everything is stored
    }
  Status s = writer_.store();
  if (s.ok() && calls_.copied) s = calls_.copied(memory_.copies());
  if (s.ok() && calls_.stored) s = calls_.stored();
  for (PageCache* cache : pages_.caches) cache->epoch.open();
  if (!is_resumed) calls_.resume();
  if (resumer.joinable()) resumer.join();
  if (!s.ok()) return s.error();
  return report_;
}

Status Cut::prepare() {
  if (pages_.caches.size() > 0xFFFF)
    return Error{EINVAL, "cut " + std::to_string(pages_.caches.size()) +
                             " regions: at most 65535 can be cut at once"};
  if (pages_.cache_page_count() == 0) return {};
  os::ThreadStop::instance();  // made now: with turns held nothing may be allocated
  return pages_.allocate(pager_.frames.count());
}

// Most of what is dirty goes to the stores while the program runs; the list of what is left tells
// how much room it needs.
Status Cut::precopy() {
  OC_CHECK(!are_stopped_);
  report_.precopy_rounds = 0;
  for (uint64_t before = UINT64_MAX;;) {
    pages_.count = 0;
    if (!search_.look(CutSearch::Look::kList)) return cannot();
    const uint64_t room = pager_.budget.limit() / 32;  // half of what allocate_buffer() allocates
    if (pages_.listed_bytes() <= std::min(kFewBytes, room) || pages_.count > before / 4 * 3)
      return {};
    if (report_.precopy_rounds == kPrecopyRoundsMax) return {};
    before = pages_.count;
    ++report_.precopy_rounds;
    for (uint64_t begin = 0; begin < pages_.count;) {
      uint64_t end = begin;
      PageCache& cache = pages_.cache_of(begin);
      for (const uint32_t index = pages_.index_of(pages_.key[begin]);
           end < pages_.count && pages_.index_of(pages_.key[end]) == index; ++end) {
      }
      OC_CHECK(begin < end);
      OC_CHECK(end <= pages_.count);
      for (uint64_t i = begin; i < end; ++i) pages_.key[i] = pages_.page_of(pages_.key[i]);
      if (Status s = flusher_.flush_listed(cache, {&pages_.key[begin], end - begin},
                                           &report_.precopied_bytes);
          !s)
        return s;
      begin = end;
    }
  }
}

// Afterwards the pages of the list are frozen, and the gates closed; or neither.
Status Cut::find_moment() {
  for (;;) {
    ++report_.attempts;
    if (Status s = precopy(); !s) return s;
    if (Status s = writer_.allocate_buffer(); !s) return s;
    if (Status s = memory_.allocate(); !s) return s;
    if (calls_.quiesce) {
      if (Status s = calls_.quiesce(); !s) return s;
      is_quiesced_ = true;
    }
    Status entered;
    if (calls_.entered) entered = calls_.entered();
    const bool is_found = entered.ok() && freeze();
    if (entered.ok() && calls_.left) calls_.left(is_found);
    if (is_found) return {};
    if (is_quiesced_ && calls_.resume) calls_.resume();
    is_quiesced_ = false;
    if (!entered.ok()) return entered;
    if (search_.obstacle().kind == Obstacle::kPinned) {
      if (Status s = wait_for_unpin(); !s) return s;
      continue;
    }
    const bool may_pass = search_.obstacle().kind == Obstacle::kWriters ||
                          search_.obstacle().kind == Obstacle::kBusyPage;
    if (!may_pass || report_.attempts >= kAttemptsMax) return cannot();
  }
}

bool Cut::freeze() {
  OC_CHECK(!are_stopped_);
  OC_CHECK(writer_.is_idle());
  search_.set_obstacle(Obstacle::kNone);
  pages_.count = 0;
  report_.looks = report_.stopped_threads = 0;
  // In this order: whoever gets a turn afterwards sees the gates closed.
  for (PageCache* cache : pages_.caches) cache->epoch.close();
  for (const auto& shard : pager_.shards) shard->turn.lock();
  search_.begin_waiting(os::now_ns(), is_quiesced_);
  pause_start_ns_ = is_quiesced_ ? os::now_ns() : 0;
  const bool is_found = converge();
  if (!is_found) {
    writer_.undo(0, pages_.count);
    pages_.count = 0;
  }
  resume_threads();
  for (const auto& shard : pager_.shards) shard->turn.unlock();
  if (pause_start_ns_ != 0)
    report_.pause_ns = std::max(report_.pause_ns, os::now_ns() - pause_start_ns_);
  report_.frozen_pages = pages_.count;
  if (!is_found)
    for (PageCache* cache : pages_.caches) cache->epoch.open();
  return is_found;
}

// Freezes what is found written until a look finds nothing: since the last page was frozen nobody
// had written then, and what is not frozen is in the stores. Only this proves the cut; to stop
// threads helps it along, and may fail.
bool Cut::converge() {
  OC_CHECK(pages_.count == 0);
  if (memory_.is_any() && pause_start_ns_ == 0) {
    begin_pause();
    stop_threads();
  }
  for (uint32_t looks = 0; looks < kLooksMax; ++looks) {
    memory_.copy();
    if (calls_.candidate) calls_.candidate();
    const uint64_t before = pages_.count;
    ++report_.looks;
    if (!search_.look(CutSearch::Look::kFreeze)) return false;
    OC_CHECK(pages_.count >= before);
    if (pages_.count == before && memory_.is_as_copied()) return true;
    if (pause_start_ns_ == 0) begin_pause();
    if (looks + 1 >= kLooksAlone) stop_threads();
    if (!search_.seal(before)) return false;
  }
  search_.set_obstacle(Obstacle::kWriters);
  return false;
}

void Cut::begin_pause() {
  pause_start_ns_ = os::now_ns();
  search_.begin_waiting(pause_start_ns_, true);
}

void Cut::stop_threads() {
  if (are_stopped_ || is_quiesced_ || !calls_.may_stop_threads) return;
  if (!calls_.stop && !pager_.options.has_threads) return;
  are_stopped_ = true;
  report_.stopped_threads =
      calls_.stop ? calls_.stop() : os::ThreadStop::instance().stop(kStopNsMax);
  search_.begin_waiting(os::now_ns(), true);
}

void Cut::resume_threads() {
  if (!are_stopped_) return;
  are_stopped_ = false;
  if (!calls_.stop)
    os::ThreadStop::instance().go_on();
  else if (calls_.go_on)
    calls_.go_on();
}

Status Cut::wait_for_unpin() {
  OC_CHECK(search_.obstacle().kind == Obstacle::kPinned);
  OC_CHECK(search_.obstacle().index < pages_.caches.size());
  const uint64_t now_ns = os::now_ns();
  if (pinned_since_ns_ == 0) pinned_since_ns_ = now_ns;
  if (now_ns - pinned_since_ns_ > kPinnedNsMax) return cannot();
  region::PageWord& word = pages_.caches[search_.obstacle().index]->words[search_.obstacle().page];
  if (const PageValue seen = word.load(); seen.pins() != 0) word.wait_while(seen, 10'000'000);
  return {};
}

Status Cut::cannot() const {
  const std::string page = "page " + std::to_string(search_.obstacle().page);
  const std::string uri = pages_.caches.empty() ? "" : pages_.caches[search_.obstacle().index]->uri;
  switch (search_.obstacle().kind) {
    case Obstacle::kPinned:
      return Error{EBUSY, "cut " + uri + ": " + page +
                              " is pinned and written, and what devices write into it leaves no "
                              "trace; unpin it first"};
    case Obstacle::kLocked:
      return Error{EBUSY, "cut " + uri + ": its memory cannot be unmapped; is it locked (mlock)?"};
    case Obstacle::kGone:
      return Error{ENODEV, "cut " + uri +
                               ": it was handed back to the kernel meanwhile, which "
                               "writes it to its file itself"};
    case Obstacle::kUnknown:
      return Error{EIO, "cut " + uri + ": the kernel does not say what was written; try again"};
    case Obstacle::kBusyPage:
      return Error{
          EAGAIN, "cut " + uri + ": " + page + " is being read from its store for long; try again"};
    default:
      return Error{EAGAIN, "cut " + std::to_string(pages_.caches.size()) +
                               " regions: the program writes without end, and threads that block "
                               "signals or wait in the kernel cannot be stopped; try again, or "
                               "give a function that brings the program to rest"};
  }
}

}  // namespace outcore::paging
