#include "core/store/file_version.h"

#include <sys/stat.h>
#include <time.h>

#include <cerrno>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/base/assert.h"
#include "core/os/wait.h"

namespace outcore::store {
namespace {

int64_t in_ns(const timespec& time) { return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec; }

}  // namespace

int FileVersion::of(int fd, FileVersion* version) {
  OC_CHECK(version != nullptr);
  struct stat about;
  if (::fstat(fd, &about) != 0) return -errno;
  if (!S_ISREG(about.st_mode)) return -ENOTSUP;
  // A simulation decides everything by its seed: there only its processes change files.
  const int64_t changed_ns = os::wait_hooks != nullptr ? 0 : in_ns(about.st_ctim);
  *version = {about.st_dev, about.st_ino, static_cast<uint64_t>(about.st_size), changed_ns};
  return 0;
}

FileVersion FileVersion::of_contents(std::string_view contents_id, uint64_t size_bytes) {
  OC_CHECK(!contents_id.empty());
  constexpr uint64_t kNoDevice = uint64_t{1} << 63;  // the kernel numbers devices in 32 bits
  const XXH128_hash_t sum = XXH3_128bits(contents_id.data(), contents_id.size());
  return {sum.high64 | kNoDevice, sum.low64, size_bytes, 0};
}

bool FileVersion::is_fresh() const {
  if (os::wait_hooks != nullptr) return false;
  constexpr int64_t kTicksNs = 20'000'000, kSecondNs = 1'000'000'000;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const int64_t age_ns = in_ns(now) - changed_ns;  // below 0: of a change in the future
  // FAT, and ext4 with small inodes: whole seconds, or two.
  const bool is_whole = changed_ns % kSecondNs == 0;
  return is_whole ? age_ns < 2 * kSecondNs : age_ns < kTicksNs;
}

}  // namespace outcore::store
