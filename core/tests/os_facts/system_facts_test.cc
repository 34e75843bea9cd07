#include "core/os/system_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>

#include "core/tests/os_facts/fake_root.h"

namespace outcore::os {
namespace {

using testing::HasSubstr;

SystemFact fact(const std::vector<SystemFact>& facts, const std::string& name) {
  for (const SystemFact& f : facts)
    if (f.name == name) return f;
  ADD_FAILURE() << "no fact " << name;
  return {};
}

KernelFeatures everything() {
  KernelFeatures k;
  k.has_sigbus = k.has_messages = k.has_anonymous_wp = k.has_write_tracking = k.has_minor_shmem =
      true;
  k.has_continue_wp = k.has_poison = k.has_move = k.has_batched_advice = k.has_pagemap = true;
  k.has_io_uring = true;
  k.release = "6.18.0";
  return k;
}

KernelFeatures nothing() {
  KernelFeatures k;
  k.release = "4.9";
  k.why_no_userfaultfd =
      "open userfaultfd: Operation not permitted; allow it in the seccomp profile";
  k.why_no_messages = "open userfaultfd: Operation not permitted; set sysctl x=1";
  return k;
}

class SystemFacts : public testing::Test {
 protected:
  SystemFacts() {
    root_.machine(4096)
        .file("/proc/sys/vm/max_map_count", "65530\n")
        .file("/proc/sys/vm/overcommit_memory", "0\n")
        .file("/proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\nThreads:\t1\n");
  }
  std::vector<SystemFact> facts(const KernelFeatures& kernel) const {
    return system_facts_of(kernel, root_.path());
  }
  FakeRoot root_;
};

TEST_F(SystemFacts, EveryFactHasANameAndADetail) {
  for (const KernelFeatures& kernel : {everything(), nothing()})
    for (const SystemFact& f : facts(kernel)) {
      EXPECT_FALSE(f.name.empty());
      EXPECT_FALSE(f.detail.empty()) << f.name;
      EXPECT_EQ((f.detail + f.remedy).find('\n'), std::string::npos) << f.name;
    }
}

TEST_F(SystemFacts, WhatIsThereNeedsNoRemedyAndWhatIsMissingHasOne) {
  for (const KernelFeatures& kernel : {everything(), nothing()})
    for (const SystemFact& f : facts(kernel)) EXPECT_EQ(f.is_available, f.remedy.empty()) << f.name;
}

TEST_F(SystemFacts, ReasonAndRemedyAreTakenApart) {
  const SystemFact in_thread = fact(facts(nothing()), "in-thread faults");
  EXPECT_FALSE(in_thread.is_available);
  EXPECT_EQ(in_thread.detail, "open userfaultfd: Operation not permitted");
  EXPECT_EQ(in_thread.remedy, "allow it in the seccomp profile");
  EXPECT_EQ(fact(facts(nothing()), "message faults").remedy, "set sysctl x=1");
}

TEST_F(SystemFacts, TheChoiceOfAutoIsTold) {
  EXPECT_THAT(fact(facts(everything()), "delivery").detail, HasSubstr("in-thread"));
  EXPECT_THAT(fact(facts(everything()), "frames").detail,
              testing::AllOf(HasSubstr("auto is private for"), HasSubstr("shared for others")));
  EXPECT_THAT(fact(facts(nothing()), "delivery").detail, HasSubstr("mprotect"));
  KernelFeatures old = everything();
  old.has_write_tracking = false;
  EXPECT_THAT(fact(facts(old), "frames").detail, HasSubstr("auto is private: "));
  old.has_pagemap = false;
  EXPECT_THAT(fact(facts(old), "frames").detail, HasSubstr("fall back to mprotect"));
}

TEST_F(SystemFacts, AMaskIsTold) {
  KernelFeatures masked = everything();
  masked.is_masked = true;
  EXPECT_THAT(fact(facts(masked), "kernel").detail, HasSubstr("masked"));
}

TEST_F(SystemFacts, LittleMemoryIsMissing) {
  EXPECT_TRUE(fact(facts(everything()), "memory").is_available);
  EXPECT_THAT(fact(facts(everything()), "memory").detail,
              HasSubstr("4 GiB available on this machine"));
  root_.machine(20);
  EXPECT_FALSE(fact(facts(everything()), "memory").is_available);
}

TEST_F(SystemFacts, FewMappingsAndCommittedMemoryAreTold) {
  root_.file("/proc/sys/vm/max_map_count", "1000\n").file("/proc/sys/vm/overcommit_memory", "2\n");
  EXPECT_THAT(fact(facts(everything()), "mappings").remedy, HasSubstr("vm.max_map_count"));
  EXPECT_FALSE(fact(facts(everything()), "address space").is_available);
}

TEST_F(SystemFacts, ALimitOfDataIsTold) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_DATA, &before), 0);
  const rlimit less{std::min<rlim_t>(uint64_t{1} << 40, before.rlim_max), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_DATA, &less), 0);
  const SystemFact told = fact(facts(everything()), "address space");
  ASSERT_EQ(::setrlimit(RLIMIT_DATA, &before), 0);
  EXPECT_FALSE(told.is_available);
  EXPECT_THAT(told.remedy, HasSubstr("ulimit -d"));
}

TEST_F(SystemFacts, TheCapabilityToLockMemoryCounts) {
  EXPECT_EQ(fact(facts(everything()), "locked memory").detail,
            "no limit for io_uring's registered buffers");
}

TEST_F(SystemFacts, OfThisProcessHeedTheMask) {
  ASSERT_EQ(::setenv("OUTCORE_KERNEL", "5.15", 1), 0);
  const std::vector<SystemFact> masked = system_facts();
  ASSERT_EQ(::setenv("OUTCORE_KERNEL", "nonsense", 1), 0);
  const std::vector<SystemFact> wrong = system_facts();
  ::unsetenv("OUTCORE_KERNEL");
  EXPECT_THAT(fact(masked, "kernel").detail, HasSubstr("masked"));
  EXPECT_FALSE(fact(masked, "write tracking").is_available);
  EXPECT_THAT(fact(wrong, "kernel").detail, testing::Not(HasSubstr("masked")));
}

}  // namespace
}  // namespace outcore::os
