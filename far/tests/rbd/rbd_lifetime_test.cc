// Lifetimes of images: who is given back, who never, and who sees whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "core/tests/store/store_case.h"
#include "far/tests/rbd/lifetime_notes.h"
#include "outcore/checkpoint.h"
#include "outcore/runtime.h"
#include "outcore/store_catalog.h"

namespace outcore::rbd_test {
namespace {

using store_test::Bytes;
using testing::AllOf;
using testing::HasSubstr;

class RbdLifetime : public testing::Test {
 protected:
  void SetUp() override { OUTCORE_NEEDS_CEPH(); }
  std::string uri(const std::string& end, const std::string& more = {}) const {
    return Ceph::instance().uri(name_ + end, more);
  }
  std::string image(const std::string& end) const { return "data/" + name_ + end; }
  static std::shared_ptr<Store> make(const std::string& at, uint64_t size_bytes = kMiB) {
    OpenOptions options;
    options.is_writable = options.may_create = true;
    options.size_bytes = size_bytes;
    auto store = open_store(at, options);
    EXPECT_TRUE(store.ok()) << store.message();
    return store.ok() ? store.value() : nullptr;
  }
  static StoreInfo info(const std::string& pool, const std::string& name) {
    const auto all = list_stores("rbd://" + pool + "/?conf=" + Ceph::instance().conf());
    EXPECT_TRUE(all.ok()) << all.message();
    if (all.ok())
      for (const StoreInfo& one : all.value())
        if (one.name == name) return one;
    return {};
  }
  StoreInfo info(const std::string& end) const { return info("data", name_ + end); }

  const std::string name_ = Ceph::new_name();
};

TEST_F(RbdLifetime, OnlyWhoseTimeIsOverIsGivenBack) {
  make(uri("a", "&lifetime=1h"));
  make(uri("b"));
  make(uri("c", "&lifetime=1h"));
  EXPECT_EQ(info("a").lifetime_ms, 3'600'000u);
  EXPECT_FALSE(info("a").is_expired);
  EXPECT_EQ(remove_store(uri("a"), true).code(), ENOENT);
  expire(uri("a"), image("a"));
  EXPECT_TRUE(info("a").is_expired);
  EXPECT_EQ(info("b").lifetime_ms, 0u);
  EXPECT_EQ(remove_store(uri("a"), true).message(), "");
  EXPECT_EQ(info("a").name, "");
  const Status refused = remove_store(uri("b"), true);
  EXPECT_EQ(refused.code(), ENOENT);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr(name_ + "b"), HasSubstr("lifetime is not over")));
  EXPECT_EQ(remove_store(uri("c"), true).code(), ENOENT);
  EXPECT_EQ(info("c").name, name_ + "c");
}

TEST_F(RbdLifetime, AnImageOfManyObjectsGoesInSteps) {
  make(uri("", "&lifetime=1h&order=12"), ((16 << 10) + 1) * 4096);
  expire(uri(""), image(""));
  EXPECT_EQ(remove_store(uri(""), true).message(), "");
  EXPECT_EQ(info("").name, "");
}

TEST_F(RbdLifetime, TheNextWriterOfThePoolGivesBackWhatIsOver) {
  const std::string tail = "?conf=" + Ceph::instance().conf();
  const std::string old = "rbd://small/" + name_ + "old" + tail;
  make(old);  // without one nobody looks at the others
  {
    const auto store = make(old);
    const std::string id = store->identity();
    const size_t from = id.rfind('/') + 1;
    ASSERT_EQ(store->snapshots()->note(
                  "lifetime", "60000ms,until=1,image=" + id.substr(from, id.size() - from - 1)),
              0);
  }
  ASSERT_TRUE(info("small", name_ + "old").is_expired);
  const auto next = make("rbd://small/" + name_ + "next" + tail + "&lifetime=1h");
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!info("small", name_ + "old").name.empty() && std::chrono::steady_clock::now() < until)
    std::this_thread::yield();
  EXPECT_EQ(info("small", name_ + "old").name, "");
  EXPECT_EQ(info("small", name_ + "next").name, name_ + "next");
}

TEST_F(RbdLifetime, WhoLacksSpaceGivesBackWhatIsOver) {
  const std::string tail = "?conf=" + Ceph::instance().conf();
  const std::string old = "rbd://small/" + name_ + tail;
  make(old + "&lifetime=1h");
  expire(old, "small/" + name_);
  OpenOptions options;
  options.is_writable = options.may_create = true;
  options.size_bytes = 1 << 30;
  EXPECT_EQ(open_store("rbd://small/" + name_ + "large" + tail, options).code(), ENOSPC);
  EXPECT_EQ(info("small", name_).name, "");
}

TEST_F(RbdLifetime, WhatSomebodyHasOpenStaysAndIsCountedFromItsClose) {
  {
    const auto writer = make(uri("", "&lifetime=1h"));
    ASSERT_EQ(writer->snapshots()->note("lifetime", expired(lifetime_of(*writer))), 0);
    const Status refused = remove_store(uri(""), true);
    EXPECT_EQ(refused.code(), EBUSY);
    EXPECT_THAT(refused.message(), HasSubstr("somebody has it open"));
    EXPECT_THAT(writer->remark(), HasSubstr("given back 1h after its last use"));
  }
  EXPECT_FALSE(info("").is_expired) << "renewed at the close";
  auto reader = open_store(uri(""));
  ASSERT_TRUE(reader.ok()) << reader.message();
  set_lifetime(image(""), expired(lifetime_of(*reader.value())));
  EXPECT_EQ(remove_store(uri(""), true).code(), EBUSY);
  reader.value().reset();
  make(uri(""));  // as it was noted
  EXPECT_FALSE(info("").is_expired);
  make(uri("", "&lifetime=0"));
  EXPECT_EQ(info("").lifetime_ms, 0u);
}

TEST_F(RbdLifetime, WhoMayOnlyReadReadsWhatHasOne) {
  const Bytes bytes(4096, std::byte{7});
  EXPECT_EQ(make(uri("", "&lifetime=1h&id=tenant"))->write(0, bytes), 0);
  const auto reader = open_store(uri("", "&id=reader"));
  ASSERT_TRUE(reader.ok()) << reader.message();
  Bytes back(4096);
  EXPECT_EQ(reader.value()->read(0, back), 0);
  EXPECT_TRUE(back == bytes);
  const auto all = list_stores("rbd://data?id=reader&conf=" + Ceph::instance().conf());
  ASSERT_TRUE(all.ok()) << all.message();
  for (const StoreInfo& one : all.value()) EXPECT_TRUE(one.name != name_ || one.damage.empty());
}

TEST_F(RbdLifetime, WhatIsGoingIsNotOpenedAndItsNameIsFree) {
  const Bytes bytes(4096, std::byte{7});
  std::string id;
  {
    const auto store = make(uri("", "&lifetime=1h"));
    EXPECT_EQ(store->write(0, bytes), 0);
    const std::string note = lifetime_of(*store);
    id = note.substr(note.find(",image=") + 7);
  }
  set_lifetime(image(""), "going,image=" + id);
  const auto refused = open_store(uri(""));
  EXPECT_EQ(refused.code(), ENOENT);
  EXPECT_THAT(refused.message(), HasSubstr("its lifetime is over"));
  const auto store = make(uri(""));
  ASSERT_NE(store, nullptr);
  Bytes back(4096, std::byte{1});
  EXPECT_EQ(store->read(0, back), 0);
  EXPECT_TRUE(back == Bytes(4096)) << "a new image";
  const std::string retired = "outcore.going." + id;
  EXPECT_TRUE(info("data", retired).is_expired);
  EXPECT_EQ(
      remove_store("rbd://data/" + retired + "?conf=" + Ceph::instance().conf(), true).message(),
      "");
  EXPECT_EQ(info("data", retired).name, "");
  EXPECT_EQ(info("").name, name_);
}

TEST_F(RbdLifetime, ACopyDoesNotHaveItNorDoesWhatCannotBeRead) {
  make(uri("", "&lifetime=1h"));
  EXPECT_EQ(Ceph::instance().tell("rbd cp " + image("") + " " + image("copy")), "");
  expire(uri(""), image(""));
  EXPECT_EQ(remove_store(uri("copy"), true).code(), ENOENT);
  EXPECT_EQ(info("copy").lifetime_ms, 0u);
  set_lifetime(image("copy"), "soon");
  EXPECT_THAT(info("copy").damage, HasSubstr("outcore.lifetime"));
  EXPECT_EQ(remove_store(uri("copy"), true).code(), ENOENT);
}

TEST_F(RbdLifetime, CheckpointsThatAreKeptHoldTheirImages) {
  {
    RuntimeOptions runtime_options;
    runtime_options.budget_bytes = 16 << 20;
    auto runtime = Runtime::start(runtime_options);
    ASSERT_TRUE(runtime.ok()) << runtime.message();
    MapOptions options;
    options.access = Access::kReadWrite;
    options.size_bytes = kMiB;
    options.may_create = true;
    const auto a = runtime->map(uri("a", "&lifetime=1h"), options);
    const auto b = runtime->map(uri("b", "&lifetime=1h"), options);
    ASSERT_TRUE(a.ok() && b.ok()) << a.message() << b.message();
    uint64_t step = 1;
    const auto made = checkpoint("one", {a.value(), b.value(), {"step", step}});
    ASSERT_TRUE(made.ok()) << made.message();
  }
  EXPECT_EQ(info("a.step").lifetime_ms, 3'600'000u) << "a copy has its anchor's";
  expire(uri("b"), image("b"));
  EXPECT_EQ(remove_store(uri("b"), true).code(), ENOTEMPTY);
  for (const char* end : {"a", "a.step"}) expire(uri(end), image(end));
  for (const char* end : {"b", "a", "a.step"})
    EXPECT_EQ(remove_store(uri(end), true).message(), "") << end;

  make(uri("c", "&lifetime=1h"));
  EXPECT_EQ(Ceph::instance().tell("rbd snap create " + image("c") + "@mine"), "");
  expire(uri("c"), image("c"));
  EXPECT_EQ(remove_store(uri("c"), true).code(), ENOTEMPTY) << "a snapshot of somebody's own";
  EXPECT_TRUE(info("c").is_expired);
}

TEST(RbdUri, ALifetimeThatIsNoneIsRefused) {
  for (const char* lifetime : {"1s", "soon", "11000d"}) {
    const auto store = open_store("rbd://pool/a?lifetime=" + std::string(lifetime));
    EXPECT_EQ(store.code(), EINVAL) << lifetime;
    EXPECT_THAT(store.message(), HasSubstr("lifetime")) << lifetime;
  }
}

}  // namespace
}  // namespace outcore::rbd_test
