// Threads that are asked to end (pthread_cancel) finish their calls of arrays first.
#include <gtest/gtest.h>

#include <numeric>
#include <optional>

#include "outcore/arrays.h"
#include "outcore/arrays_drain.h"
#include "outcore/runtime.h"
#include "tests/cancelled.h"
#include "tests/folder.h"

namespace outcore {
namespace {

using scene::expect_not_cancelled_within;
using scene::Folder;

void expect_ok(const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); }

// Contiguous, in tiles, and compressed.
std::vector<ArrayOptions> kinds() {
  std::vector<ArrayOptions> all(3);
  all[1].tiles = all[2].tiles = {32, 1000};
  all[2].compress = "zstd";
  return all;
}

class CancelledThreads : public testing::Test {
 protected:
  static inline const Dims kShape = {100, 4000};
  void SetUp() override {
    if (scene::takes_cancellation_over()) GTEST_SKIP() << "a sanitizer unwinds";
    std::iota(cells_.begin(), cells_.end(), 0.5);
  }
  void open(ArraysMode mode) {
    expect_not_cancelled_within("open",
                                [&] { arrays_.emplace(Arrays::open(near_, mode).value()); });
  }
  void close() {
    expect_not_cancelled_within("close", [&] { expect_ok(arrays_->close()); });
    expect_not_cancelled_within("destruction", [&] { arrays_.reset(); });
  }
  void store_all() {
    open(ArraysMode::kWrite);
    for (size_t i = 0; i < kinds().size(); ++i) {
      const std::string name = "u" + std::to_string(i);
      expect_not_cancelled_within(
          "alloc", [&] { expect_ok(arrays_->alloc<double>(name, kShape, kinds()[i])); });
      expect_not_cancelled_within("store a box", [&] {
        expect_ok(arrays_->store(name, cells_.data(), {0, 0}, kShape));
      });
      expect_not_cancelled_within("store a whole", [&] {
        expect_ok(arrays_->store_whole("w" + name, array_type<double>(), kShape, cells_.data(),
                                       kinds()[i]));
      });
    }
    expect_not_cancelled_within("store a value", [&] { expect_ok(arrays_->store("n", 7)); });
    expect_not_cancelled_within("an attribute",
                                [&] { expect_ok(arrays_->set_attribute("n", "unit", "K")); });
    expect_not_cancelled_within("rename", [&] { expect_ok(arrays_->rename("n", "m")); });
    expect_not_cancelled_within("flush", [&] { expect_ok(arrays_->flush()); });
    expect_not_cancelled_within("remove", [&] { expect_ok(arrays_->remove("wu0")); });
    close();
  }

  const Folder folder_;
  const std::string near_ = folder_ / "near.oca", far_ = folder_ / "far.oca";
  std::vector<double> cells_ = std::vector<double>(100 * 4000);
  std::optional<Arrays> arrays_;
};

TEST_F(CancelledThreads, FinishTheirCallsOfArrays) {
  store_all();
  open(ArraysMode::kRead);
  for (size_t i = 0; i < kinds().size(); ++i) {
    std::vector<double> there(cells_.size());
    expect_not_cancelled_within("load", [&] {
      expect_ok(arrays_->load("u" + std::to_string(i), there.data(), {0, 0}, kShape));
    });
    EXPECT_EQ(there, cells_);
  }
  expect_not_cancelled_within("list", [&] { EXPECT_EQ(arrays_->list().size(), 6u); });
  expect_not_cancelled_within("verify", [&] {
    EXPECT_EQ(arrays_->verify("", [](const ArrayDamage&) {}).value().damages, 0u);
  });
  expect_not_cancelled_within("a view", [&] {
    const auto view = arrays_->view<double>("u0").value();
    EXPECT_EQ(view(99, 3999), cells_.back());
  });
  close();
}

TEST_F(CancelledThreads, FinishAbortsAndWhatTheyChangeInPlace) {
  store_all();
  open(ArraysMode::kUpdate);
  expect_not_cancelled_within("a change in place", [&] {
    expect_ok(arrays_->store("u0", cells_.data(), {50, 0}, {1, 4000}));
  });
  close();
  open(ArraysMode::kUpdate);
  expect_not_cancelled_within("abort", [&] { arrays_->abort(); });
  close();
  const Arrays there = Arrays::open(near_).value();
  std::vector<double> row(4000);
  expect_ok(there.load("u0", row.data(), {50, 0}, {1, 4000}));
  EXPECT_TRUE(std::equal(row.begin(), row.end(), cells_.begin()));
}

TEST_F(CancelledThreads, FinishTheirCallsOfDrains) {
  store_all();
  std::optional<ArraysDrain> drain;
  expect_not_cancelled_within("start",
                              [&] { drain.emplace(ArraysDrain::start(near_, far_).value()); });
  expect_not_cancelled_within("wait for", [&] { static_cast<void>(drain->wait_for(1)); });
  expect_not_cancelled_within("wait", [&] { expect_ok(drain->wait()); });
  expect_not_cancelled_within("destruction", [&] { drain.reset(); });
  EXPECT_EQ(Arrays::open(far_).value().list().size(), 6u);
}

}  // namespace
}  // namespace outcore
