// What is special about rbd:// stores: images that are made and found again, what does not fit,
// what is refused, snapshots, forks.
#include "far/store/rbd_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "core/tests/store/store_case.h"
#include "far/tests/rbd/ceph.h"
#include "outcore/store_catalog.h"

namespace outcore::rbd_test {
namespace {

using store_test::Bytes;
using store_test::random_bytes;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

OpenOptions writable(uint64_t size_bytes = 0) {
  OpenOptions options;
  options.is_writable = true;
  options.size_bytes = size_bytes;
  options.may_create = size_bytes != 0;
  return options;
}

class RbdStore : public testing::Test {
 protected:
  void SetUp() override { OUTCORE_NEEDS_CEPH(); }
  static std::shared_ptr<Store> open(const std::string& uri, const OpenOptions& options = {}) {
    auto store = open_store(uri, options);
    EXPECT_TRUE(store.ok()) << store.message();
    return store.ok() ? store.value() : nullptr;
  }
  // What open_store says, in one line, within the seconds.
  static Error failure(const std::string& uri, const OpenOptions& options,
                       double seconds_max = 10) {
    const auto began = std::chrono::steady_clock::now();
    const auto store = open_store(uri, options);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    EXPECT_FALSE(store.ok()) << uri;
    EXPECT_LT(took.count(), seconds_max) << uri;  // banned-ok: the bound is the promise
    if (store.ok()) return {};
    EXPECT_THAT(store.message(), Not(HasSubstr("\n")));
    return store.error();
  }
  const std::string name_ = Ceph::new_name();
};

TEST_F(RbdStore, AnImageIsMadeAndItsBytesAreThereWhenItIsOpenedAgain) {
  const std::string uri = Ceph::instance().uri(name_);
  const Bytes bytes = random_bytes(300'000, 1);
  {
    const auto store = open(Ceph::instance().uri(name_, "&size=4M&order=18"), writable());
    ASSERT_NE(store, nullptr);
    EXPECT_EQ(store->size_bytes(), 4 * kMiB);
    EXPECT_EQ(store->remark(), "objects of 256 KiB");
    EXPECT_TRUE(store->is_hole(0, kMiB));
    ASSERT_EQ(store->write(200'001, bytes), 0);
    EXPECT_FALSE(store->is_hole(262'144, 4096));
    EXPECT_EQ(store->sync(), 0);
  }
  for (const OpenOptions& options : {OpenOptions{}, writable()}) {
    const auto store = open(uri, options);
    ASSERT_NE(store, nullptr);
    EXPECT_EQ(store->size_bytes(), 4 * kMiB);
    Bytes back(bytes.size());
    EXPECT_EQ(store->read(200'001, back), 0);
    EXPECT_TRUE(back == bytes);
    EXPECT_FALSE(store->is_hole(0, 4096)) << "of an old image nothing is known";
  }
}

TEST_F(RbdStore, AnImageGrowsToTheSizeThatIsAskedForAndKeepsWhatIsThere) {
  { ASSERT_NE(open(Ceph::instance().uri(name_), writable(kMiB)), nullptr); }
  EXPECT_EQ(open(Ceph::instance().uri(name_, "&size=3M"), writable())->size_bytes(), 3 * kMiB);
  EXPECT_EQ(open(Ceph::instance().uri(name_, "&size=2M"), writable())->size_bytes(), 3 * kMiB);
  OpenOptions larger;
  larger.size_bytes = 5 * kMiB;
  EXPECT_EQ(failure(Ceph::instance().uri(name_), larger).code, EINVAL);
}

TEST_F(RbdStore, AnImageIsRemovedUnlessSomebodyHasItOpen) {
  const std::string uri = Ceph::instance().uri(name_);
  auto store = open(uri, writable(kMiB));
  EXPECT_EQ(remove_store(uri).code(), EBUSY);
  store.reset();
  EXPECT_EQ(remove_store(uri + "&size=1M", true).code(), ENOENT);
  const Status removed = remove_store(uri);
  EXPECT_TRUE(removed.ok()) << removed.message();
  EXPECT_EQ(remove_store(uri).code(), ENOENT);
  EXPECT_EQ(failure(uri, {}).code, ENOENT);
  EXPECT_TRUE(list_stores(uri).ok());
}

TEST_F(RbdStore, AReaderIsNotAllowedToWrite) {
  { ASSERT_NE(open(Ceph::instance().uri(name_), writable(kMiB)), nullptr); }
  const auto store = open(Ceph::instance().uri(name_));
  EXPECT_EQ(store->write(0, random_bytes(10, 1)), -EACCES);
  EXPECT_EQ(store->discard(0, 10), -EACCES);
  EXPECT_EQ(store->resize(10), -EACCES);
  EXPECT_EQ(store->sync(), 0);
}

TEST_F(RbdStore, OneProcessSharesTheImageThatItWrites) {
  const auto first = open(Ceph::instance().uri(name_), writable(kMiB));
  EXPECT_EQ(open(Ceph::instance().uri(name_), writable()), first);
  EXPECT_EQ(open(Ceph::instance().uri(name_)), first);
}

TEST_F(RbdStore, WhatDoesNotFitIsRefusedWithTheNumbers) {
  const std::string small = "rbd://small/" + name_ + "?conf=" + Ceph::instance().conf();
  const Error error = failure(small, writable(1 << 30));
  EXPECT_EQ(error.code, ENOSPC);
  EXPECT_THAT(error.message, AllOf(HasSubstr("1 GiB"), HasSubstr("64 MiB"), HasSubstr("quota")));
  const auto store = open(small, writable(kMiB));
  EXPECT_EQ(store->resize(1 << 30), -ENOSPC);
  EXPECT_EQ(store->size_bytes(), kMiB);
}

TEST_F(RbdStore, WhatIsWrongIsSaidInOneLineWithinTheTimeout) {
  const Ceph& ceph = Ceph::instance();
  const std::string tail = "?conf=" + ceph.conf();
  Error error = failure("rbd://dat/x" + tail, writable(kMiB));
  EXPECT_EQ(error.code, ENOENT);
  EXPECT_THAT(error.message, HasSubstr("no pool 'dat' (did you mean 'data'?)"));
  error = failure("rbd://data/nothing" + tail, writable());
  EXPECT_EQ(error.code, ENOENT);
  EXPECT_THAT(error.message, AllOf(HasSubstr("rbd://data/nothing"), HasSubstr("size=")));
  error = failure("rbd://data/x?timeout=2s&mon=127.0.0.1:1&keyring=" + ceph.keyring(), {}, 6);
  EXPECT_EQ(error.code, ETIMEDOUT);
  EXPECT_THAT(error.message, AllOf(HasSubstr("127.0.0.1:1"), HasSubstr("within 2 s")));
  error = failure("rbd://data/x?conf=" + ceph.folder() + "/none", {});
  EXPECT_EQ(error.code, ENOENT);
  EXPECT_THAT(error.message, HasSubstr("/none"));
  error = failure("rbd://data/x" + tail + "&id=nobody", {});
  EXPECT_THAT(error.message, HasSubstr("client.nobody"));
}

TEST_F(RbdStore, AWrongKeyIsRefusedAndNotShown) {
  const Ceph& ceph = Ceph::instance();
  const std::string key = "AQDd0FhnAAAAABAAd2hhdCBldmVyIGl0IGlzPw==";
  const store_test::Folder folder;
  store_test::write_file(folder / "keyring", "[client.admin]\n\tkey = " + key + "\n");
  const Error error = failure(
      "rbd://data/x?timeout=5&mon=" + ceph.monitor() + "&keyring=" + (folder / "keyring"), {});
  EXPECT_EQ(error.code, EACCES) << error.message;
  EXPECT_THAT(error.message, AllOf(HasSubstr("key of client.admin"), Not(HasSubstr(key))));
}

TEST_F(RbdStore, AThickImageHasAllItsSpaceAndAThinOnePromisesNone) {
  const auto thin = open(Ceph::instance().uri(name_), writable(2 * kMiB));
  EXPECT_EQ(thin->reserve(0, 2 * kMiB), -ENOTSUP);
  const std::string thick_name = Ceph::new_name();
  const Bytes bytes = random_bytes(10'000, 2);
  {  // as thin it begins, with holes around what was written
    const auto store = open(Ceph::instance().uri(thick_name), writable(2 * kMiB));
    ASSERT_EQ(store->write(300'000, bytes), 0);
  }
  const auto store = open(Ceph::instance().uri(thick_name, "&thick=yes"), writable());
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->reserve(0, 2 * kMiB), 0);
  Bytes expected(2 * kMiB);
  std::copy(bytes.begin(), bytes.end(), expected.begin() + 300'000);
  Bytes all(2 * kMiB);
  EXPECT_EQ(store->read(0, all), 0);
  EXPECT_TRUE(all == expected);
  ASSERT_EQ(store->discard(5, kMiB), 0);
  uint64_t with_data = 0;
  auto& rbd = dynamic_cast<store::RbdStore&>(*store);
  ASSERT_EQ(rbd.changed_since("", [&](uint64_t, uint64_t size,
                                      bool has_data) { with_data += has_data ? size : 0; }),
            0);
  EXPECT_EQ(with_data, 2 * kMiB);
}

TEST_F(RbdStore, ASnapshotIsReadComparedAndRolledBackTo) {
  const auto opened = open(Ceph::instance().uri(name_), writable(2 * kMiB));
  auto& store = dynamic_cast<store::RbdStore&>(*opened);
  const Bytes before = random_bytes(2 * kMiB, 3);
  ASSERT_EQ(store.write(0, before), 0);
  ASSERT_EQ(store.snapshot("first"), 0);
  EXPECT_EQ(store.snapshot("first"), -EEXIST);
  ASSERT_EQ(store.write(600'064, random_bytes(8192, 4)), 0);
  ASSERT_EQ(store.discard(kMiB, 256 << 10), 0);
  std::vector<std::tuple<uint64_t, uint64_t, bool>> changed;
  ASSERT_EQ(store.changed_since("first",
                                [&](uint64_t offset, uint64_t size, bool has_data) {
                                  changed.emplace_back(offset, size, has_data);
                                }),
            0);
  ASSERT_EQ(changed.size(), 2u);
  EXPECT_LE(std::get<0>(changed[0]), 600'064u);
  EXPECT_LE(std::get<1>(changed[0]), 16384u) << "the bytes, and not the whole object";
  EXPECT_EQ(changed[1], std::make_tuple(kMiB, uint64_t{256 << 10}, false));
  EXPECT_EQ(store.changed_since("none", [](uint64_t, uint64_t, bool) {}), -ENOENT);

  Bytes back(2 * kMiB);
  const auto then = open("rbd://data/" + name_ + "@first?conf=" + Ceph::instance().conf());
  ASSERT_NE(then, nullptr);
  EXPECT_EQ(then->read(0, back), 0);
  EXPECT_TRUE(back == before);
  ASSERT_EQ(store.roll_back("first"), 0);
  std::fill(back.begin(), back.end(), std::byte{0});
  EXPECT_EQ(store.read(0, back), 0);
  EXPECT_TRUE(back == before);
  EXPECT_EQ(store.remove_snapshot("first"), 0);
}

TEST_F(RbdStore, AForkedChildIsRefusedAndItsParentGoesOn) {
  auto store = open(Ceph::instance().uri(name_), writable(kMiB));
  const Bytes bytes = random_bytes(4096, 5);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    const bool is_refused = store->write(0, bytes) == -EIO && store->sync() == -EIO;
    store.reset();
    ::_exit(is_refused ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  Bytes back(4096);
  EXPECT_EQ(store->write(0, bytes), 0);
  EXPECT_EQ(store->read(0, back), 0);
  EXPECT_TRUE(back == bytes);
}

TEST(RbdUri, WhatItCannotMeanIsRefused) {
  const auto refusal = [](const std::string& uri) {
    const auto store = open_store(uri);
    EXPECT_EQ(store.code(), EINVAL) << uri;
    return store.message();
  };
  EXPECT_THAT(refusal("rbd:image"), HasSubstr("rbd://POOL/IMAGE"));
  EXPECT_THAT(refusal("rbd://pool"), HasSubstr("rbd://POOL/IMAGE"));
  EXPECT_THAT(refusal("rbd://pool/a/b/c"), HasSubstr("rbd://POOL/IMAGE"));
  EXPECT_THAT(refusal("rbd://pool/a?timeout=0"), HasSubstr("1s to 3600s"));
  EXPECT_THAT(refusal("rbd://pool/a?timeout=3x"), HasSubstr("timeout=3x"));
  EXPECT_THAT(refusal("rbd://pool/a?order=30"), HasSubstr("order=30"));
  EXPECT_THAT(refusal("rbd://pool/a?thick=1"), HasSubstr("yes or no"));
  EXPECT_THAT(refusal("rbd://pool/a?keyrin=x"), HasSubstr("did you mean 'keyring'"));
}

TEST(PoolSpace, IsTheLeastOfTheFreeSpaceAndTheQuota) {
  const std::string df = R"({"stats":{"total_bytes":9},"pools":[
    {"name":"x","stats":{"max_avail":7}},{"name":"data","stats":{"stored":30,"max_avail":500}}]})";
  const std::string no_quota = R"([{"pool_name":"data","quota_max_bytes":0}])";
  EXPECT_EQ(store::pool_space(df, no_quota, "data").bytes, 500u);
  const std::string quota = R"([{"pool_name":"x"},{"pool_name":"data","quota_max_bytes":100}])";
  EXPECT_EQ(store::pool_space(df, quota, "data").bytes, 70u);
  EXPECT_EQ(store::pool_space(df, quota, "data").reason, "its quota");
  const std::string full = R"([{"pool_name":"data","quota_max_bytes":20}])";
  EXPECT_EQ(store::pool_space(df, full, "data").bytes, 0u);
  for (const char* wrong : {"-1", "1.5"}) {
    const std::string none =
        R"({"pools":[{"name":"data","stats":{"max_avail":)" + std::string(wrong) + "}}]}";
    EXPECT_EQ(store::pool_space(none, no_quota, "data").bytes, 0u) << wrong;
  }
  for (const char* nothing : {"", "{}", "[]", "nonsense", R"({"pools":[]})"})
    EXPECT_FALSE(store::pool_space(nothing, nothing, "data").bytes.has_value());
}

}  // namespace
}  // namespace outcore::rbd_test
