// Fact: the kernel writes to pages that it has pinned (here a registered buffer of io_uring;
// O_DIRECT and RDMA are the same) without using the page table: if the page is unmapped and freed
// meanwhile, the bytes are lost, and no scan tells.
//
// So such buffers are pinned in the region until the transfer is over.
#include <liburing.h>

#include <cerrno>
#include <cstring>

#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

// A ring with one registered buffer of one page.
class PinnedPage {
 public:
  ~PinnedPage() {
    if (is_open_) ::io_uring_queue_exit(&ring_);
  }
  std::string pin(char* page) {
    int result = ::io_uring_queue_init(4, &ring_, 0);
    if (result < 0) return std::string("io_uring is not to be had: ") + std::strerror(-result);
    is_open_ = true;
    const iovec buffer{page, kPage};
    result = ::io_uring_register_buffers(&ring_, &buffer, 1);
    if (result < 0) return std::string("io_uring registers no buffer: ") + std::strerror(-result);
    return "";
  }
  // The kernel writes the page.
  int read_into(char* page, int file) {
    io_uring_sqe* request = ::io_uring_get_sqe(&ring_);
    ::io_uring_prep_read_fixed(request, file, page, kPage, 0, 0);
    ::io_uring_submit(&ring_);
    io_uring_cqe* done = nullptr;
    int result = 0;
    do {
      result = ::io_uring_wait_cqe(&ring_, &done);
    } while (result == -EINTR);
    if (result < 0) return result;
    result = done->res;
    ::io_uring_cqe_seen(&ring_, done);
    return result;
  }

 private:
  io_uring ring_ = {};
  bool is_open_ = false;
};

class FactPinnedPages : public ::testing::Test {
 protected:
  FactPinnedPages() : memfd_(1), app_(Mapping::of(memfd_.fd(), 1)), source_(1) {}

  // Afterwards the page holds 7, is pinned, clean, and unmapped.
  std::string prepare() {
    source_.write(0, 9);
    std::string reason = pagemap_.lacks_scan();
    if (reason.empty()) reason = faults_.open_shared(app_);
    if (!reason.empty()) return reason;
    EXPECT_EQ(faults_.copy(app_.page(0), 7, UFFDIO_COPY_MODE_WP), 0);
    reason = pinned_.pin(app_.page(0));
    if (!reason.empty()) return reason;
    EXPECT_THAT(pagemap_.written(app_), ::testing::ElementsAre(0)) << "pinning counts as a write";
    EXPECT_EQ(faults_.protect(app_.page(0), 1, true), 0) << "as after a write-back";
    EXPECT_EQ(::madvise(app_.page(0), kPage, MADV_DONTNEED), 0);
    return "";
  }

  Memfd memfd_;
  Mapping app_;
  Memfd source_;
  Pagemap pagemap_;
  Userfault faults_;
  PinnedPage pinned_;
};

TEST_F(FactPinnedPages, AWriteToAPinnedUnmappedPageDoesNotScanAsWritten) {
  OC_SKIP_IF(prepare());
  ASSERT_EQ(pinned_.read_into(app_.page(0), source_.fd()), int{kPage});
  EXPECT_THAT(pagemap_.written(app_), ::testing::ElementsAre());
  EXPECT_EQ(memfd_.first_byte(0), 9) << "though it was";
}

TEST_F(FactPinnedPages, AWriteToAPinnedFreedPageIsLost) {
  OC_SKIP_IF(prepare());
  ASSERT_EQ(::madvise(app_.page(0), kPage, MADV_REMOVE), 0);
  ASSERT_EQ(faults_.copy(app_.page(0), 7, UFFDIO_COPY_MODE_WP), 0) << "filled again";
  ASSERT_EQ(pinned_.read_into(app_.page(0), source_.fd()), int{kPage}) << "the kernel says it read";
  EXPECT_EQ(read_byte(app_.page(0)).value, 7) << "into a page that nobody has";
  EXPECT_THAT(pagemap_.written(app_), ::testing::ElementsAre());
}

}  // namespace
}  // namespace outcore::kernel_test
