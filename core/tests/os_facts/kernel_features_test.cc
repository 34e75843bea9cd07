#include "core/os/kernel_features.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <iterator>

#include "core/os/uapi.h"
#include "core/os/userfaultfd.h"

namespace outcore::os {
namespace {

using testing::HasSubstr;

KernelFeatures detected(const std::string& mask) {
  Result<KernelFeatures> features = detect_kernel_features(mask);
  EXPECT_TRUE(features.ok()) << features.message();
  return features ? features.value() : KernelFeatures{};
}

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

TEST(KernelFeatures, AreNotMaskedWithoutAMask) {
  EXPECT_FALSE(detected("").is_masked);
  EXPECT_FALSE(detected("all").is_masked);
  EXPECT_FALSE(detected("").release.empty());
}

// Closing an io_uring interrupts the thread that created it, some milliseconds later.
TEST(KernelFeatures, LookingDoesNotInterruptTheThreadAfterwards) {
  constexpr int kLongerThanARingsEndMs = 200;
  detected("");
  const int queue = ::epoll_create1(EPOLL_CLOEXEC);
  ASSERT_GE(queue, 0);
  epoll_event event;
  EXPECT_EQ(::epoll_wait(queue, &event, 1, kLongerThanARingsEndMs), 0) << errno;
  ::close(queue);
}

TEST(KernelFeatures, WhatIsMissingComesWithAReason) {
  const KernelFeatures features = detected("");
  EXPECT_NE(features.has_sigbus, !features.why_no_userfaultfd.empty());
  EXPECT_NE(features.has_messages, !features.why_no_messages.empty());
}

TEST(KernelFeatures, NothingNewerThanTheMaskIsReported) {
  const KernelFeatures all = detected("all"), old = detected("5.15");
  EXPECT_TRUE(old.is_masked);
  EXPECT_FALSE(old.has_continue_wp || old.has_poison || old.has_write_tracking || old.has_move ||
               old.has_batched_advice);
  EXPECT_EQ(old.has_sigbus, all.has_sigbus);
  EXPECT_EQ(old.has_anonymous_wp, all.has_anonymous_wp);
  EXPECT_EQ(old.has_minor_shmem, all.has_minor_shmem);
  EXPECT_EQ(old.has_pagemap, all.has_pagemap);
}

TEST(KernelFeatures, TheMaskCountsMinorReleasesAsNumbers) {
  const KernelFeatures all = detected("all"), masked = detected("6.8"), newer = detected("6.13");
  EXPECT_EQ(masked.has_move, all.has_move);
  EXPECT_EQ(masked.has_write_tracking, all.has_write_tracking);
  EXPECT_FALSE(masked.has_batched_advice);
  EXPECT_EQ(newer.has_batched_advice, all.has_batched_advice);
  EXPECT_FALSE(newer.is_masked);
}

TEST(KernelFeatures, AnAncientMaskSaysThatItIsTheReason) {
  const KernelFeatures ancient = detected("4.9");
  EXPECT_FALSE(ancient.has_sigbus || ancient.has_messages || ancient.has_io_uring);
  EXPECT_THAT(ancient.why_no_userfaultfd, HasSubstr("kernel=4.9"));
  EXPECT_FALSE(ancient.why_no_messages.empty());
}

TEST(KernelFeatures, AMaskThatIsNoReleaseIsRefused) {
  for (const char* mask :
       {"6", "new", "6.", ".1", "6.1.5", "6.1x", " 6.1", "-6.1", "6.-1", "6.+1", "6. 1"}) {
    Result<KernelFeatures> features = detect_kernel_features(mask);
    ASSERT_FALSE(features.ok()) << mask;
    EXPECT_EQ(features.code(), EINVAL);
    EXPECT_THAT(features.message(), HasSubstr("5.15, 6.1 or 6.8"));
  }
}

TEST(KernelFeatures, ProbingLeavesNoDescriptorOpen) {
  detected("");
  const size_t before = open_descriptors();
  for (int i = 0; i < 10; ++i) detected("");
  EXPECT_EQ(open_descriptors(), before);
}

TEST(KernelFeatures, ProbingAgainFindsTheSame) {
  const KernelFeatures once = detected("");
  for (int i = 0; i < 20; ++i) {
    const KernelFeatures again = detected("");
    EXPECT_EQ(again.has_sigbus, once.has_sigbus);
    EXPECT_EQ(again.has_write_tracking, once.has_write_tracking);
    EXPECT_EQ(again.has_move, once.has_move);
    EXPECT_EQ(again.has_batched_advice, once.has_batched_advice);
    EXPECT_EQ(again.has_pagemap, once.has_pagemap);
  }
}

TEST(Userfaultfd, IsClosedOnExecAndDoesNotBlock) {
  Result<int> fd = open_userfaultfd(UFFD_FEATURE_SIGBUS, false);
  if (!fd) GTEST_SKIP() << fd.message();
  EXPECT_TRUE(::fcntl(fd.value(), F_GETFD) & FD_CLOEXEC);
  EXPECT_TRUE(::fcntl(fd.value(), F_GETFL) & O_NONBLOCK);
  ::close(fd.value());
}

TEST(Userfaultfd, RefusesFeaturesThatNoKernelHas) {
  Result<int> any = open_userfaultfd(0, false);
  if (!any) GTEST_SKIP() << any.message();
  ::close(any.value());
  const size_t before = open_descriptors();
  Result<int> fd = open_userfaultfd(uint64_t{1} << 63, false);
  ASSERT_FALSE(fd.ok());
  EXPECT_EQ(fd.code(), EINVAL);
  EXPECT_THAT(fd.message(), HasSubstr("older"));
  EXPECT_EQ(open_descriptors(), before);
}

// As the profiles of containers do: the call is refused, files are not.
bool refuse_the_system_call() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {static_cast<unsigned short>(std::size(filter)), filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(Userfaultfd, TheDeviceIsEnoughWhereTheSystemCallIsRefused) {
  const int device = ::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
  if (device < 0) GTEST_SKIP() << "this process may not open /dev/userfaultfd";
  ::close(device);
  EXPECT_EXIT(
      {
        const bool is_refused =
            refuse_the_system_call() && ::syscall(SYS_userfaultfd, O_CLOEXEC) == -1;
        const bool is_open = open_userfaultfd(UFFD_FEATURE_SIGBUS, false).ok() &&
                             open_userfaultfd(UFFD_FEATURE_THREAD_ID, true).ok();
        ::_exit(is_refused && is_open ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Userfaultfd, WithoutDescriptorsTheRemedyIsTold) {
  Result<int> any = open_userfaultfd(0, false);
  if (!any) GTEST_SKIP() << any.message();
  ::close(any.value());
  EXPECT_EXIT(
      {
        rlimit none{};
        const bool is_set = ::setrlimit(RLIMIT_NOFILE, &none) == 0;
        const Result<int> fd = open_userfaultfd(0, false);
        const bool is_told =
            !fd && fd.code() == EMFILE &&
            fd.message().find("raise the limit of open files (ulimit -n)") != std::string::npos;
        ::_exit(is_set && is_told ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Userfaultfd, WithoutPrivilegeTheRemedyIsTold) {
  Result<int> fd = open_userfaultfd(UFFD_FEATURE_THREAD_ID, true);
  if (fd) {
    ::close(fd.value());
    GTEST_SKIP() << "this process may hear of faults of system calls";
  }
  EXPECT_THAT(fd.message(),
              testing::AnyOf(HasSubstr("vm.unprivileged_userfaultfd=1"), HasSubstr("seccomp")));
}

}  // namespace
}  // namespace outcore::os
