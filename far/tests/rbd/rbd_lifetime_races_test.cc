// Lifetimes of images when several are at them at once: openers, readers, whoever gives them back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <new>
#include <thread>
#include <vector>

#include "core/tests/store/store_case.h"
#include "far/store/rbd_connection.h"
#include "far/store/rbd_reclaim.h"
#include "far/tests/rbd/lifetime_notes.h"
#include "outcore/store_catalog.h"

namespace outcore::rbd_test {
namespace {

using store_test::Bytes;

class RbdLifetimeRaces : public testing::Test {
 protected:
  void SetUp() override { OUTCORE_NEEDS_CEPH(); }
  std::string uri(const std::string& more = {}) const { return Ceph::instance().uri(name_, more); }
  std::string small(const std::string& end, const std::string& more = {}) const {
    return "rbd://small/" + name_ + end + "?conf=" + Ceph::instance().conf() + more;
  }
  std::string image() const { return "data/" + name_; }
  static Result<std::shared_ptr<Store>> open(const std::string& at, uint64_t size_bytes = kMiB) {
    OpenOptions options;
    options.is_writable = options.may_create = true;
    options.size_bytes = size_bytes;
    return open_store(at, options);
  }
  static std::shared_ptr<Store> make(const std::string& at) {
    auto store = open(at);
    EXPECT_TRUE(store.ok()) << store.message();
    return store.ok() ? store.value() : nullptr;
  }
  // Until it is so, or too late.
  template <typename Condition>
  static bool comes_true(const Condition& is_so) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(40);
    while (std::chrono::steady_clock::now() < until) {
      if (is_so()) return true;
      std::this_thread::yield();
    }
    return false;
  }

  const std::string name_ = Ceph::new_name();
};

TEST_F(RbdLifetimeRaces, AnErrandThatThrowsIsTriedAgain) {
  make(uri());
  const auto library = store::RbdLibrary::load();
  ASSERT_TRUE(library.ok()) << library.message();
  store::RbdAccess access;
  access.conf = Ceph::instance().conf();
  const auto connection = store::RbdConnection::open(*library.value(), access, "data", "", "test");
  ASSERT_TRUE(connection.ok()) << connection.message();
  store::RbdImage opened{library.value(), connection.value()->pool(), nullptr, {}};
  ASSERT_EQ(library.value()->rbd_open(opened.pool, name_.c_str(), &opened.image, nullptr), 0);
  char id[256] = {};
  ASSERT_EQ(library.value()->rbd_get_id(opened.image, id, sizeof id), 0);
  opened.id = id;
  {
    store::RbdLifetime lifetime;
    std::atomic<int> runs{0};
    const Status begun = lifetime.begin(opened, 1000, "test", [&](const std::atomic<uint32_t>&) {
      if (++runs < 3) throw std::bad_alloc();
    });
    EXPECT_TRUE(begun.ok()) << begun.message();
    EXPECT_TRUE(comes_true([&] { return runs == 3; }));
    lifetime.end();
  }
  library.value()->rbd_close(opened.image);
}

TEST_F(RbdLifetimeRaces, AShorterLifetimeIsRenewedInItsOwnTime) {
  const auto store = make(uri("&lifetime=2h"));
  make(uri("&lifetime=1min"));
  ASSERT_EQ(store->snapshots()->note("lifetime", expired(lifetime_of(*store))), 0);
  EXPECT_TRUE(
      comes_true([&] { return lifetime_of(*store).find("until=1,") == std::string::npos; }));
}

TEST_F(RbdLifetimeRaces, WhoseLifetimeBecameNoneLeavesTheNoteAlone) {
  std::string note;
  {
    const auto store = make(uri("&lifetime=2h"));
    note = lifetime_of(*store);
    make(uri("&lifetime=0"));
    EXPECT_EQ(lifetime_of(*store), "");
    ASSERT_EQ(store->snapshots()->note("lifetime", note), 0);
  }
  EXPECT_EQ(lifetime_of(*open_store(uri()).value()), note);
}

TEST_F(RbdLifetimeRaces, AReaderHoldsAnImageThatGotItsLifetimeLater) {
  make(uri());
  auto reader = open_store(uri());
  ASSERT_TRUE(reader.ok()) << reader.message();
  make(uri("&lifetime=1h"));
  expire(uri(), image());
  EXPECT_EQ(remove_store(uri(), true).code(), EBUSY);
  reader.value().reset();
  EXPECT_EQ(remove_store(uri(), true).message(), "");
}

TEST_F(RbdLifetimeRaces, WhoWasNotSeenIsToldThatTheImageHasGone) {
  for (const char* end : {"going", "gone"}) {
    const Bytes bytes(4096, std::byte{7});
    {
      const auto writer = make(uri("&lifetime=1h"));
      EXPECT_EQ(writer->write(0, bytes), 0);
    }
    const auto reader = open_store(uri("&id=reader"));
    ASSERT_TRUE(reader.ok()) << reader.message();
    const std::string note = lifetime_of(*open_store(uri()).value());
    expire(uri(), image());
    if (std::string(end) == "gone")
      EXPECT_EQ(remove_store(uri(), true).message(), "");
    else
      set_lifetime(image(), "going" + note.substr(note.find(",image=")));
    Bytes back(4096);
    EXPECT_EQ(reader.value()->read(0, back), -ESTALE) << end;
    EXPECT_EQ(reader.value()->read(0, back), -ESTALE) << end;
  }
}

TEST_F(RbdLifetimeRaces, WhoOnlyLooksWhetherItMayGoKeepsNobodyFromWriting) {
  make(uri("&lifetime=1h"));
  EXPECT_EQ(Ceph::instance().tell("rbd snap create " + image() + "@mine"), "");
  std::atomic<bool> is_over{false};
  std::thread looker([&] {
    while (!is_over)
      EXPECT_THAT(remove_store(uri(), true).code(), testing::AnyOf(EBUSY, ENOENT, ENOTEMPTY));
  });
  for (int round = 0; round < 6; ++round) {
    expire(uri(), image());
    make(uri());
  }
  is_over = true;
  looker.join();
}

TEST_F(RbdLifetimeRaces, AResizeWithoutSpaceStartsWhatGivesItBack) {
  {  // without a lifetime, whose thread would look at the others, too
    const auto old = make(small("old"));
    const std::string id = old->identity();
    const size_t from = id.rfind('/') + 1;
    ASSERT_EQ(old->snapshots()->note(
                  "lifetime", "60000ms,until=1,image=" + id.substr(from, id.size() - from - 1)),
              0);
  }
  const auto store = make(small(""));
  EXPECT_EQ(store->resize(1 << 30), -ENOSPC);
  // Whoever opened it to see whether it is still there would keep it from being given back.
  const auto library = store::RbdLibrary::load();
  ASSERT_TRUE(library.ok()) << library.message();
  store::RbdAccess access;
  access.conf = Ceph::instance().conf();
  const auto connection = store::RbdConnection::open(*library.value(), access, "small", "", "test");
  ASSERT_TRUE(connection.ok()) << connection.message();
  const store::RbdReclaim reclaim(*library.value(), *connection.value());
  EXPECT_TRUE(comes_true([&] {
    std::vector<store::RbdReclaim::Image> images;
    return reclaim.list(&images) == 0 &&
           std::none_of(images.begin(), images.end(),
                        [&](const auto& one) { return one.name == name_ + "old"; });
  }));
}

// One pass at a time: who finds another at it waits for what that gives back.
TEST_F(RbdLifetimeRaces, OneThreadOfAProcessGivesBackAPoolAtATime) {
  make(uri("&lifetime=1h"));
  expire(uri(), image());
  const auto library = store::RbdLibrary::load();
  ASSERT_TRUE(library.ok()) << library.message();
  store::RbdAccess access;
  access.conf = Ceph::instance().conf();
  const auto connection = store::RbdConnection::open(*library.value(), access, "data", "", "test");
  ASSERT_TRUE(connection.ok()) << connection.message();
  std::atomic<int> passes{0}, others{0}, ready{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      const store::RbdReclaim reclaim(*library.value(), *connection.value());
      store::RbdReclaim::Outcome outcome;
      for (++ready; ready < 4;) std::this_thread::yield();
      const int error = reclaim.run(std::atomic<uint32_t>(0), &outcome);
      if (error == 0) ++passes;
      if (error == -EALREADY) ++others;
    });
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(passes + others, 4);
  EXPECT_GE(passes, 1);
  EXPECT_GE(others, 1);
  EXPECT_EQ(open_store(uri()).code(), ENOENT);
}

}  // namespace
}  // namespace outcore::rbd_test
