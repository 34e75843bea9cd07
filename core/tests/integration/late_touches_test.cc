// Writes that an event thread hears of and answers late: they were let through by others meanwhile,
// and what was written is stored.
#include "core/os/wait.h"
#include "core/paging/fault_path.h"
#include "core/paging/page_cache.h"
#include "core/region/address_map.h"
#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

class LateTouches : public OnMechanism {
 protected:
  void write(Region& region, std::byte value) { *region.data() = value; }
  // As an event thread answers a write of the first byte.
  static os::FaultOutcome answer(Region& region, uint64_t heard_ns) {
    region::View* const view = region::AddressMap::instance().find_and_hold(region.data());
    const os::FaultOutcome outcome =
        view->cache->fault_path->fault(*view, region.data(), true, 0, heard_ns);
    region::AddressMap::release(view);
    return outcome;
  }
  uint64_t stored_by_flush(Region& region) {
    const uint64_t before = runtime_->metrics().counters.write_backs;
    EXPECT_TRUE(region.flush().ok());
    return runtime_->metrics().counters.write_backs - before;
  }
};
OUTCORE_ON_ALL_MECHANISMS(LateTouches);

TEST_P(LateTouches, OfPagesThatWereStoredAreNoWrites) {
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadWrite).value();
  const uint64_t heard_ns = os::now_ns();
  write(region, std::byte{1});
  EXPECT_EQ(stored_by_flush(region), 1u);
  EXPECT_EQ(answer(region, heard_ns), os::FaultOutcome::kDone);
  EXPECT_EQ(stored_by_flush(region), 0u) << "in memory";
  evict_all(region);
  EXPECT_EQ(answer(region, heard_ns), os::FaultOutcome::kDone);
  EXPECT_EQ(stored_by_flush(region), 0u) << "has left";
  write(region, std::byte{2});
  EXPECT_EQ(stored_by_flush(region), 1u) << "a write after all";
  EXPECT_EQ(read_file(path)[0], std::byte{2});
}

// One that is heard of afterwards is let through at once.
TEST_P(LateTouches, OfPagesThatAreStoredNoMoreAreWrites) {
  Region region = map(file_of(data_bytes()), Access::kReadWrite).value();
  write(region, std::byte{1});
  EXPECT_EQ(stored_by_flush(region), 1u);
  EXPECT_EQ(answer(region, os::now_ns()), os::FaultOutcome::kDone);
  const uint64_t faults = runtime_->metrics().counters.faults;
  write(region, std::byte{2});
  EXPECT_EQ(runtime_->metrics().counters.faults, faults);
  EXPECT_EQ(stored_by_flush(region), 1u);
}

}  // namespace
}  // namespace outcore
