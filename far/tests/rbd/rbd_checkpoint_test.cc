// Checkpoints of regions on images: snapshots of a real cluster, at one moment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <thread>

#include "core/tests/store/store_case.h"
#include "far/tests/rbd/ceph.h"
#include "outcore/checkpoint.h"
#include "outcore/periodic_checkpoints.h"
#include "outcore/runtime.h"
#include "outcore/snapshots.h"
#include "outcore/store.h"
#include "outcore/store_catalog.h"
#include "tests/folder.h"
#include "tests/places.h"

namespace outcore::rbd_test {
namespace {

using testing::HasSubstr;

class RbdCheckpoints : public testing::Test {
 protected:
  static constexpr uint64_t kPage = 4096, kPages = 512, kSize = kPages * kPage;
  void SetUp() override {
    OUTCORE_NEEDS_CEPH();
    start();
  }
  void start() {
    RuntimeOptions options;
    options.budget_bytes = 16 << 20;
    auto started = Runtime::start(options);
    ASSERT_TRUE(started.ok()) << started.message();
    runtime_ = std::make_unique<Runtime>(std::move(started).value());
  }
  std::string uri(const std::string& end) const { return Ceph::instance().uri(name_ + end); }
  Region map(const std::string& uri, Access access = Access::kReadWrite) {
    MapOptions options;
    options.access = access;
    options.size_bytes = access == Access::kReadOnly ? 0 : kSize;
    options.may_create = access != Access::kReadOnly;
    auto region = runtime_->map(uri, options);
    EXPECT_TRUE(region.ok()) << region.message();
    return region ? std::move(region).value() : Region();
  }
  static std::atomic_ref<uint64_t> word(const Region& region, uint64_t page) {
    return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(region.data() + page * kPage));
  }

  const std::string name_ = Ceph::new_name();
  std::unique_ptr<Runtime> runtime_;
};

TEST_F(RbdCheckpoints, TwoImagesAndMemoryAreHeldAtOneMomentAndComeBack) {
  uint64_t step = 7;
  {
    const Region a = map(uri("a")), b = map(uri("b"));
    std::atomic<bool> is_over{false};
    // Writes a, then b: at no moment is b ahead.
    std::thread writer([&] {
      for (uint64_t i = 1; !is_over; ++i)
        for (uint64_t page = 0; page < kPages && !is_over; page += 17) {
          word(a, page) = i;
          word(b, page) = i;
        }
    });
    for (const char* name : {"one", "two"}) {
      const auto made = checkpoint(name, {a, b, {"step", step}});
      EXPECT_TRUE(made.ok()) << made.message();
      ++step;
    }
    is_over = true;
    writer.join();
    EXPECT_EQ(checkpoint("one", {a, b}).code(), EEXIST);
    EXPECT_EQ(restart(uri("a")).code(), EBUSY) << "a region is mapped";
  }
  const auto all = list_checkpoints(uri("a"));
  ASSERT_TRUE(all.ok()) << all.message();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ(all->front().name, "one");
  EXPECT_EQ(all->front().size_bytes, 2 * kSize + sizeof step);

  const auto last = restart(uri("a"), "one");
  ASSERT_TRUE(last.ok()) << last.message();
  EXPECT_EQ(last->checkpoint().name, "one");
  uint64_t then = 0;
  ASSERT_TRUE(last->read("step", then).ok());
  EXPECT_EQ(then, 7u);
  const Region a = map(last->uri_of(name_ + "a")), b = map(last->uri_of(name_ + "b"));
  const auto at = uri_of_checkpoint(uri("a"), "one", name_ + "b");
  ASSERT_TRUE(at.ok()) << at.message();
  const Region held = map(at.value(), Access::kReadOnly);
  for (uint64_t page = 0; page < kPages; ++page) {
    const uint64_t of_a = word(a, page), of_b = word(b, page);
    EXPECT_TRUE(of_a == of_b || of_a == of_b + 1) << page << ": " << of_a << ", " << of_b;
    EXPECT_EQ(of_b, word(held, page));
  }
  const auto damaged = verify_checkpoints(uri("a"));
  ASSERT_TRUE(damaged.ok()) << damaged.message();
  EXPECT_TRUE(damaged->empty());
}

TEST_F(RbdCheckpoints, AreClonedRemovedAndGone) {
  {
    const Region a = map(uri("a"));
    word(a, 3) = 33;
    ASSERT_TRUE(checkpoint("first", {a}).ok());
    word(a, 3) = 44;
  }
  const std::string place = "rbd://data/" + name_ + "c";
  ASSERT_EQ(clone_checkpoint(uri("a"), "first", name_ + "a", place).message(), "");
  EXPECT_EQ(clone_checkpoint(uri("a"), "first", name_ + "a", place).code(), EEXIST);
  EXPECT_EQ(clone_checkpoint(uri("a"), "first", name_ + "a", "rbd://other/x").code(), EXDEV);
  ASSERT_EQ(remove_checkpoints(uri("a"), {"first"}).message(), "");
  EXPECT_EQ(restart(uri("a")).code(), ENOENT);
  {
    const Region c = map(uri("c"));
    EXPECT_EQ(word(c, 3).load(), 33u) << "the snapshot went before its clone";
    EXPECT_TRUE(list_checkpoints(uri("c"))->empty()) << "its original's";
    word(c, 3) = 55;
    const Region a = map(uri("a"));
    EXPECT_EQ(word(a, 3).load(), 44u);
  }
  EXPECT_EQ(remove_store(uri("c")).message(), "");
}

TEST_F(RbdCheckpoints, ARegionOfAFileIsCopiedBesideTheImageAndOnlyWhatDiffers) {
  const scene::Folder folder;
  const Region a = map(uri("a")), file = map("file:" + folder.path() + "/f");
  for (uint64_t page = 0; page < kPages; ++page) word(file, page) = page + 1;
  EXPECT_EQ(checkpoint("none", {a, file}).code(), EINVAL) << "the copy needs a name";
  auto made = checkpoint("first", {a, {file, "the/file"}});
  ASSERT_TRUE(made.ok()) << made.message();
  EXPECT_EQ(made->copied_bytes, kSize);
  word(file, 5) = 55;
  made = checkpoint("second", {a, {file, "the/file"}});
  ASSERT_TRUE(made.ok()) << made.message();
  EXPECT_EQ(made->copied_bytes, kPage);
  for (const auto& [name, value] : {std::pair{"first", 6u}, {"second", 55u}}) {
    const auto at = uri_of_checkpoint(uri("a"), name, "the/file");
    ASSERT_TRUE(at.ok()) << at.message();
    EXPECT_EQ(word(map(at.value(), Access::kReadOnly), 5).load(), value);
  }
}

TEST_F(RbdCheckpoints, ThemselvesEverySoOftenAndOnlyTheLastOnesAreKept) {
  {
    const Region a = map(uri("a"));
    PeriodicOptions options;
    options.every_ms = 20;
    options.keep.last = 2;
    std::atomic<int> told{0};
    Status trouble;
    options.told = [&](const Result<CheckpointReport>& made) {
      if (!made) trouble = made.status();
      ++told;
      told.notify_all();
    };
    auto periodic = PeriodicCheckpoints::start({a}, options);
    ASSERT_TRUE(periodic.ok()) << periodic.message();
    for (int seen = 0; seen < 4; seen = told) {
      word(a, static_cast<uint64_t>(seen)) = 1;
      told.wait(seen);
    }
    EXPECT_TRUE(periodic->end().ok()) << periodic->end().message();
    EXPECT_EQ(trouble.message(), "");
  }
  EXPECT_EQ(list_checkpoints(uri("a"))->size(), 2u);
}

TEST_F(RbdCheckpoints, AreMeasuredOnAnImageThatIsNotThere) {
  const auto bench = [&](const std::string& image) {
    const std::string words = " bench checkpoint --size 16M --between 0.1 --json --store '";
    std::FILE* const out =
        ::popen((scene::command_path() + words + uri(image) + "' 2>&1").c_str(), "r");
    std::string said;
    for (int c = std::fgetc(out); c != EOF; c = std::fgetc(out)) said += static_cast<char>(c);
    return std::pair{::pclose(out), said};
  };
  const auto [status, said] = bench("measured");
  EXPECT_EQ(status, 0) << said;
  EXPECT_THAT(said, HasSubstr("first checkpoint, of plain writes to an image"));
  EXPECT_THAT(said, HasSubstr("random writes with ten checkpoints held, of a plain image"));
  for (const char* image : {"measured", "measured.plain", "measured.floor"})
    EXPECT_EQ(open_store(uri(image)).code(), ENOENT) << image;
  (void)map(uri("a"));  // somebody's
  const auto [refused, why] = bench("a");
  EXPECT_NE(refused, 0);
  EXPECT_THAT(why, HasSubstr("is there, and may be somebody's: name another with --store"));
  EXPECT_TRUE(open_store(uri("a")).ok());
}

TEST_F(RbdCheckpoints, AnImageThatIsHalfRolledBackDoesNotOpen) {
  {
    const Region a = map(uri("a"));
    word(a, 0) = 1;
    ASSERT_TRUE(checkpoint("first", {a}).ok());
    word(a, 0) = 2;
  }
  {
    OpenOptions options;
    options.is_writable = true;
    const auto store = open_store(uri("a"), options);
    ASSERT_TRUE(store.ok()) << store.message();
    ASSERT_EQ(store.value()->snapshots()->note(
                  "rolling_back", store.value()->identity() + "\nrbd://data/x 1 ('first')"),
              0);
  }
  MapOptions options;
  options.access = Access::kReadWrite;
  const auto refused = runtime_->map(uri("a"), options);
  EXPECT_EQ(refused.code(), EBUSY);
  EXPECT_THAT(refused.message(), HasSubstr("rolled back"));
  ASSERT_EQ(roll_back(uri("a"), "first").message(), "");
  EXPECT_EQ(word(map(uri("a")), 0).load(), 1u);
}

}  // namespace
}  // namespace outcore::rbd_test
