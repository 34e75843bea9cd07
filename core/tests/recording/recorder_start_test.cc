// How a recorder begins.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/published/sheet.h"
#include "core/recording/recorder.h"

namespace outcore {
namespace {

// An earlier one may have had to look at fewer pages; the curve of this one begins with all.
TEST(Recorder, BeginsWithAllPages) {
  const std::shared_ptr<published::Sheet> sheet = published::Sheet::make();
  ASSERT_TRUE(sheet->has_event_memory());
  sheet->events().sample_one_in(8);
  const auto recorder = recording::Recorder::start(sheet, [] { return std::string("s3-fifo"); });
  ASSERT_TRUE(recorder.ok()) << recorder.message();
  EXPECT_EQ(sheet->events().sampled_one_in(), 1u);
}

}  // namespace
}  // namespace outcore
