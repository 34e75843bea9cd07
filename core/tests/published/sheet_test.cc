// Sheet: the memory in which a runtime counts. Who takes a slot has it alone.
#include "core/published/sheet.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/runtime/runtime_impl.h"
#include "core/tests/conformance/scene.h"
#include "core/tests/published/child.h"
#include "outcore/sight.h"

namespace outcore::published {
namespace {

using namespace scene;
using metrics::Counter;

TEST(Sheet, ASlotIsItsTakersAloneUntilItIsGivenBack) {
  const auto sheet = Sheet::make();
  ASSERT_NE(sheet, nullptr);
  std::set<StoreSlot*> slots;
  for (uint32_t i = 0; i < Layout::kSlots; ++i) {
    StoreSlot* const slot = sheet->acquire_slot();
    ASSERT_NE(slot, nullptr) << i;
    EXPECT_TRUE(slots.insert(slot).second);
    EXPECT_EQ(slot->users % 2, 1u);
  }
  EXPECT_EQ(sheet->acquire_slot(), nullptr) << "there are no more";
  StoreSlot* const back = *std::next(slots.begin(), 100);
  sheet->release_slot(*back);
  EXPECT_EQ(back->users % 2, 0u);
  EXPECT_EQ(sheet->acquire_slot(), back);
  EXPECT_EQ(sheet->acquire_slot(), nullptr);
}

TEST(Sheet, ASlotIsClearedBetweenItsUsers) {
  const auto sheet = Sheet::make();
  StoreSlot* const first = sheet->acquire_slot();
  const uint32_t users = first->users;
  first->is_writable = first->is_shared = first->is_degraded = first->is_over = true;
  first->store_bytes = first->page_bytes = first->resident_bytes = 7;
  first->uri.set("first");
  first->delivery.set("messages");
  first->frames.set("private");
  for (size_t i = 0; i < metrics::kCounterCount; ++i)
    first->counters.add(static_cast<Counter>(i), i + 1);
  first->counters.fault_took(1'000'000);
  sheet->release_slot(*first);
  StoreSlot* const second = sheet->acquire_slot();
  ASSERT_EQ(second, first) << "the first that is free";
  EXPECT_EQ(second->users, users + 2) << "who reads sees that it is another's";
  EXPECT_FALSE(second->is_writable || second->is_shared || second->is_degraded || second->is_over);
  EXPECT_EQ(second->store_bytes + second->page_bytes + second->resident_bytes, 0u);
  EXPECT_EQ(second->uri.get() + second->delivery.get() + second->frames.get(), "");
  for (size_t i = 0; i < metrics::kCounterCount; ++i)
    EXPECT_EQ(second->counters.sum(static_cast<Counter>(i)), 0u) << i;
  const LatencyHistogram latency = second->counters.fault_latency();
  EXPECT_EQ(std::count(latency.count.begin(), latency.count.end(), 0u),
            static_cast<long>(LatencyHistogram::kBuckets));
}

TEST(Sheet, WhatASlotCountedIsMovedOnceAndNobodyCountsItTwice) {
  const auto sheet = Sheet::make();
  Layout& layout = sheet->memory();
  StoreSlot* const slot = sheet->acquire_slot();
  EXPECT_EQ(layout.slots_used, 1u);
  slot->counters.add(Counter::fills, 5);
  const uint32_t moves = layout.moves;
  layout.end(*slot);
  EXPECT_EQ(layout.moves, moves + 2) << "who summed meanwhile sees it";
  EXPECT_TRUE(slot->is_over);
  EXPECT_EQ(layout.ended.sum(Counter::fills), 5u);
  sheet->release_slot(*slot);
  EXPECT_EQ(sheet->acquire_slot(), slot);
  EXPECT_FALSE(slot->is_over);
  EXPECT_EQ(layout.slots_used, 1u);
}

TEST(Sheet, ATextThatChangesIsReadWholeOrNotAtAll) {
  const auto sheet = Sheet::make();
  ChangingText<64>& text = sheet->memory().policy_now;
  const std::string as(60, 'a'), bs(60, 'b');
  text.set(as);
  sheet->show();
  const auto seen = [] {
    const auto all = look_at(::getpid());
    return all.ok() && all->size() == 1 ? all->front().policy_now : "nothing is published";
  };
  ASSERT_EQ(seen(), as);
  std::atomic<bool> is_over{false};
  std::thread writer([&] {
    for (uint64_t i = 0; !is_over.load(); ++i) text.set(i % 2 == 0 ? bs : as);
  });
  for (int i = 0; i < 200; ++i) {
    const std::string now = seen();
    EXPECT_TRUE(now == as || now == bs || now.empty()) << now;
  }
  is_over.store(true);
  writer.join();
  text.set(bs);
  EXPECT_EQ(seen(), bs);
  text.changes.fetch_add(1);  // its writer has been stopped
  EXPECT_EQ(seen(), "");
}

TEST(Sheet, AnEntryThatFindsNoSlotCountsInItsOwnAndIsNotWatched) {
  const auto sheet = Sheet::make();
  std::vector<std::unique_ptr<Entry>> entries;
  for (uint32_t i = 0; i <= Layout::kSlots; ++i) entries.push_back(std::make_unique<Entry>(sheet));
  ASSERT_TRUE(sheet->has_event_memory());
  sheet->events().turn(true);
  const Entry& last = *entries.back();
  EXPECT_TRUE(entries.front()->is_watched());
  EXPECT_FALSE(last.is_watched());
  last->counters.add(Counter::fills, 3);
  EXPECT_EQ(last->counters.sum(Counter::fills), 3u);
  for (StoreSlot& slot : sheet->memory().slots) EXPECT_EQ(slot.counters.sum(Counter::fills), 0u);
  entries.clear();
  for (StoreSlot& slot : sheet->memory().slots) EXPECT_EQ(slot.users % 2, 0u);
}

TEST(Sheet, AnEntryTellsOfItsSlotAndUser) {
  const auto sheet = Sheet::make();
  ASSERT_TRUE(sheet->has_event_memory());
  { const Entry gone(sheet); }
  const Entry entry(sheet);
  EXPECT_FALSE(entry.is_watched());
  sheet->events().turn(true);
  ASSERT_TRUE(entry.is_watched());
  entry->page_bytes = 4096;
  entry.publish(EventKind::kEviction, 5);
  entry.publish_fault(6, 0x1234, 1600);
  Event event;
  ASSERT_TRUE(sheet->events().get(0, &event));
  EXPECT_EQ(event.kind, EventKind::kEviction);
  EXPECT_EQ(event.page, 5u);
  EXPECT_EQ(event.users, entry->users & EventRing::kUsersMask);
  EXPECT_EQ(&sheet->memory().slots[event.slot], &*entry);
  ASSERT_TRUE(sheet->events().get(1, &event));
  EXPECT_EQ(event.kind, EventKind::kFault);
  EXPECT_EQ(event.site, 0x1234u);
  EXPECT_EQ(event.duration_ns, 1600u);
  EXPECT_NE(event.time_ns, 0u);
}

TEST(Sheet, InAForkedChildItIsTheChildsOwnAndTheParentsCountsStay) {
  static_cast<void>(runtime::process_generation());  // installs what is called around fork()
  const auto sheet = Sheet::make();
  sheet->show();
  StoreSlot* const slot = sheet->acquire_slot();
  slot->uri.set("parent");
  slot->counters.add(Counter::faults, 5);
  Child child([&](const auto& be_ready) {
    const bool is_empty = slot->counters.sum(Counter::faults) == 0;
    slot->counters.add(Counter::faults, 1000);
    slot->uri.set("child");
    be_ready();
    return is_empty && slot->counters.sum(Counter::faults) == 1000 ? 0 : 1;
  });
  ASSERT_TRUE(child.is_ready());
  EXPECT_EQ(look_at(child.process()).code(), ENOENT) << "nothing of its parent's is told of it";
  EXPECT_EQ(slot->counters.sum(Counter::faults), 5u);
  EXPECT_EQ(slot->uri.get(), "parent");
  EXPECT_EQ(child.end(), 0);
  EXPECT_EQ(slot->counters.sum(Counter::faults), 5u);
  ASSERT_TRUE(look_at(::getpid()).ok());
}

uint64_t descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<uint64_t>(std::distance(begin(all), end(all)));
}

TEST(Sheet, LeavesNoDescriptorBehind) {
  const uint64_t before = descriptors();
  for (int i = 0; i < 10; ++i) {
    const auto one = Sheet::make(), other = Sheet::make();
    EXPECT_EQ(descriptors(), before + 2);
  }
  EXPECT_EQ(descriptors(), before);
}

// In a process that may not have it, a sheet is ordinary memory and works as well.
int use_unseen_sheet(int resource, rlim_t most) {
  const rlimit limit{most, most};
  if (::setrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return 2;
  const auto sheet = Sheet::make();
  if (sheet == nullptr) return 3;
  sheet->show();
  if (!sheet->has_event_memory()) return 4;
  sheet->events().turn(true);
  for (uint32_t i = 0; i < Layout::kSlots; ++i)
    if (sheet->acquire_slot() == nullptr) return 5;
  for (uint64_t i = 0; i < EventRing::kEvents; ++i) sheet->events().put({});
  return sheet->events().end() == EventRing::kEvents ? 0 : 6;
}

TEST(Sheet, WorksUnseenWhereFilesMayNotBeLargeOrThereAreNoDescriptors) {
  std::vector<std::pair<int, rlim_t>> limits{{RLIMIT_FSIZE, 0}, {RLIMIT_FSIZE, 1 << 16}};
#ifndef __SANITIZE_ADDRESS__  // which looks at memory by way of a pipe
  limits.emplace_back(RLIMIT_NOFILE, 0);
#endif
  for (const auto& limit : limits) {
    const int resource = limit.first;
    const rlim_t most = limit.second;
    Child child([&](const auto& be_ready) {
      const int status = use_unseen_sheet(resource, most);
      be_ready();
      return status;
    });
    EXPECT_TRUE(child.is_ready());
    EXPECT_EQ(look_at(child.process()).code(), ENOENT);
    EXPECT_EQ(child.end(), 0) << "resource " << resource;
  }
}

TEST(Sheet, ARuntimeCountsWhereItMayPublishNothing) {
  const Folder folder;
  write_file(folder / "a", pattern(kMiB));
  Child child([&](const auto& be_ready) {
    const rlimit limit{1 << 16, 1 << 16};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    RuntimeOptions options = options_with(kMiB);
    Result<Runtime> runtime = Runtime::start(options);
    if (!runtime) return 3;
    MapOptions private_frames;  // a memory file would be too large
    private_frames.frames = FrameKind::kPrivate;
    const Result<Region> region = runtime.value().map(folder / "a", private_frames);
    if (!region || first_difference(region.value().data(), kMiB) != kMiB) return 4;
    be_ready();
    const Counters counters = runtime.value().metrics().counters;
    return counters.fills + counters.prefetch_fills >= kMiB / 4096 ? 0 : 5;
  });
  EXPECT_TRUE(child.is_ready());
  EXPECT_EQ(look_at(child.process()).code(), ENOENT);
  EXPECT_EQ(child.end(), 0);
}

TEST(Sheet, ARuntimeStartsOrIsRefusedHoweverFewDescriptorsThereAre) {
  const Folder folder;
  write_file(folder / "a", pattern(kMiB));
  int worked = 0;
  for (rlim_t most = 3; most < 32; ++most) {
    Child child([&](const auto&) {
      for (int fd = 3; fd < 1024; ++fd) ::close(fd);
      const rlimit limit{most, most};
      if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 2;
      Result<Runtime> runtime = Runtime::start(options_with(kMiB));
      if (!runtime) return runtime.message().find('\n') == std::string::npos ? 1 : 3;
      const Result<Region> region = runtime.value().map(folder / "a");
      if (!region) return 1;
      return first_difference(region.value().data(), kMiB) == kMiB ? 0 : 4;
    });
    const int status = child.end();
    EXPECT_TRUE(status == 0 || status == 1) << most << " descriptors: " << status;
    worked += status == 0;
  }
  EXPECT_GT(worked, 0);
}

}  // namespace
}  // namespace outcore::published
