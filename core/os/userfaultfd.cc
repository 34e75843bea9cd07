#include "core/os/userfaultfd.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "core/base/error.h"
#include "core/os/descriptor_place.h"

namespace outcore::os {
namespace {

constexpr const char* kDevice = "/dev/userfaultfd";
constexpr const char* kSeccompRemedy =
    "a container's seccomp profile may block it: give it the device (docker: --device "
    "/dev/userfaultfd), or allow userfaultfd in the profile, or use delivery=mprotect";

// /dev/userfaultfd came with Linux 6.1, after some headers.
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

// Returns a descriptor or -errno.
int open_by_syscall(int flags) {
  const long opened = ::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | flags);
  const int fd = above_standard(static_cast<int>(opened));
  return fd >= 0 ? fd : -errno;
}

int open_by_device(int flags) {
  const int device = above_standard(::open(kDevice, O_RDWR | O_CLOEXEC));
  if (device < 0) return -errno;
  const int fd =
      above_standard(::ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK | flags));
  const int result = fd >= 0 ? fd : -errno;
  ::close(device);
  return result;
}

std::string remedy_of(int code, bool needs_kernel_faults, int device_code) {
  if (code == EMFILE) return "raise the limit of open files (ulimit -n)";
  if (code == ENFILE) return "raise the limit of open files of the system (sysctl fs.file-max)";
  if (code == ENOSYS) return std::string("this kernel has none, or ") + kSeccompRemedy;
  if (code != EPERM && code != EACCES) return {};
  if (!needs_kernel_faults) return kSeccompRemedy;
  std::string device;
  if (device_code != ENOENT)
    device = std::string("allow this user to read and write ") + kDevice + ", or ";
  return device +
         "set sysctl vm.unprivileged_userfaultfd=1, or run with CAP_SYS_PTRACE; in a container "
         "give it "
         "the device, or its seccomp profile must allow userfaultfd as well";
}

}  // namespace

Result<int> open_userfaultfd(uint64_t features, bool needs_kernel_faults) {
  int device_code = 0;
  int fd = -1;
  if (needs_kernel_faults) {
    fd = open_by_device(0);
    if (fd < 0) device_code = -fd, fd = open_by_syscall(0);
    // The right to it was there.
    if (fd < 0 && (device_code == EMFILE || device_code == ENFILE)) fd = -device_code;
  } else {
    fd = open_by_syscall(UFFD_USER_MODE_ONLY);
    // Before Linux 5.11 the flag is unknown, and every process may make the call without it, unless
    // the sysctl forbids it.
    if (fd == -EINVAL) fd = open_by_syscall(0);
    // A seccomp profile of a container often refuses the call, and not the device.
    if (fd == -EPERM || fd == -ENOSYS)
      if (const int other = open_by_device(UFFD_USER_MODE_ONLY); other >= 0) fd = other;
  }
  if (fd < 0) {
    const std::string what =
        needs_kernel_faults ? "open userfaultfd for faults of system calls" : "open userfaultfd";
    return base::system_error(fd, what, remedy_of(-fd, needs_kernel_faults, device_code));
  }
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = features;
  if (::ioctl(fd, UFFDIO_API, &api) != 0) {
    const int code = errno;
    ::close(fd);
    return base::system_error(code, "ask userfaultfd for features",
                              "this kernel is older than they are");
  }
  return fd;
}

}  // namespace outcore::os
