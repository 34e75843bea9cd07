// Arguments that cannot be: errno says so, one line on stderr tells which, and nothing is mapped.
#include <gmock/gmock.h>

#include "outcore/outcore.h"
#include "umap/tests/umap/scene.h"

namespace outcore {
namespace {

using namespace scene;
using testing::HasSubstr;

class UmapWrongInput : public UmapTest {
 protected:
  // The call fails with this errno and one line, which has this text.
  template <typename Call>
  static void expect_refused(Call&& call, int code, const std::string& text) {
    testing::internal::CaptureStderr();
    errno = 0;
    const bool is_refused = call();
    const int got = errno;
    const std::string line = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(is_refused);
    EXPECT_EQ(got, code) << line;
    EXPECT_THAT(line, HasSubstr(text));
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
    EXPECT_THAT(line, HasSubstr(oc_last_error()));
  }
  static void expect_no_map(void* address, uint64_t size_bytes, int prot, int flags, int fd,
                            off_t offset, int code, const std::string& text) {
    expect_refused(
        [&] { return umap(address, size_bytes, prot, flags, fd, offset) == UMAP_FAILED; }, code,
        text);
  }
};

TEST_F(UmapWrongInput, DescriptorsThatAreNoFiles) {
  expect_no_map(nullptr, kPageBytes, kBoth, UMAP_PRIVATE, -1, 0, EBADF, "descriptor -1");
  const int directory = open_file(".", O_RDONLY | O_DIRECTORY);
  expect_no_map(nullptr, kPageBytes, PROT_READ, UMAP_PRIVATE, directory, 0, ENODEV,
                "neither a regular file");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  expect_no_map(nullptr, kPageBytes, PROT_READ, UMAP_PRIVATE, ends[0], 0, ENODEV,
                "neither a regular file");
  ::close(ends[0]), ::close(ends[1]);
}

TEST_F(UmapWrongInput, DescriptorsThatAreOpenForLess) {
  file("data", kPageBytes);
  const int reading = open_file("data", O_RDONLY), writing = open_file("data", O_WRONLY);
  expect_no_map(nullptr, kPageBytes, kBoth, UMAP_PRIVATE, reading, 0, EACCES, "O_RDWR");
  expect_no_map(nullptr, kPageBytes, PROT_READ, UMAP_PRIVATE, writing, 0, EACCES, "O_RDWR");
}

TEST_F(UmapWrongInput, LengthsAndOffsets) {
  const int fd = file("data", 4 * kPageBytes);
  expect_no_map(nullptr, 0, kBoth, UMAP_PRIVATE, fd, 0, EINVAL, "0 bytes");
  expect_no_map(nullptr, SIZE_MAX, kBoth, UMAP_PRIVATE, fd, 0, EINVAL, "64 TiB");
  expect_no_map(nullptr, kPageBytes, kBoth, UMAP_PRIVATE, fd, 100, EINVAL, "offset 100");
  expect_no_map(nullptr, kPageBytes, kBoth, UMAP_PRIVATE, fd, -4096, EINVAL, "offset -4096");
}

TEST_F(UmapWrongInput, ProtectionAndFlags) {
  const int fd = file("data", 4 * kPageBytes);
  expect_no_map(nullptr, kPageBytes, PROT_READ | PROT_EXEC, UMAP_PRIVATE, fd, 0, EINVAL, "prot");
  expect_no_map(nullptr, kPageBytes, PROT_NONE, UMAP_PRIVATE, fd, 0, EINVAL, "prot");
  expect_no_map(nullptr, kPageBytes, kBoth, MAP_SHARED, fd, 0, EINVAL, "UMAP_PRIVATE");
  expect_no_map(nullptr, kPageBytes, kBoth, UMAP_PRIVATE | MAP_ANONYMOUS, fd, 0, EINVAL, "flags");
  expect_no_map(nullptr, kPageBytes, kBoth, 0, fd, 0, EINVAL, "flags 0");
}

TEST_F(UmapWrongInput, Addresses) {
  const int fd = file("data", 4 * kPageBytes);
  auto* const odd = reinterpret_cast<void*>(0x7000'0000'0010);
  expect_no_map(odd, kPageBytes, kBoth, UMAP_PRIVATE, fd, 0, EINVAL, "page size");
  expect_no_map(nullptr, kPageBytes, kBoth, UMAP_PRIVATE | UMAP_FIXED, fd, 0, EINVAL, "UMAP_FIXED");
  auto* const last = reinterpret_cast<void*>(~uintptr_t{0} - kPageBytes + 1);
  for (const int flags : {UMAP_PRIVATE, UMAP_PRIVATE | UMAP_FIXED})
    expect_no_map(last, kPageBytes, kBoth, flags, fd, 0, EINVAL, "the last address");
}

TEST_F(UmapWrongInput, PageSizes) {
  const int fd = file("data", 4 * kPageBytes);
  const auto with = [&](uint64_t page_bytes) {
    return umap_variable(nullptr, kPageBytes, kBoth, UMAP_PRIVATE, fd, 0, page_bytes) ==
           UMAP_FAILED;
  };
  expect_refused([&] { return with(12 * kKiB); }, EINVAL, "pages of 12288 bytes");
  expect_refused([&] { return with(32 * kMiB); }, EINVAL, "16 MiB");
  testing::internal::CaptureStderr();
  umapcfg_set_umap_page_size(5000);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("5000: it is a power of two"));
  EXPECT_EQ(umapcfg_get_umap_page_size(), kPageBytes);
}

TEST_F(UmapWrongInput, OneFileHasOnePageSize) {
  const int fd = file("data", 64 * kKiB);
  std::byte* const at = map(fd, 64 * kKiB);
  expect_refused(
      [&] {
        return umap_variable(nullptr, 64 * kKiB, kBoth, UMAP_PRIVATE, fd, 0, 16 * kKiB) ==
               UMAP_FAILED;
      },
      EBUSY, "mapped already");
  EXPECT_EQ(uunmap(at, 64 * kKiB), 0);
}

TEST_F(UmapWrongInput, WhatIsNotMapped) {
  const int fd = file("data", 4 * kPageBytes);
  std::byte* const at = map(fd, 4 * kPageBytes);
  const auto unmap = [](void* address) {
    return [=] { return uunmap(address, kPageBytes) == -1; };
  };
  expect_refused(unmap(at + kPageBytes), EINVAL, "no region");
  expect_refused(unmap(nullptr), EINVAL, "no region");
  umap_prefetch_item items[] = {{nullptr}, {at}, {at + 4 * kPageBytes}};
  errno = 0;
  umap_prefetch(3, items);
  EXPECT_EQ(errno, EINVAL);
  errno = 0;
  umap_prefetch(2, nullptr);
  EXPECT_EQ(errno, EINVAL);
  expect_refused(
      [&] {
        umap_fetch_and_pin(nullptr, kPageBytes);
        return true;
      },
      EINVAL, "no region");
  EXPECT_EQ(uunmap(at, 1), 0) << "the whole region, whatever the length";
  expect_refused(unmap(at), EINVAL, "no region");
}

TEST_F(UmapWrongInput, WithoutRegionsThereIsNothingToDo) {
  EXPECT_EQ(umap_flush(), 0);
  umap_prefetch(0, nullptr);
  EXPECT_EQ(umap_has_write_support(), 1);
  EXPECT_EQ(umapcfg_get_system_page_size(), 4096);
}

}  // namespace
}  // namespace outcore
