// Processes that read a store on Redis servers through one buffer: each page comes over the network
// once, and what a writer has changed since is another store.
#include <sched.h>
#include "core/tests/conformance/common.h"
#include "core/tests/conformance/scene.h"
#include "far/tests/redis/redis_case.h"
#include "outcore/buffers.h"
#include "outcore/runtime.h"

namespace outcore::redis_test {
namespace {

constexpr int kWrong = 50, kNoRuntime = 51, kNoRegion = 52, kNotShared = 53;

struct Meeting {
  std::atomic<uint32_t> arrived{0};
  std::atomic<uint64_t> read_bytes{0};
};

class RedisBuffer : public RedisTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (IsSkipped()) return;
    OUTCORE_NEEDS_THREADS_IN_CHILD();
    if (const std::string why = scene::why_no_buffers(); !why.empty()) GTEST_SKIP() << why;
    ::setenv("OUTCORE_BUFFER_DIR", (folder_ / "buffers").c_str(), 1);
  }
  void TearDown() override { ::unsetenv("OUTCORE_BUFFER_DIR"); }

  // Makes the store, or writes all of it anew.
  void put(const Bytes& bytes, const std::string& parameters) {
    auto store = make("data", bytes.size(), parameters);
    ASSERT_NE(store, nullptr);
    ASSERT_EQ(store->write(0, bytes), 0);
    ASSERT_EQ(store->sync(), 0);
  }
  template <typename Work>
  pid_t begin(const std::string& parameters, const Work& work) {
    const std::string uri = servers_->uri("data", parameters);
    const pid_t process = ::fork();
    if (process != 0) return process;
    RuntimeOptions options;
    options.ignore_environment = true;
    options.budget_bytes = 8 << 20;
    options.buffer = "far";
    auto runtime = Runtime::start(options);
    if (!runtime) std::fprintf(stderr, "%s\n", runtime.message().c_str()), ::_exit(kNoRuntime);
    auto region = runtime.value().map(uri);
    if (!region) std::fprintf(stderr, "%s\n", region.message().c_str()), ::_exit(kNoRegion);
    const int status = work(region.value());
    meeting().read_bytes.fetch_add(runtime.value().metrics().counters.read_bytes);
    ::_exit(status);
  }
  static int compare(const Region& region, const Bytes& bytes) {
    if (!region.is_shared()) return kNotShared;
    return std::memcmp(region.data(), bytes.data(), bytes.size()) == 0 ? 0 : kWrong;
  }
  Meeting& meeting() const { return meeting_[0]; }
  void meet(uint32_t count) const {
    meeting().arrived.fetch_add(1);
    while (meeting().arrived.load() < count) ::sched_yield();
  }

 private:
  const scene::Folder folder_;
  const scene::Common<Meeting> meeting_;
};

TEST_F(RedisBuffer, EachPageComesOnceForAll) {
  start();
  for (const char* const parameters : {"replicas=0", "replicas=0&compress=lz4"}) {
    if (::testing::Test::HasFailure()) return;
    static_cast<void>(remove_store(servers_->uri("data", "replicas=0")));  // of the last round
    const Bytes bytes = random_bytes(4 << 20, 1);
    put(bytes, parameters);
    meeting().arrived = 0, meeting().read_bytes = 0;
    std::vector<pid_t> readers;
    for (int i = 0; i < 3; ++i)
      readers.push_back(begin(parameters, [&](const Region& region) {
        const int status = compare(region, bytes);
        meet(3);  // who leaves first does not take the pages along
        return status;
      }));
    for (const pid_t reader : readers) EXPECT_EQ(scene::status_of(reader), 0);
    EXPECT_GE(meeting().read_bytes, bytes.size());
    EXPECT_LE(meeting().read_bytes, bytes.size() * 5 / 4);
  }
}

TEST_F(RedisBuffer, WhatAWriterHasChangedSinceIsAnother) {
  start();
  const Bytes before = random_bytes(kSize, 1), after = random_bytes(kSize, 2);
  put(before, "replicas=0");
  const pid_t old = begin("replicas=0", [&](const Region& region) {
    const int status = compare(region, before);
    meet(1);
    while (meeting().arrived.load() < 3) ::sched_yield();
    return status;
  });
  scene::wait_for_child(meeting().arrived, 1, old);
  put(after, "replicas=0");
  const pid_t young = begin("replicas=0", [&](const Region& region) {
    const int status = compare(region, after);
    meet(2);
    return status;
  });
  scene::wait_for_child(meeting().arrived, 2, young);
  EXPECT_EQ(scene::status_of(young), 0);
  meeting().arrived = 3;
  EXPECT_EQ(scene::status_of(old), 0);
}

// Nobody knows then what it holds.
TEST_F(RedisBuffer, BesideAWriterEachHasItsOwnPages) {
  start();
  const Bytes bytes = random_bytes(kSize, 1);
  put(bytes, "replicas=0");
  const auto writer = make("data", kSize, "replicas=0");
  ASSERT_NE(writer, nullptr);
  EXPECT_EQ(writer->contents_id(), "");
  EXPECT_EQ(scene::status_of(begin(
                "replicas=0",
                [&](const Region& region) {
                  if (region.is_shared()) return kNotShared;
                  return std::memcmp(region.data(), bytes.data(), bytes.size()) == 0 ? 0 : kWrong;
                })),
            0);
}

TEST_F(RedisBuffer, AForkedChildHasConnectionsOfItsOwn) {
  start();
  const Bytes bytes = random_bytes(kSize, 1);
  put(bytes, "replicas=0");
  EXPECT_EQ(scene::status_of(begin("replicas=0",
                                   [&](const Region& region) {
                                     if (region.data()[5] != bytes[5]) return kWrong;
                                     const pid_t child = ::fork();
                                     if (child == 0) ::_exit(compare(region, bytes));
                                     const int status = scene::status_of(child);
                                     return status != 0 ? status : compare(region, bytes);
                                   })),
            0);
}

}  // namespace
}  // namespace outcore::redis_test
