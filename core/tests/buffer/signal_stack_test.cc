// How much of a signal stack a fault needs whose page is in a buffer.
#include <gtest/gtest.h>

#include "core/os/signal_delivery.h"
#include "core/tests/buffer/writes.h"
#include "core/tests/conformance/signal_stack.h"

namespace outcore::scene::of_job {
namespace {

// A member of a job whose file has four times the limit; the pages that it brings in are left to it
// to take out, too, as no other thread does.
class SignalStackOf : public Writes {
 protected:
  void SetUp() override {
    Writes::SetUp();
    if (OUTCORE_TEST_IS_SANITIZED) GTEST_SKIP() << "a sanitizer's frames are larger";
  }
  static int is_little(size_t used_bytes) {
    const size_t frame_bytes = signal_frame_bytes(), most = frame_bytes + os::kHandlerRoomBytes;
    if (used_bytes > frame_bytes && used_bytes <= most) return 0;
    return std::fprintf(stderr, "%zu bytes, %zu to %zu\n", used_bytes, frame_bytes, most), kWrong;
  }
};

TEST_P(SignalStackOf, AReaderIsSmall) {
  Job job(8192);
  EXPECT_EQ(as_member(job, Access::kReadOnly,
                      [&](Runtime&, Region& region) {
                        uint64_t wrong = 0;
                        const size_t used = signal_stack_used([&] {
                          for (uint64_t i = 0; i < 20'000; ++i)
                            wrong += job.is_right(region, i * 4099 % 8192, 0) ? 0 : 1;
                        });
                        return wrong != 0 ? kWrong : is_little(used);
                      }),
            0);
}

TEST_P(SignalStackOf, AWriterIsSmall) {
  Job job(8192);
  EXPECT_EQ(as_member(job, Access::kReadWrite,
                      [&](Runtime&, Region& region) {
                        return is_little(signal_stack_used([&] {
                          // One after the other, runs are let in: read first, and then written.
                          uint64_t sum = 0;
                          for (uint64_t i = 0; i < 1024; ++i) sum += cells(region)[i * 512].load();
                          for (uint64_t i = 0; i < 1024; ++i) cells(region)[i * 512].store(sum);
                          for (uint64_t i = 0; i < 20'000; ++i)
                            cells(region)[i * 4099 % 8192 * 512].fetch_add(1);
                        }));
                      }),
            0);
}

INSTANTIATE_TEST_SUITE_P(By, SignalStackOf, testing::Values(Delivery::kInThread), name_of_delivery);

}  // namespace
}  // namespace outcore::scene::of_job
