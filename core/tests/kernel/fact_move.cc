// Fact: UFFDIO_MOVE removes an anonymous page from its writers in one step, without a copy (Linux
// 6.8).
#include <cerrno>

#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

TEST(FactMove, AMovedPageIsFrozenAtItsNewPlaceAndAbsentAtTheOld) {
  const Mapping app = Mapping::anonymous(1);
  const Mapping area = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open(Taking::kSignals, UFFD_FEATURE_PAGEFAULT_FLAG_WP | os::kUffdFeatureMove));
  OC_SKIP_IF(faults.watch(app, UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP));
  OC_SKIP_IF(faults.watch(area, UFFDIO_REGISTER_MODE_MISSING));
  ASSERT_EQ(faults.copy(app.page(0), 7), 0);
  ASSERT_EQ(write_byte(app.page(0), 9).signal, 0);
  ASSERT_EQ(faults.move(area.page(0), app.page(0)), 0);
  EXPECT_EQ(write_byte(app.page(0), 10).signal, SIGBUS) << "no write reaches it any more";
  EXPECT_EQ(read_byte(area.page(0)).value, 9);
  ASSERT_EQ(faults.move(app.page(0), area.page(0)), 0) << "and back: a rescue";
  EXPECT_EQ(read_byte(app.page(0)).value, 9);
}

TEST(FactMove, AnAbsentPageCannotBeMovedAndAPresentOneIsNotOverwritten) {
  const Mapping app = Mapping::anonymous(1);
  const Mapping area = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open(Taking::kSignals, os::kUffdFeatureMove));
  OC_SKIP_IF(faults.watch(app, UFFDIO_REGISTER_MODE_MISSING));
  OC_SKIP_IF(faults.watch(area, UFFDIO_REGISTER_MODE_MISSING));
  EXPECT_EQ(faults.move(area.page(0), app.page(0)), -ENOENT);
  ASSERT_EQ(faults.copy(app.page(0), 7), 0);
  ASSERT_EQ(faults.copy(area.page(0), 8), 0);
  EXPECT_EQ(faults.move(area.page(0), app.page(0)), -EEXIST);
  EXPECT_EQ(read_byte(area.page(0)).value, 8);
}

}  // namespace
}  // namespace outcore::kernel_test
