// EventRing: events are told whole, in order, or not at all.
#include "core/published/events.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace outcore::published {
namespace {

// All of an event follows from one number, so that one that is mixed of two shows.
Event event_of(uint64_t n) {
  Event event;
  event.kind = static_cast<EventKind>(n % static_cast<uint64_t>(EventKind::kCount));
  event.pattern = static_cast<Pattern>(n % static_cast<uint64_t>(Pattern::kCount));
  event.slot = static_cast<uint32_t>(n * 7 % 512);
  event.users = static_cast<uint32_t>(n * 13 % 256);
  event.page = n;
  event.time_ns = n * 3 + 1;
  event.duration_ns = (n * 5 + 2) % (1 << 30) * 16;
  event.site = ~n;
  event.thread = static_cast<uint32_t>(n * 11);
  return event;
}

bool is_whole(const Event& event) {
  const Event wanted = event_of(event.page);
  return event.kind == wanted.kind && event.pattern == wanted.pattern &&
         event.slot == wanted.slot && event.users == wanted.users &&
         event.time_ns == wanted.time_ns && event.duration_ns == wanted.duration_ns &&
         event.site == wanted.site && event.thread == wanted.thread;
}

TEST(EventRing, GivesWhatWasPut) {
  const auto ring = std::make_unique<EventRing>();
  Event event;
  EXPECT_FALSE(ring->get(0, &event));
  EXPECT_EQ(ring->end(), 0u);
  for (uint64_t n = 0; n < 100; ++n) ring->put(event_of(n));
  EXPECT_EQ(ring->end(), 100u);
  for (uint64_t n = 0; n < 100; ++n) {
    ASSERT_TRUE(ring->get(n, &event)) << n;
    EXPECT_EQ(event.page, n);
    EXPECT_TRUE(is_whole(event)) << n;
  }
  EXPECT_FALSE(ring->get(100, &event)) << "not yet";
}

TEST(EventRing, KeepsTheLargestNumbersThatItHasPlaceFor) {
  const auto ring = std::make_unique<EventRing>();
  Event most;
  most.kind = EventKind::kWriteBack;
  most.pattern = Pattern::kStrided;
  most.slot = 1023;
  most.users = 0xFFFFFF;
  most.page = EventRing::kPagesMax - 1;
  most.time_ns = most.site = UINT64_MAX;
  most.duration_ns = UINT64_MAX;
  most.thread = UINT32_MAX;
  ring->put(most);
  Event event;
  ASSERT_TRUE(ring->get(0, &event));
  EXPECT_EQ(event.kind, most.kind);
  EXPECT_EQ(event.pattern, most.pattern);
  EXPECT_EQ(event.slot, most.slot);
  EXPECT_EQ(event.users, 0xFFu);
  EXPECT_EQ(event.page, most.page);
  EXPECT_EQ(event.time_ns, most.time_ns);
  EXPECT_EQ(event.site, most.site);
  EXPECT_EQ(event.duration_ns, uint64_t{UINT32_MAX} * 16) << "longer ones are told as this long";
  EXPECT_EQ(event.thread, most.thread);
}

TEST(EventRing, BeginsAgainWhenItIsFullAndLosesTheOldestAlone) {
  const auto ring = std::make_unique<EventRing>();
  constexpr uint64_t kAll = 2 * EventRing::kEvents + 17;
  for (uint64_t n = 0; n < kAll; ++n) ring->put(event_of(n));
  Event event;
  for (uint64_t n = 0; n < kAll; ++n) {
    const bool is_there = n + EventRing::kEvents >= kAll;
    ASSERT_EQ(ring->get(n, &event), is_there) << n;
    if (is_there) {
      ASSERT_EQ(event.page, n);
      ASSERT_TRUE(is_whole(event));
    }
  }
}

TEST(EventRing, OfZeroBytesIsOffAndTakesEveryPage) {
  const auto ring = std::make_unique<EventRing>();
  EXPECT_FALSE(ring->is_on());
  EXPECT_EQ(ring->sampled_one_in(), 1u);
  ring->turn(true);
  EXPECT_TRUE(ring->is_on());
  ring->turn(false);
  EXPECT_FALSE(ring->is_on());
  for (uint64_t page = 0; page < 1000; ++page) EXPECT_TRUE(ring->wants(page));
}

TEST(EventRing, APageIsToldAlwaysOrNever) {
  const auto ring = std::make_unique<EventRing>();
  std::set<uint64_t> before;
  constexpr uint64_t kPages = 1 << 16;
  for (uint64_t page = 0; page < kPages; ++page) before.insert(page);
  for (uint32_t one_in = 1; one_in <= 1024; one_in *= 2) {
    ring->sample_one_in(one_in);
    EXPECT_EQ(ring->sampled_one_in(), one_in);
    std::set<uint64_t> told;
    for (uint64_t page = 0; page < kPages; ++page) {
      if (ring->wants(page)) told.insert(page);
      EXPECT_EQ(ring->wants(page), EventRing::is_in_sample(page, one_in));
    }
    // A page of a smaller sample was in each larger one.
    for (const uint64_t page : told) EXPECT_TRUE(before.contains(page)) << page;
    const double wanted = static_cast<double>(kPages) / one_in;
    EXPECT_NEAR(static_cast<double>(told.size()), wanted, wanted / 4) << one_in;
    before = told;
  }
}

// A program that goes in steps is seen: of pages in steps of a power of two a share is told.
TEST(EventRing, TheSampleHasItsShareOfPagesInSteps) {
  for (uint64_t step = 1; step <= 4096; step *= 2) {
    uint64_t told = 0;
    for (uint64_t i = 0; i < 16'384; ++i) told += EventRing::is_in_sample(i * step, 16);
    EXPECT_GT(told, 16'384u / 16 / 2) << step;
    EXPECT_LT(told, 16'384u / 16 * 2) << step;
  }
}

TEST(EventRing, AReaderThatIsTooSlowLosesEventsAndNeverGetsATornOne) {
  const auto ring = std::make_unique<EventRing>();
  constexpr uint64_t kThreads = 4, kEach = 400'000;
  std::atomic<uint64_t> ended{0};
  std::vector<std::thread> writers;
  for (uint64_t t = 0; t < kThreads; ++t)
    writers.emplace_back([&, t] {
      for (uint64_t i = 0; i < kEach; ++i) ring->put(event_of(t * kEach + i));
      ++ended;
    });
  uint64_t got = 0, torn = 0, lost = 0, next = 0;
  for (bool is_last = false; !is_last;) {
    is_last = ended == kThreads;
    // Those that are being written over, too.
    const uint64_t end = ring->end();
    next = std::max(next, end - std::min(end, EventRing::kEvents + 64));
    for (Event event; next < end; ++next)
      if (!ring->get(next, &event))
        ++lost;
      else
        ++got, torn += !is_whole(event);
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(torn, 0u);
  EXPECT_GE(got, EventRing::kEvents / 2);
  EXPECT_EQ(ring->end(), kThreads * kEach);
}

// A writer that is stopped for a whole round of the ring must not write into what another has put
// into its cell meanwhile. The other one is a handler that interrupts it.
class Interrupted : public testing::Test {
 protected:
  static void put_a_round(int) {
    for (uint64_t i = 0; i < EventRing::kEvents; ++i) ring_->put(events_[i]);
    ++interrupts_;
  }
  static void SetUpTestSuite() {
    ring_ = new EventRing;
    events_ = new Event[EventRing::kEvents];
    for (uint64_t i = 0; i < EventRing::kEvents; ++i) events_[i] = event_of(1000 + i);
  }
  static void TearDownTestSuite() {
    delete ring_;
    delete[] events_;
  }
  // Events of the last two rounds that are mixed of two.
  static int torn() {
    int count = 0;
    const uint64_t end = ring_->end();
    Event event;
    for (uint64_t n = end - std::min(end, 2 * EventRing::kEvents); n < end; ++n)
      count += ring_->get(n, &event) && !is_whole(event);
    return count;
  }
  static inline EventRing* ring_ = nullptr;
  static inline Event* events_ = nullptr;
  static inline std::atomic<int> interrupts_{0};
};

TEST_F(Interrupted, AWriterThatIsARoundLateLosesItsEventAndSpoilsNone) {
  constexpr int kInterrupts = 400;
  struct sigaction action {
  }, before{};
  action.sa_handler = put_a_round;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  const pthread_t writer = ::pthread_self();
  std::atomic<int> seen{0};
  std::thread sender([&] {
    for (int i = 0; i < kInterrupts; ++i) {
      while (seen != i) ::sched_yield();
      ::pthread_kill(writer, SIGUSR1);
    }
  });
  const Event mine = event_of(7);
  int torn_events = 0;
  while (seen != kInterrupts) {
    ring_->put(mine);
    if (interrupts_ == seen) continue;
    torn_events += torn();
    seen = interrupts_.load();
  }
  sender.join();
  ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
  EXPECT_EQ(torn_events, 0);
}

}  // namespace
}  // namespace outcore::published
