// Checkpoints that are snapshots of several stores: whole or absent, wherever their maker dies.
#include "checkpoints/store/snapshot_catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "checkpoints/tests/capture/snapshot_system.h"

namespace outcore::checkpoints_test {
namespace {

using store::SnapshotCatalog;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SnapshotCheckpoints : public testing::Test {
 protected:
  SnapshotCheckpoints() {
    for (const char* place : {"test://a", "test://b"}) system_.images[place].bytes.resize(64);
  }
  SnapshotCatalog catalog() {
    auto opened = SnapshotCatalog::open("test://a", true, opener());
    EXPECT_TRUE(opened.ok()) << opened.message();
    return std::move(opened).value();
  }
  SnapshotCatalog::Open opener() {
    return [this](const std::string& uri, const OpenOptions& options) {
      return system_.open(uri, options);
    };
  }
  void fill(uint8_t value) {
    for (auto& [place, image] : system_.images)
      std::fill(image.bytes.begin(), image.bytes.end(), std::byte{value});
  }
  Status make(const std::string& name) {
    SnapshotCatalog on = catalog();
    auto b = system_.open("test://b", {});
    const std::vector<SnapshotCatalog::Member> members = {{"a", &on.anchor()},
                                                          {"b", b.value().get()}};
    return on.add(name, "", members).status();
  }
  std::vector<std::string> names() {
    std::vector<std::string> all;
    const auto entries = catalog().list();
    EXPECT_TRUE(entries.ok()) << entries.message();
    for (const auto& entry : entries.value()) all.push_back(entry.name);
    return all;
  }
  // Every checkpoint has all its bytes, each its value.
  void expect_whole(const std::map<std::string, uint8_t>& values) {
    const SnapshotCatalog on = catalog();
    const auto entries = on.list();
    ASSERT_TRUE(entries.ok()) << entries.message();
    for (const auto& entry : entries.value())
      for (const auto& object : entry.objects) {
        const auto store = system_.open(on.uri_of(entry, object), {});
        ASSERT_TRUE(store.ok()) << entry.name << ": " << store.message();
        std::vector<std::byte> bytes(store.value()->size_bytes());
        ASSERT_EQ(store.value()->read(0, bytes), 0);
        EXPECT_EQ(bytes, std::vector<std::byte>(64, std::byte{values.at(entry.name)}));
      }
    const auto damaged = on.verify();
    ASSERT_TRUE(damaged.ok()) << damaged.message();
    EXPECT_TRUE(damaged->empty());
  }
  size_t snapshots() const {
    size_t count = 0;
    for (const auto& [place, image] : system_.images) count += image.snapshots.size();
    return count;
  }

  SnapshotSystem system_;
};

TEST_F(SnapshotCheckpoints, AreListedRenamedClonedAndRemoved) {
  fill(1);
  ASSERT_TRUE(make("first").ok());
  fill(2);
  ASSERT_TRUE(make("se/c@nd \xff").ok()) << "any bytes make a name";
  EXPECT_THAT(names(), ElementsAre("first", "se/c@nd \xff"));
  expect_whole({{"first", 1}, {"se/c@nd \xff", 2}});
  EXPECT_EQ(make("first").code(), EEXIST);
  EXPECT_EQ(make("").code(), EINVAL);
  SnapshotCatalog on = catalog();
  EXPECT_EQ(on.rename("first", "se/c@nd \xff").code(), EEXIST);
  ASSERT_TRUE(on.rename("first", "one").ok());
  const auto missing = on.find("onee");
  EXPECT_EQ(missing.code(), ENOENT);
  EXPECT_THAT(missing.message(), HasSubstr("did you mean 'one'"));
  ASSERT_TRUE(on.clone("one", "b", "test://c").ok());
  EXPECT_EQ(system_.images.at("test://c").bytes, std::vector<std::byte>(64, std::byte{1}));
  EXPECT_EQ(on.clone("one", "none", "test://d").code(), ENOENT);
  EXPECT_EQ(on.remove({"one", "none"}).code(), ENOENT) << "none, if one is wrong";
  EXPECT_EQ(names().size(), 2u);
  ASSERT_TRUE(on.remove({"one", "se/c@nd \xff"}).ok());
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_EQ(snapshots(), 0u);
}

TEST_F(SnapshotCheckpoints, AreWholeOrAbsentWhereverTheirMakerDies) {
  for (const bool is_done : {false, true}) {
    for (uint64_t steps = 1;; ++steps) {
      system_ = SnapshotSystem();
      system_.is_last_step_done = is_done;
      for (const char* place : {"test://a", "test://b"}) system_.images[place].bytes.resize(64);
      fill(1);
      ASSERT_TRUE(make("first").ok());
      fill(2);
      system_.steps_left = steps;
      const bool is_made = make("second").ok();
      system_.steps_left = UINT64_MAX;
      expect_whole({{"first", 1}, {"second", 2}});
      const auto there = names();
      if (is_made) {
        EXPECT_EQ(there.size(), 2u);
      }
      fill(3);
      ASSERT_TRUE(make("third").ok()) << "after " << steps << " steps";
      expect_whole({{"first", 1}, {"second", 2}, {"third", 3}});
      EXPECT_EQ(snapshots(), 2 * names().size()) << "left over after " << steps << " steps";
      if (is_made) break;
      ASSERT_LT(steps, 100u);
    }
  }
}

TEST_F(SnapshotCheckpoints, AreWholeOrAbsentWhereverTheirRemovalDies) {
  for (uint64_t steps = 1;; ++steps) {
    system_ = SnapshotSystem();
    for (const char* place : {"test://a", "test://b"}) system_.images[place].bytes.resize(64);
    fill(1);
    ASSERT_TRUE(make("first").ok());
    fill(2);
    ASSERT_TRUE(make("second").ok());
    system_.steps_left = steps;
    const bool is_removed = catalog().remove({"first", "second"}).ok();
    system_.steps_left = UINT64_MAX;
    expect_whole({{"first", 1}, {"second", 2}});
    fill(3);
    ASSERT_TRUE(make("third").ok());
    EXPECT_EQ(snapshots(), 2 * names().size()) << "left over after " << steps << " steps";
    if (is_removed) break;
    ASSERT_LT(steps, 100u);
  }
}

TEST_F(SnapshotCheckpoints, ARollBackThatDiesIsMarkedUntilItIsDone) {
  for (uint64_t steps = 1;; ++steps) {
    system_ = SnapshotSystem();
    for (const char* place : {"test://a", "test://b"}) system_.images[place].bytes.resize(64);
    fill(1);
    ASSERT_TRUE(make("first").ok());
    fill(2);
    system_.steps_left = steps;
    const bool is_back = catalog().roll_back("first").ok();
    system_.steps_left = UINT64_MAX;
    for (const auto& [place, image] : system_.images) {
      const bool is_old = image.bytes == std::vector<std::byte>(64, std::byte{2});
      const bool is_new = image.bytes == std::vector<std::byte>(64, std::byte{1});
      const bool is_marked = image.notes.contains(store::kRollingBackNote);
      EXPECT_TRUE(is_old || is_new || is_marked) << place << " after " << steps << " steps";
      EXPECT_FALSE(is_back && (is_marked || !is_new));
    }
    // One that is back, beside one that is not, is marked.
    const auto& a = system_.images.at("test://a");
    const auto& b = system_.images.at("test://b");
    const bool any_marked =
        a.notes.contains(store::kRollingBackNote) || b.notes.contains(store::kRollingBackNote);
    EXPECT_TRUE(a.bytes == b.bytes || any_marked) << "after " << steps << " steps";
    ASSERT_TRUE(catalog().roll_back("first").ok());
    for (const auto& [place, image] : system_.images) {
      EXPECT_EQ(image.bytes, std::vector<std::byte>(64, std::byte{1}));
      EXPECT_FALSE(image.notes.contains(store::kRollingBackNote));
    }
    if (is_back) break;
    ASSERT_LT(steps, 100u);
  }
}

TEST_F(SnapshotCheckpoints, ASnapshotThatIsGoneIsNamedAndNothingIsChanged) {
  fill(1);
  ASSERT_TRUE(make("first").ok());
  fill(2);
  system_.images.at("test://b").snapshots.clear();
  SnapshotCatalog on = catalog();
  const auto damaged = on.verify();
  ASSERT_TRUE(damaged.ok());
  ASSERT_EQ(damaged->size(), 1u);
  EXPECT_EQ(damaged->front().object, "b");
  EXPECT_THAT(on.roll_back("first").message(), HasSubstr("is gone"));
  EXPECT_EQ(system_.images.at("test://a").bytes, std::vector<std::byte>(64, std::byte{2}));
}

TEST_F(SnapshotCheckpoints, WhatIsHalfRolledBackIsNotHeldAndItsCheckpointNotRemoved) {
  fill(1);
  ASSERT_TRUE(make("first").ok());
  fill(2);
  system_.steps_left = 3;  // two marks, and in the middle of the first roll-back
  EXPECT_FALSE(catalog().roll_back("first").ok());
  system_.steps_left = UINT64_MAX;
  EXPECT_EQ(make("mixed").code(), EBUSY);
  EXPECT_EQ(catalog().remove({"first"}).code(), EBUSY);
  ASSERT_TRUE(catalog().roll_back("first").ok());
  EXPECT_TRUE(make("second").ok());
  EXPECT_TRUE(catalog().remove({"first"}).ok());
}

TEST_F(SnapshotCheckpoints, AnotherStoreOfTheCopysNameIsLeftAlone) {
  fill(7);
  EXPECT_EQ(catalog().open_copy("test://b", "b", 8).code(), EEXIST);
  EXPECT_EQ(system_.images.at("test://b").bytes, std::vector<std::byte>(64, std::byte{7}));
  ASSERT_TRUE(catalog().open_copy("test://a.x", "x", 8).ok());
  EXPECT_TRUE(catalog().open_copy("test://a.x", "x", 16).ok());
  EXPECT_EQ(catalog().open_copy("test://a.x", "y", 8).code(), EEXIST);
}

TEST_F(SnapshotCheckpoints, NotesOfAnotherStoreAreNotOurs) {
  fill(1);
  ASSERT_TRUE(make("first").ok());
  system_.images["test://c"] = system_.images.at("test://a");  // as rbd cp does
  auto copy = SnapshotCatalog::open("test://c", true, opener());
  ASSERT_TRUE(copy.ok()) << copy.message();
  EXPECT_TRUE(copy->list()->empty());
}

TEST_F(SnapshotCheckpoints, ANoteThatIsDamagedOrNewerIsSaid) {
  system_.images.at("test://a").notes["checkpoint.1"] = "{\"version\": 1";
  EXPECT_THAT(catalog().list().message(), HasSubstr("damaged"));
  system_.images.at("test://a").notes["checkpoint.1"] = "{\"version\": 2}";
  EXPECT_THAT(catalog().list().message(), HasSubstr("newer"));
}

}  // namespace
}  // namespace outcore::checkpoints_test
