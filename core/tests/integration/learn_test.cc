// Learnt starts: what a run needed first is brought in ahead by the next.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "core/prefetch/touch_profile.h"
#include "core/prefetch/touches.h"
#include "core/tests/integration/learnt.h"

namespace outcore {
namespace {

using namespace scene;
using testing::HasSubstr;

TEST_F(Learnt, WhatTheFirstRunNeededTheSecondHasBeforeItIsTouched) {
  const std::string path = make_file("a");
  const std::vector<uint64_t> pages = some_pages(600, kFileBytes / kPage, 1);
  run(path, pages);
  Runtime runtime = start();
  const Region region = map(runtime, path);
  wait_for_replays(runtime);
  const Metrics before = runtime.metrics();
  EXPECT_EQ(before.counters.learnt_fills, pages.size());
  EXPECT_EQ(before.counters.prefetch_fills, pages.size());
  touch(region, pages);
  const Metrics after = runtime.metrics();
  EXPECT_EQ(after.counters.faults, 0u);
  EXPECT_EQ(after.counters.fills, 0u);
  EXPECT_EQ(after.counters.evictions, 0u);
  EXPECT_LE(after.gauges.used_bytes_max, after.gauges.budget_bytes);
}

TEST_F(Learnt, TheProfileHasTheFilesByTheirPathsAndTheOrderOfTheFirstTouches) {
  const std::string path = make_file("a");
  run(path, {16 * 9 + 3, 16 * 2, 16 * 9 + 4, 16 * 30 + 15, 16 * 2});
  const prefetch::TouchProfile kept = profile();
  ASSERT_EQ(kept.files().size(), 1u);
  const prefetch::LearntFile& file = kept.files()[0];
  EXPECT_EQ(file.path, std::filesystem::canonical(path).string());
  EXPECT_EQ(file.size_bytes, kFileBytes);
  EXPECT_GT(file.modified_ns, 0);
  const std::vector<prefetch::Touch> expected = {{9, 0b11000}, {2, 1}, {30, 0x8000}};
  EXPECT_EQ(prefetch::decode_touches(file.touches), expected);
}

TEST_F(Learnt, WhatWasBroughtInAheadAndWhatWasMissedIsAllKeptForTheNext) {
  const std::string path = make_file("a");
  const std::vector<uint64_t> all = some_pages(400, kFileBytes / kPage, 2);
  const std::vector<uint64_t> first(all.begin(), all.begin() + 200);
  run(path, first);
  run(path, {all.begin() + 200, all.end()});
  Runtime runtime = start();
  const Region region = map(runtime, path);
  wait_for_replays(runtime);
  touch(region, all);
  EXPECT_EQ(runtime.metrics().counters.faults, 0u);
}

TEST_F(Learnt, NothingIsEvictedForItAndAnEighthOfTheBudgetStaysFree) {
  const std::string path = make_file("a");
  run(path, all_pages(kFileBytes));
  constexpr uint64_t kBudget = 4 * kMiB;
  Runtime runtime = start(kBudget);
  const Region region = map(runtime, path);
  wait_for_replays(runtime);
  const Metrics seen = runtime.metrics();
  EXPECT_GT(seen.counters.learnt_fills * kPage, kBudget / 2);
  EXPECT_EQ(seen.counters.evictions, 0u);
  EXPECT_LE(seen.gauges.used_bytes_max, kBudget - kBudget / 8);
  touch(region, all_pages(kFileBytes));
  EXPECT_LE(runtime.metrics().gauges.used_bytes_max, kBudget);
}

TEST_F(Learnt, AFileThatIsAnotherByNowHasItsOwnBytes) {
  const std::string path = make_file("a");
  run(path, all_pages(8 * kMiB));
  write_file(path, pattern(3 * kMiB + 5, kGiB));  // shorter, and other bytes
  Runtime runtime = start();
  const Region region = map(runtime, path);
  wait_for_replays(runtime);
  EXPECT_EQ(runtime.metrics().counters.learnt_fills, (3 * kMiB + 5 + kPage - 1) / kPage);
  EXPECT_EQ(first_difference(region.data(), 3 * kMiB + 5, kGiB), 3 * kMiB + 5);
}

TEST_F(Learnt, PagesOfAnotherSizeAreBroughtInAsWell) {
  const std::string path = make_file("a");
  const std::vector<uint64_t> pages = some_pages(40, kFileBytes / kPage, 3);
  run(path, pages);
  for (const uint64_t page_bytes : {16 * kKiB, 64 * kKiB, kMiB}) {
    Runtime runtime = start(64 * kMiB);
    const Region region = map(runtime, path, {.page_bytes = page_bytes});
    wait_for_replays(runtime);
    touch(region, pages);
    EXPECT_EQ(runtime.metrics().counters.faults, 0u) << page_bytes;
    EXPECT_EQ(first_difference(region.data(), kFileBytes), kFileBytes) << page_bytes;
  }
}

TEST_F(Learnt, OfSeveralFilesEachHasItsOwn) {
  const std::string a = make_file("a"), b = make_file("b");
  const std::vector<uint64_t> of_a = some_pages(100, kFileBytes / kPage, 4);
  const std::vector<uint64_t> of_b = some_pages(100, kFileBytes / kPage, 5);
  run(a, of_a);
  run(b, of_b);
  Runtime runtime = start();
  const Region ra = map(runtime, a), rb = map(runtime, b);
  wait_for_replays(runtime);
  touch(ra, of_a);
  touch(rb, of_b);
  EXPECT_EQ(runtime.metrics().counters.faults, 0u);
}

TEST_F(Learnt, RuntimesThatEndTogetherKeepWhatBothLearnt) {
  const std::string path = make_file("a");
  {
    Runtime one = start(), other = start();
    const Region first = map(one, path), second = map(other, path);
    touch(first, {1000});
    touch(second, {2000});
  }
  Runtime runtime = start();
  const Region region = map(runtime, path);
  wait_for_replays(runtime);
  touch(region, {1000, 2000});
  EXPECT_EQ(runtime.metrics().counters.faults, 0u);
}

TEST_F(Learnt, ManyProcessesAtOnceLoseNothing) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  constexpr int kProcesses = 6;
  for (int i = 0; i < kProcesses; ++i) make_file(std::to_string(i), kMiB);
  const Ending ending = in_child([&] {
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        run(folder_ / std::to_string(i), {7, 11});
        ::_exit(0);
      }
      children.push_back(child);
    }
    int bad = 0;
    for (const pid_t child : children) {
      int status = -1;
      bad += ::waitpid(child, &status, 0) != child || status != 0;
    }
    return bad;
  });
  EXPECT_TRUE(ending.has_exited(0)) << ending;
  EXPECT_EQ(profile().files().size(), size_t{kProcesses});
}

TEST_F(Learnt, WhatEndsInTheMiddleOfItEndsAtOnce) {
  const std::string path = make_file("a");
  run(path, all_pages(kFileBytes));
  for (int i = 0; i < 20; ++i) {
    Runtime runtime = start(64 * kMiB);
    Region region = map(runtime, path);
    touch(region, some_pages(20, kFileBytes / kPage, static_cast<uint64_t>(i)));
    ASSERT_TRUE(region.unmap().ok());
    EXPECT_EQ(runtime.metrics().gauges.replays, 0u);
    const Region again = map(runtime, path);
  }
}

TEST_F(Learnt, WithoutTheOptionNothingIsKept) {
  const std::string path = make_file("a", kMiB);
  {
    Runtime runtime = Runtime::start(options_with(4 * kMiB)).value();
    const Region region = map(runtime, path);
    touch(region, {1, 2});
  }
  EXPECT_FALSE(std::filesystem::exists(profile_));
}

TEST_F(Learnt, ARunThatTouchesNothingLeavesTheProfileAsItWas) {
  const std::string path = make_file("a", kMiB);
  run(path, {3});
  const std::string before = text_of_profile();
  { const Runtime runtime = start(); }
  EXPECT_EQ(text_of_profile(), before);
}

TEST_F(Learnt, APrivateRegionIsNotLearnt) {
  const std::string path = make_file("a", kMiB);
  {
    Runtime runtime = start();
    const Region region = map(runtime, path, {.access = Access::kPrivate});
    touch(region, {5});
  }
  EXPECT_FALSE(std::filesystem::exists(profile_));
}

TEST_F(Learnt, ARuntimeThatNobodyEndsKeepsItAtExit) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const std::string path = make_file("a", kMiB);
  const Ending ending = in_child([&] {
    auto* runtime = new Runtime(start());
    auto* region = new Region(map(*runtime, path));
    touch(*region, {5, 250});
    ::exit(4);
    return 0;
  });
  ASSERT_TRUE(ending.has_exited(4)) << ending;
  EXPECT_EQ(ending.text, "");
  EXPECT_EQ(profile().files().size(), 1u);
}

TEST_F(Learnt, AForkedChildKeepsNothingOfItsParents) {
  OUTCORE_NEEDS_FORK();
  const std::string path = make_file("a", kMiB);
  Runtime runtime = start();
  const Region region = map(runtime, path);
  touch(region, {5});
  const Ending ending = in_child([&] {
    ::exit(4);
    return 0;
  });
  ASSERT_TRUE(ending.has_exited(4)) << ending;
  EXPECT_FALSE(std::filesystem::exists(profile_));
}

// -- Profiles that are none --

TEST_F(Learnt, AFileThatIsNoProfileIsToldInOneLineAndStaysAsItIs) {
  const std::string path = make_file("a", kMiB);
  run(path, {5});
  std::string damaged = text_of_profile();
  damaged[damaged.size() - 1] = static_cast<char>(damaged[damaged.size() - 1] ^ 1);
  for (const std::string& text :
       {std::string("my own notes"), damaged, std::string(2 << 20, 'x')}) {
    std::ofstream(profile_, std::ios::binary) << text;
    testing::internal::CaptureStderr();
    run(path, {5, 6});
    const std::string told = testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
    EXPECT_THAT(told, HasSubstr(profile_));
    EXPECT_EQ(text_of_profile(), text);
  }
}

TEST_F(Learnt, APlaceThatTakesNoFileIsToldInOneLineAndTheProgramRuns) {
  const std::string path = make_file("a", kMiB);
  std::filesystem::create_directory(folder_ / "folder");
  for (const char* place : {"none/profile", "folder", "a/profile"}) {
    testing::internal::CaptureStderr();
    {
      RuntimeOptions options = options_with(4 * kMiB);
      options.learn_file = folder_ / place;
      Runtime runtime = Runtime::start(options).value();
      const Region region = map(runtime, path);
      touch(region, {5, 6});
    }
    const std::string told = testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
    EXPECT_THAT(told, HasSubstr(place));
  }
}

TEST_F(Learnt, AnEmptyFileAndALinkBecomeAProfile) {
  const std::string path = make_file("a", kMiB);
  std::ofstream(folder_ / "real").flush();
  std::filesystem::create_symlink("real", profile_);
  run(path, {5});
  EXPECT_EQ(profile().files().size(), 1u);
  EXPECT_TRUE(std::filesystem::is_symlink(profile_));
  EXPECT_FALSE(std::filesystem::exists(folder_ / ".real.outcore-new"));
}

// A process may die between the beginning of a new profile and its rename.
TEST_F(Learnt, WhatADeadProcessLeftBehindIsReplaced) {
  const std::string path = make_file("a", kMiB), begun = folder_ / ".profile.outcore-new";
  run(path, {5});
  for (const std::string& text : {std::string(), text_of_profile().substr(0, 30)}) {
    std::ofstream(begun, std::ios::binary) << text;
    std::filesystem::remove(profile_);
    run(path, {5});
    EXPECT_EQ(profile().files().size(), 1u);
    EXPECT_FALSE(std::filesystem::exists(begun));
  }
}

TEST_F(Learnt, AnotherFileIsNeverRemovedForTheProfile) {
  const std::string path = make_file("a", kMiB), begun = folder_ / ".profile.outcore-new";
  std::ofstream(begun) << "my own notes";
  std::ofstream(folder_ / "profile.new") << "my own notes";
  testing::internal::CaptureStderr();
  run(path, {5});
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
  EXPECT_THAT(told, HasSubstr(profile_));
  EXPECT_THAT(told, HasSubstr("move that away"));
  EXPECT_EQ(std::filesystem::file_size(begun), 12u);
  EXPECT_EQ(std::filesystem::file_size(folder_ / "profile.new"), 12u);
  std::filesystem::remove(begun);
  run(path, {5});
  EXPECT_EQ(profile().files().size(), 1u);
  EXPECT_EQ(std::filesystem::file_size(folder_ / "profile.new"), 12u);
}

}  // namespace
}  // namespace outcore
