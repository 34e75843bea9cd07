#include "core/os/memory_limit.h"

#include <gtest/gtest.h>

#include "core/tests/os_facts/fake_root.h"
#include "outcore/runtime.h"

namespace outcore::os {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr const char* kV2Mount =
    "24 18 0:22 / /proc rw - proc proc rw\n"
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* kV1Mounts =
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n";
constexpr const char* kNoLimit = "9223372036854771712\n";

std::string mib(uint64_t n) { return std::to_string(n * kMiB) + "\n"; }

TEST(MemoryAvailable, WithoutCgroupsTheMachineDecides) {
  FakeRoot root;
  root.machine(3000).file("/proc/self/cgroup", "").file("/proc/self/mountinfo", "");
  EXPECT_EQ(memory_available(root.path()).bytes, 3000 * kMiB);
  EXPECT_EQ(memory_available(root.path()).source, "on this machine");
}

TEST(MemoryAvailable, OldKernelsWithoutMemAvailableCountWhatIsFree) {
  FakeRoot root;
  root.file("/proc/meminfo", "MemTotal: 4096 kB\nMemFree: 2048 kB\n");
  EXPECT_EQ(memory_available(root.path()).bytes, 2 * kMiB);
}

TEST(MemoryAvailable, AnEmptyRootHasNone) {
  FakeRoot root;
  EXPECT_EQ(memory_available(root.path()).bytes, 0u);
}

class V2 : public testing::Test {
 protected:
  V2() {
    root_.machine(8000)
        .file("/proc/self/mountinfo", kV2Mount)
        .file("/proc/self/cgroup", "0::/a.slice/b\n");
  }
  void group(const std::string& name, const std::string& limit, uint64_t used_mib,
             const std::string& stat = "anon 5\n") {
    const std::string folder = "/sys/fs/cgroup" + name;
    root_.file(folder + "/memory.max", limit)
        .file(folder + "/memory.current", mib(used_mib))
        .file(folder + "/memory.stat", stat);
  }
  MemoryAvailable available() const { return memory_available(root_.path()); }
  FakeRoot root_;
};

TEST_F(V2, MaxIsNoLimit) {
  group("/a.slice", "max\n", 10);
  group("/a.slice/b", "max\n", 10);
  EXPECT_EQ(available().bytes, 8000 * kMiB);
}

TEST_F(V2, WhatTheGroupUsesIsNotAvailable) {
  group("/a.slice/b", mib(1000), 300);
  EXPECT_EQ(available().bytes, 700 * kMiB);
  EXPECT_EQ(available().source, "in cgroup /a.slice/b");
}

TEST_F(V2, AnAncestorCanBeTheTighterOne) {
  group("/a.slice", mib(1000), 900);
  group("/a.slice/b", mib(500), 100);
  EXPECT_EQ(available().bytes, 100 * kMiB);
  EXPECT_EQ(available().source, "in cgroup /a.slice");
}

TEST_F(V2, PageCacheIsAvailable) {
  group("/a.slice/b", mib(1000), 900,
        "anon 1\nfile 629145600\nshmem 104857600\ninactive_file " + mib(200) + "active_file " +
            mib(300) + "slab_reclaimable " + mib(50) + "slab_unreclaimable " + mib(25));
  EXPECT_EQ(available().bytes, 650 * kMiB);
}

TEST_F(V2, MemoryHighBoundsLikeMax) {
  group("/a.slice/b", "max\n", 100);
  root_.file("/sys/fs/cgroup/a.slice/b/memory.high", mib(400));
  EXPECT_EQ(available().bytes, 300 * kMiB);
}

TEST_F(V2, AGroupOverItsLimitLeavesNothing) {
  group("/a.slice/b", mib(100), 130);
  EXPECT_EQ(available().bytes, 0u);
}

TEST_F(V2, AMachineWithLessThanTheGroupDecides) {
  root_.machine(50);
  group("/a.slice/b", mib(1000), 0);
  EXPECT_EQ(available().bytes, 50 * kMiB);
  EXPECT_EQ(available().source, "on this machine");
}

TEST_F(V2, InACgroupNamespaceTheMountIsTheGroup) {
  root_.file("/proc/self/cgroup", "0::/\n");
  group("", mib(256), 56);
  EXPECT_EQ(available().bytes, 200 * kMiB);
  EXPECT_EQ(available().source, "in cgroup /");
}

TEST_F(V2, AGroupOutsideTheNamespaceIsBoundedByWhatIsSeen) {
  root_.file("/proc/self/cgroup", "0::/../../elsewhere\n");
  group("", mib(256), 0);
  EXPECT_EQ(available().bytes, 256 * kMiB);
}

TEST_F(V2, AMountPointWithABlankIsFound) {
  root_.file("/proc/self/mountinfo", "30 23 0:26 / /sys/c\\040g rw - cgroup2 cgroup2 rw\n")
      .file("/sys/c g/a.slice/b/memory.max", mib(77));
  EXPECT_EQ(available().bytes, 77 * kMiB);
}

class V1 : public testing::Test {
 protected:
  V1() {
    root_.machine(8000)
        .file("/proc/self/mountinfo", kV1Mounts)
        .file("/proc/self/cgroup", "4:memory:/job/part\n3:cpu,cpuacct:/elsewhere\n");
  }
  void group(const std::string& name, const std::string& limit, uint64_t used_mib,
             const std::string& stat = "cache 5\n") {
    const std::string folder = "/sys/fs/cgroup/memory" + name;
    root_.file(folder + "/memory.limit_in_bytes", limit)
        .file(folder + "/memory.usage_in_bytes", mib(used_mib))
        .file(folder + "/memory.stat", stat)
        .file(folder + "/memory.use_hierarchy", "1\n");
  }
  MemoryAvailable available() const { return memory_available(root_.path()); }
  FakeRoot root_;
};

TEST_F(V1, TheLargestNumberIsNoLimit) {
  group("", kNoLimit, 10);
  group("/job", kNoLimit, 10);
  group("/job/part", kNoLimit, 10, std::string("hierarchical_memory_limit ") + kNoLimit);
  EXPECT_EQ(available().bytes, 8000 * kMiB);
}

TEST_F(V1, TheTighterOfGroupAndAncestorDecides) {
  group("", kNoLimit, 900);
  group("/job", mib(1000), 800);
  group("/job/part", mib(600), 100);
  EXPECT_EQ(available().bytes, 200 * kMiB);
  EXPECT_EQ(available().source, "in cgroup /job");
}

TEST_F(V1, PageCacheOfTheWholeSubtreeIsAvailable) {
  group("/job/part", mib(600), 500,
        "inactive_file 1\ntotal_inactive_file " + mib(200) + "total_active_file " + mib(100));
  EXPECT_EQ(available().bytes, 400 * kMiB);
}

TEST_F(V1, ALimitAboveTheMountStillCounts) {
  group("/job/part", kNoLimit, 100, "hierarchical_memory_limit " + mib(300));
  EXPECT_EQ(available().bytes, 200 * kMiB);
}

TEST_F(V1, AParentThatDoesNotAccountForItsChildrenDoesNotBoundThem) {
  group("/job", mib(10), 9);
  root_.file("/sys/fs/cgroup/memory/job/memory.use_hierarchy", "0\n");
  group("/job/part", mib(600), 100);
  EXPECT_EQ(available().bytes, 500 * kMiB);
}

TEST_F(V1, AContainerWhoseGroupIsTheMountedOneFindsItsFilesAtTheTop) {
  root_
      .file("/proc/self/mountinfo",
            "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n")
      .file("/proc/self/cgroup", "4:memory:/docker/abc\n");
  group("", mib(512), 12);
  EXPECT_EQ(available().bytes, 500 * kMiB);
  EXPECT_EQ(available().source, "in cgroup /docker/abc");
}

TEST_F(V1, BesideV2WithoutAMemoryControllerItDecides) {
  root_
      .file(
          "/proc/self/mountinfo",
          std::string(kV1Mounts) + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n")
      .file("/proc/self/cgroup", "4:memory:/job/part\n0::/\n")
      .file("/sys/fs/cgroup/unified/cgroup.procs", "1\n");
  group("/job/part", mib(600), 100);
  EXPECT_EQ(available().bytes, 500 * kMiB);
}

TEST_F(V1, AHierarchyOfOtherControllersIsNotRead) {
  root_.file("/sys/fs/cgroup/cpu,cpuacct/elsewhere/memory.limit_in_bytes", "1\n");
  EXPECT_EQ(available().bytes, 8000 * kMiB);
}

TEST_F(V2, TheLimitIsTheSmallestOfTheMachineAndItsGroups) {
  EXPECT_EQ(available().limit_bytes, uint64_t{99999999} * 1024);
  group("/a.slice", mib(1000), 900);
  group("/a.slice/b", mib(500), 100);
  EXPECT_EQ(available().limit_bytes, 500 * kMiB) << "though the group above leaves less";
  EXPECT_EQ(available().bytes, 100 * kMiB);
}

TEST_F(V1, TheLimitIsTheSmallestThatIsSeen) {
  group("/job/part", kNoLimit, 100, "hierarchical_memory_limit " + mib(300));
  EXPECT_EQ(available().limit_bytes, 300 * kMiB);
}

TEST_F(V2, AMeterReadsWhatIsThereNow) {
  group("/a.slice/b", mib(1000), 300);
  const MemoryMeter meter(root_.path());
  EXPECT_EQ(meter.error(), 0);
  EXPECT_EQ(meter.read().bytes, 700 * kMiB);
  group("/a.slice/b", mib(600), 500);  // the limit changed, too
  EXPECT_EQ(meter.read().bytes, 100 * kMiB);
  EXPECT_EQ(meter.read().limit_bytes, 600 * kMiB);
  ASSERT_NE(meter.read().source, nullptr);
  EXPECT_EQ(*meter.read().source, "in cgroup /a.slice/b");
  group("/a.slice/b", "max\n", 500);
  EXPECT_EQ(meter.read().bytes, 8000 * kMiB);
  EXPECT_EQ(meter.read().source, nullptr) << "the machine's";
}

TEST_F(V1, AMeterReadsWhatIsThereNow) {
  group("/job/part", mib(1000), 300);
  const MemoryMeter meter(root_.path());
  EXPECT_EQ(meter.read().bytes, 700 * kMiB);
  group("/job/part", mib(1000), 900);
  EXPECT_EQ(meter.read().bytes, 100 * kMiB);
}

TEST_F(V2, WhatCannotBeReadAnyMoreIsNotTakenForNothing) {
  const std::string folder = "/sys/fs/cgroup/a.slice/b/memory.";
  group("/a.slice/b", mib(1000), 300);
  root_.file(folder + "high", "max\n");
  const MemoryMeter meter(root_.path());
  for (const char* name : {"current", "max", "high", "stat"}) {
    ASSERT_EQ(meter.read().bytes, 700 * kMiB) << name;
    root_.file(folder + name, "");
    EXPECT_EQ(meter.read().limit_bytes, 0u) << name;
    group("/a.slice/b", mib(1000), 300);
    root_.file(folder + "high", "max\n");
  }
  root_.file("/proc/meminfo", "");
  EXPECT_EQ(meter.read().limit_bytes, 0u);
  root_.machine(8000);
  EXPECT_EQ(meter.read().bytes, 700 * kMiB);
}

TEST_F(V2, OfAnotherCgroupAMeterKnowsNothing) {
  group("/a.slice/b", mib(1000), 300);
  const MemoryMeter meter(root_.path());
  root_.file("/proc/self/cgroup", "0::/a.slice/c\n");
  EXPECT_EQ(meter.read().limit_bytes, 0u);
  root_.file("/proc/self/cgroup", "0::/a.slice/b\n");
  EXPECT_EQ(meter.read().limit_bytes, 1000 * kMiB) << "it is back";
}

TEST_F(V1, ALimitOfWhichTheUseIsNotKnownLeavesNobodyKnowsWhat) {
  group("/job/part", kNoLimit, 100, "hierarchical_memory_limit " + mib(300));
  const MemoryMeter meter(root_.path());
  EXPECT_EQ(meter.read().bytes, 200 * kMiB);
  root_.file("/sys/fs/cgroup/memory/job/part/memory.usage_in_bytes", "");
  EXPECT_EQ(meter.read().limit_bytes, 0u);
}

TEST(MemoryMeter, WithoutAnythingToReadItKnowsNoLimit) {
  const FakeRoot root;
  const MemoryMeter meter(root.path());
  EXPECT_EQ(meter.error(), 0) << "what is not there is no error";
  EXPECT_EQ(meter.read().limit_bytes, 0u);
}

TEST(DefaultBudget, IsHalfInWholeMebibytes) {
  const auto [bytes, why] = default_budget_of({1001 * kMiB + 5, "in cgroup /x"});
  EXPECT_EQ(bytes, 500 * kMiB);
  EXPECT_EQ(why, "half of 1001.0 MiB available in cgroup /x");
}

TEST(DefaultBudget, IsSixteenMebibytesAtLeastOrHalfOfASmallLimit) {
  const auto [bytes, why] = default_budget_of({31 * kMiB, "on this machine"});
  EXPECT_EQ(bytes, 16 * kMiB);
  EXPECT_EQ(why, "the least of a default; 31 MiB available on this machine");
  EXPECT_EQ(default_budget_of({20 * kMiB, "", 24 * kMiB}).first, 12 * kMiB);
  EXPECT_EQ(default_budget_of({9 * kMiB, "", 16 * kMiB}).first, 8 * kMiB);
  EXPECT_EQ(default_budget_of({2 * kMiB, "", 6 * kMiB}).first, 4 * kMiB);
  EXPECT_EQ(default_budget_of({2 * kMiB, "", 2000 * kMiB}).first, 16 * kMiB);
  EXPECT_EQ(default_budget_of({32 * kMiB, ""}).first, 16 * kMiB);
  EXPECT_EQ(default_budget_of({34 * kMiB, ""}).first, 17 * kMiB);
}

TEST(DefaultBudget, OfThisProcessFitsIntoWhatIsAvailable) {
  const auto [bytes, why] = default_budget();
  EXPECT_GE(bytes, 16 * kMiB);
  EXPECT_EQ(bytes % kMiB, 0u);
  EXPECT_NE(why.find("available"), std::string::npos);
}

}  // namespace
}  // namespace outcore::os
