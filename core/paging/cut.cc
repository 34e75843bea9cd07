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

Cut::Cut(Engine& engine, std::span<Space* const> spaces, const CutCalls& calls)
    : engine_(engine), calls_(calls) {
  for (Space* space : spaces)
    if (space->is_writable) spaces_.push_back(space);
  std::sort(spaces_.begin(), spaces_.end(),
            [](const Space* a, const Space* b) { return a->id < b->id; });
  spaces_.erase(std::unique(spaces_.begin(), spaces_.end()), spaces_.end());
}

Cut::~Cut() {
  for (const auto& [taken, bytes] : {std::pair{buffer_, buffer_bytes_}, {memory_, memory_bytes_}})
    if (taken != nullptr) {
      os::free_table(taken, bytes);
      engine_.pager().budget.give(bytes);
    }
}

Result<CutReport> Cut::attempt() {
  if (Status s = prepare(); !s) return s.error();
  if (Status s = find_moment(); !s) return s.error();
  // It may touch frozen pages, which this thread is to store.
  std::thread resumer;
  bool is_resumed = !is_quiesced_ || !calls_.resume;
  if (!is_resumed && engine_.pager().options.has_threads) try {
      resumer = std::thread(calls_.resume);
      is_resumed = true;
    } catch (const std::system_error&) {  // then it is called when everything is stored
    }
  Status s = store();
  if (s.ok() && calls_.copied) s = calls_.copied({memory_, memory_bytes_});
  if (s.ok() && calls_.stored) s = calls_.stored();
  for (Space* space : spaces_) space->epoch.open();
  if (!is_resumed) calls_.resume();
  if (resumer.joinable()) resumer.join();
  if (!s.ok()) return s.error();
  return report_;
}

Status Cut::prepare() {
  if (spaces_.size() > 0xFFFF)
    return Error{EINVAL, "cut " + std::to_string(spaces_.size()) +
                             " regions: at most 65535 can be cut at once"};
  uint64_t pages = 0, subpages = 0;
  for (const Space* space : spaces_) {
    pages += space->page_count();
    if (space->frames->has_write_faults())
      subpages = std::max(subpages, space->page_bytes / base::kSystemPage);
  }
  if (pages == 0) return {};
  os::ThreadStop::instance();  // made now: with turns held nothing may be allocated
  const uint64_t most = std::min<uint64_t>(pages, engine_.pager().frames.count());
  if (Status s = key_.allocate(most); !s) return s;
  if (subpages <= 1) return {};
  words_each_ = (subpages + 63) / 64;
  return written_bits_.allocate(most * words_each_);
}

// Most of what is dirty goes to the stores while the program runs; the list of what is left tells
// how much room it needs.
Status Cut::precopy() {
  OC_CHECK(!are_stopped_);
  report_.precopy_rounds = 0;
  for (uint64_t before = UINT64_MAX;;) {
    count_ = 0;
    if (!look(Look::kList)) return cannot();
    const uint64_t room = engine_.pager().budget.limit() / 32;  // half of what take_buffer() takes
    if (listed_bytes() <= std::min(kFewBytes, room) || count_ > before / 4 * 3) return {};
    if (report_.precopy_rounds == kPrecopyRoundsMax) return {};
    before = count_;
    ++report_.precopy_rounds;
    for (uint64_t begin = 0; begin < count_;) {
      uint64_t end = begin;
      Space& space = space_of(begin);
      for (const uint32_t index = index_of(key_[begin]);
           end < count_ && index_of(key_[end]) == index; ++end) {
      }
      OC_CHECK(begin < end);
      OC_CHECK(end <= count_);
      for (uint64_t i = begin; i < end; ++i) key_[i] = page_of(key_[i]);
      if (Status s = engine_.flusher_.flush_listed(space, {&key_[begin], end - begin},
                                                   &report_.precopied_bytes);
          !s)
        return s;
      begin = end;
    }
  }
}

uint64_t Cut::listed_bytes() const {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < count_; ++i) bytes += space_of(i).page_bytes;
  return bytes;
}

// Afterwards the pages of the list are frozen, and the gates closed; or neither.
Status Cut::find_moment() {
  for (;;) {
    ++report_.attempts;
    if (Status s = precopy(); !s) return s;
    if (Status s = take_buffer(); !s) return s;
    if (Status s = take_memory(); !s) return s;
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
    if (obstacle_ == Obstacle::kPinned) {
      if (Status s = wait_for_unpin(); !s) return s;
      continue;
    }
    const bool may_pass = obstacle_ == Obstacle::kWriters || obstacle_ == Obstacle::kBusyPage;
    if (!may_pass || report_.attempts >= kAttemptsMax) return cannot();
  }
}

bool Cut::freeze() {
  OC_CHECK(!are_stopped_);
  OC_CHECK(request_count_ == 0);
  obstacle_ = Obstacle::kNone;
  count_ = 0;
  report_.looks = report_.stopped_threads = 0;
  // In this order: whoever gets a turn afterwards sees the gates closed.
  for (Space* space : spaces_) space->epoch.close();
  for (const auto& shard : engine_.pager().shards) shard->turn.lock();
  settle_start_ns_ = os::now_ns();
  pause_start_ns_ = is_quiesced_ ? os::now_ns() : 0;
  const bool is_found = converge();
  if (!is_found) {
    undo(0, count_);
    count_ = 0;
  }
  let_threads_go();
  for (const auto& shard : engine_.pager().shards) shard->turn.unlock();
  if (pause_start_ns_ != 0)
    report_.pause_ns = std::max(report_.pause_ns, os::now_ns() - pause_start_ns_);
  report_.frozen_pages = count_;
  if (!is_found)
    for (Space* space : spaces_) space->epoch.open();
  return is_found;
}

// Freezes what is found written until a look finds nothing: since the last page was frozen nobody
// had written then, and what is not frozen is in the stores. Only this proves the cut; to stop
// threads helps it along, and may fail.
bool Cut::converge() {
  OC_CHECK(count_ == 0);
  if (memory_ != nullptr && pause_start_ns_ == 0) {
    pause_start_ns_ = settle_start_ns_ = os::now_ns();
    stop_threads();
  }
  for (uint32_t looks = 0; looks < kLooksMax; ++looks) {
    copy_memory();
    if (calls_.candidate) calls_.candidate();
    const uint64_t before = count_;
    ++report_.looks;
    if (!look(Look::kFreeze)) return false;
    OC_CHECK(count_ >= before);
    if (count_ == before && is_memory_as_copied()) return true;
    if (pause_start_ns_ == 0) pause_start_ns_ = settle_start_ns_ = os::now_ns();
    if (looks + 1 >= kLooksAlone) stop_threads();
    if (!seal(before)) return false;
  }
  obstacle_ = Obstacle::kWriters;
  return false;
}

void Cut::stop_threads() {
  if (are_stopped_ || is_quiesced_ || !calls_.may_stop_threads) return;
  if (!calls_.stop && !engine_.pager().options.has_threads) return;
  are_stopped_ = true;
  report_.stopped_threads =
      calls_.stop ? calls_.stop() : os::ThreadStop::instance().stop(kStopNsMax);
  settle_start_ns_ = os::now_ns();
}

void Cut::let_threads_go() {
  if (!are_stopped_) return;
  are_stopped_ = false;
  if (!calls_.stop)
    os::ThreadStop::instance().go_on();
  else if (calls_.go_on)
    calls_.go_on();
}

Status Cut::wait_for_unpin() {
  OC_CHECK(obstacle_ == Obstacle::kPinned);
  OC_CHECK(obstacle_index_ < spaces_.size());
  const uint64_t now_ns = os::now_ns();
  if (pinned_since_ns_ == 0) pinned_since_ns_ = now_ns;
  if (now_ns - pinned_since_ns_ > kPinnedNsMax) return cannot();
  region::PageWord& word = spaces_[obstacle_index_]->words[obstacle_page_];
  if (const PageValue seen = word.load(); seen.pins() != 0) word.wait_while(seen, 10'000'000);
  return {};
}

Status Cut::cannot() const {
  const std::string page = "page " + std::to_string(obstacle_page_);
  const std::string uri = spaces_.empty() ? "" : spaces_[obstacle_index_]->uri;
  switch (obstacle_) {
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
      return Error{EAGAIN, "cut " + std::to_string(spaces_.size()) +
                               " regions: the program writes without end, and threads that block "
                               "signals or wait in the kernel cannot be stopped; try again, or "
                               "give a function that brings the program to rest"};
  }
}

Result<CutReport> Engine::cut(std::span<Space* const> spaces, const CutCalls& calls) {
  const os::SignalBlock block;
  std::unique_lock<os::Lock> one_at_a_time(cut_lock_, std::defer_lock);
  if (calls.may_wait)
    one_at_a_time.lock();
  else if (!one_at_a_time.try_lock())
    return Error{EAGAIN, "another cut is under way"};
  return std::make_unique<Cut>(*this, spaces, calls)->run();
}

}  // namespace outcore::paging
