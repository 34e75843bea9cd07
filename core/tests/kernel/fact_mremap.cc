// Fact: mremap of a registered range drops the registration; a touch at the new place finds zeros.
// With UFFD_FEATURE_EVENT_REMAP, and a thread that reads the event, the registration moves along.
//
// So a range can be replaced in one step, without a moment in which a touch or a system call fails.
#include <cerrno>

#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

TEST(FactMremap, AMovedRangeIsNoLongerWatched) {
  const Mapping app = Mapping::anonymous(2);
  const Mapping place = Mapping::anonymous(2, PROT_NONE);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app));
  ASSERT_EQ(faults.copy(app.page(0), 7), 0);
  void* moved = ::mremap(app.page(0), app.size_bytes(), app.size_bytes(),
                         MREMAP_MAYMOVE | MREMAP_FIXED, place.page(0));
  ASSERT_EQ(moved, place.page(0));
  EXPECT_EQ(read_byte(place.page(0)).value, 7) << "what was there comes along";
  const Touch absent = read_byte(place.page(1));
  EXPECT_EQ(absent.signal, 0) << "nobody asks us";
  EXPECT_EQ(absent.value, 0);
  EXPECT_EQ(faults.copy(place.page(1), 7), -ENOENT);
}

TEST(FactMremap, WithItsEventTheWatchGoesAlong) {
  const Pagemap pagemap;
  OC_SKIP_IF(pagemap.lacks_scan());
  const Memfd memfd(4);
  const Mapping ready = Mapping::of(memfd.fd(), 4);
  const Mapping app = Mapping::anonymous(4);
  Userfault before, faults;
  OC_SKIP_IF(before.open_private(app, Taking::kMessages));
  OC_SKIP_IF(faults.open_shared(ready, Taking::kMessages, UFFD_FEATURE_EVENT_REMAP));
  char* first = nullptr;
  std::thread reader([&] { first = faults.next_fault(); });  // reads the event, too
  ASSERT_EQ(::mremap(ready.page(0), ready.size_bytes(), ready.size_bytes(),
                     MREMAP_MAYMOVE | MREMAP_FIXED, app.page(0)),
            app.page(0));
  char seen = 0;
  Sleeper thread(faults, [&] { seen = *static_cast<volatile char*>(app.page(2)); });
  reader.join();
  EXPECT_EQ(first, app.page(2));
  ASSERT_EQ(faults.copy(app.page(2), 7, UFFDIO_COPY_MODE_WP), 0);
  thread.join();
  EXPECT_EQ(seen, 7);
  ASSERT_EQ(faults.copy(app.page(1), 7, UFFDIO_COPY_MODE_WP), 0);
  EXPECT_THAT(pagemap.written(app), ::testing::Not(::testing::Contains(2)));
  *static_cast<volatile char*>(app.page(2)) = 9;
  EXPECT_THAT(pagemap.written(app), ::testing::Contains(2));
  EXPECT_EQ(memfd.first_byte(2), 9);
}

}  // namespace
}  // namespace outcore::kernel_test
