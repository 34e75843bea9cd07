// What destructors write, when objects of the thread that the library uses are gone already.
#include <functional>
#include <thread>

#include "core/store/io_ring.h"
#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

struct AtTheEnd {
  std::function<void()> work;
  ~AtTheEnd() {
    if (work) work();
  }
};

class LateWrites : public OnMechanism {};
OUTCORE_ON_ALL_MECHANISMS(LateWrites);

TEST_P(LateWrites, AreStored) {
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadWrite).value();
  // Every other page, so that there are many transfers at a time.
  const auto write = [&](std::byte value) {
    for (uint64_t at = 0; at < budget_bytes() / 2; at += 2 * page_bytes())
      ASSERT_TRUE(region.write(at, std::span(&value, 1)).ok());
    ASSERT_TRUE(region.flush().ok());
  };
  bool has_ring = false, has_late_ring = true;
  std::thread([&] {
    thread_local AtTheEnd end;  // its destructor runs after those of what is made later
    end.work = [&] {
      has_late_ring = store::IoRing::of_this_thread() != nullptr;
      write(std::byte{2});
    };
    write(std::byte{1});
    has_ring = store::IoRing::of_this_thread() != nullptr;
  }).join();
  EXPECT_FALSE(has_late_ring) << "has_ring: " << has_ring;
  const Bytes bytes = read_file(path);
  for (uint64_t at = 0; at < budget_bytes() / 2; at += 2 * page_bytes())
    ASSERT_EQ(bytes[at], std::byte{2}) << at;
}

}  // namespace
}  // namespace outcore
