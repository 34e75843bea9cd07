// Fact: mremap of a watched range drops the watch; a touch at the new place finds zeros.
#include <cerrno>

#include "kernel_fixture.h"

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

}  // namespace
}  // namespace outcore::kernel_test
