#include "core/os/memory_pressure.h"

#include <gtest/gtest.h>

#include "core/tests/os_facts/fake_root.h"

namespace outcore::os {
namespace {

class Pressure : public testing::Test {
 protected:
  Pressure() {
    root_.file("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
        .file("/proc/self/cgroup", "0::/a.slice/b\n");
  }
  static std::string text(const std::string& some, const std::string& full, uint64_t total_us) {
    return "some avg10=" + some + " avg60=1.00 avg300=2.00 total=" + std::to_string(total_us) +
           "\nfull avg10=" + full +
           " avg60=0.10 avg300=0.20 total=" + std::to_string(total_us / 2) + "\n";
  }
  std::optional<MemoryPressure> pressure() const { return memory_pressure(root_.path()); }
  FakeRoot root_;
};

constexpr const char* kMachine = "/proc/pressure/memory";
constexpr const char* kOwn = "/sys/fs/cgroup/a.slice/b/memory.pressure";

TEST_F(Pressure, WhereTheKernelCountsNoneThereIsNone) { EXPECT_FALSE(pressure()); }

TEST_F(Pressure, TheMachinesIsReadWithItsLastTenSeconds) {
  root_.file(kMachine, text("12.34", "5.67", 89));
  ASSERT_TRUE(pressure());
  EXPECT_DOUBLE_EQ(pressure()->some_percent, 12.34);
  EXPECT_DOUBLE_EQ(pressure()->full_percent, 5.67);
  EXPECT_EQ(pressure()->stalled_us, 89u);
}

TEST_F(Pressure, TheCgroupsAloneIsEnough) {
  root_.file(kOwn, text("1.00", "0.50", 7));
  ASSERT_TRUE(pressure());
  EXPECT_DOUBLE_EQ(pressure()->some_percent, 1);
  EXPECT_EQ(pressure()->stalled_us, 7u);
}

TEST_F(Pressure, TheLargerOfBothCountsAndStallsAddUp) {
  root_.file(kMachine, text("3.00", "9.00", 1000)).file(kOwn, text("30.00", "0.00", 50));
  ASSERT_TRUE(pressure());
  EXPECT_DOUBLE_EQ(pressure()->some_percent, 30);
  EXPECT_DOUBLE_EQ(pressure()->full_percent, 9);
  EXPECT_EQ(pressure()->stalled_us, 1050u);
}

TEST_F(Pressure, WhatOthersSufferInCgroupsAboveIsNotOurs) {
  root_.file("/sys/fs/cgroup/a.slice/memory.pressure", text("90.00", "90.00", 1));
  EXPECT_FALSE(pressure());
}

TEST_F(Pressure, WhatMakesNoSenseIsNone) {
  for (const char* nonsense :
       {"", "\n", "some\n", "some avg10=\n", "some avg10=x total=1\n", "some avg10=-1.00 total=1\n",
        "some avg10=nan total=1\n", "full avg10=1.00 total=1\n", "some total=1\n"}) {
    root_.file(kMachine, nonsense);
    EXPECT_FALSE(pressure()) << nonsense;
  }
}

TEST_F(Pressure, OfTheKernelWithoutFullThatIsNone) {
  root_.file(kMachine, "some avg10=50.00 avg60=0.00 avg300=0.00 total=3\n");
  ASSERT_TRUE(pressure());
  EXPECT_DOUBLE_EQ(pressure()->full_percent, 0);
}

TEST_F(Pressure, AMeterReadsWhatIsThereNow) {
  root_.file(kMachine, text("0.00", "0.00", 10));
  const PressureMeter meter(root_.path());
  ASSERT_TRUE(meter.read());
  EXPECT_EQ(meter.read()->stalled_us, 10u);
  root_.file(kMachine, text("20.00", "0.00", 30));
  ASSERT_TRUE(meter.read());
  EXPECT_DOUBLE_EQ(meter.read()->some_percent, 20);
  EXPECT_EQ(meter.read()->stalled_us, 30u);
}

TEST_F(Pressure, OfThisMachineIsReadOrIsNotThere) {
  const std::optional<MemoryPressure> here = memory_pressure();
  if (!here) GTEST_SKIP() << "this kernel counts no pressure";
  EXPECT_GE(here->some_percent, 0);
  EXPECT_LE(here->some_percent, 100);
}

}  // namespace
}  // namespace outcore::os
