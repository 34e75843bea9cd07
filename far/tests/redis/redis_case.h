// RedisCase: what tests of the store redis:// share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "far/tests/redis/test_servers.h"
#include "outcore/store.h"
#include "outcore/store_catalog.h"
#include "tests/random_bytes.h"

namespace outcore::redis_test {

using Bytes = std::vector<std::byte>;
using scene::random_bytes;

inline OpenOptions writable(uint64_t size_bytes = 0) {
  OpenOptions options;
  options.is_writable = true;
  options.may_create = size_bytes != 0;
  options.size_bytes = size_bytes;
  return options;
}

class RedisTest : public testing::Test {
 protected:
  static constexpr uint64_t kSize = 1 << 20;  // of a store; suites have larger ones of this name

  void SetUp() override {
    if (!TestServers::is_installed())
      GTEST_SKIP() << "redis-server is not installed: tools/install_packages.sh engines";
  }
  void start(ServerOptions options = {}) {
    servers_ = std::make_unique<TestServers>(std::move(options));
  }
  std::shared_ptr<Store> make(const std::string& name, uint64_t size_bytes,
                              const std::string& parameters) {
    auto store =
        open_store(servers_->uri(name, parameters + more_parameters_), writable(size_bytes));
    EXPECT_TRUE(store.ok()) << store.message();
    return store.ok() ? store.value() : nullptr;
  }
  // Uses all of the store in another thread while something happens; how much was wrong.
  static int use_while(Store& store, const std::function<void()>& happens) {
    std::atomic<bool> is_over{false};
    std::atomic<int> wrong{0};
    std::thread user([&] { wrong += use(store, 0, store.size_bytes(), [&] { return !is_over; }); });
    happens();
    is_over = true;
    user.join();
    return wrong;
  }
  static Bytes read_all(Store& store) {
    Bytes bytes(store.size_bytes());
    EXPECT_EQ(store.read(0, bytes), 0);
    return bytes;
  }
  // Writes and reads at random for as long as `go_on` says, at least once; how many were wrong.
  static int use(Store& store, uint64_t first, uint64_t size, const std::function<bool()>& go_on) {
    std::mt19937_64 random(first);
    const size_t most = std::min<size_t>(size / 2, 20'000);  // in all ways that writes travel
    Bytes mirror(size), now(most);
    int wrong = store.write(first, mirror) != 0;
    do {
      const size_t at = random() % (size - most), look = random() % (size - most);
      const Bytes bytes = random_bytes(1 + random() % most, random());
      wrong += store.write(first + at, bytes) != 0;
      std::copy(bytes.begin(), bytes.end(), mirror.begin() + static_cast<ptrdiff_t>(at));
      wrong += store.read(first + look, now) != 0;
      wrong += std::memcmp(now.data(), mirror.data() + look, most) != 0;
    } while (go_on());
    Bytes all(size);
    wrong += store.read(first, all) != 0;
    return wrong + (all != mirror);
  }
  // A field of a store's record, as its servers have it.
  void set_field(int server, const std::string& name, const std::string& field,
                 const std::string& value) {
    servers_->ask(server, {"HSET", "oc:{catalog}:" + name, field, value});
  }

  std::unique_ptr<TestServers> servers_;
  std::string more_parameters_;  // of all that make() makes
};

// PackingTest: what holds however chunks are stored. The parameter: more of a URI.
class PackingTest : public RedisTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    more_parameters_ = GetParam();
    RedisTest::SetUp();
  }
};

inline std::string packing_name(const testing::TestParamInfo<std::string>& one) {
  const bool is_lz4 = one.param.find("lz4") != std::string::npos;
  return one.param.empty() ? "Plain" : is_lz4 ? "Lz4" : "Zstd";
}

}  // namespace outcore::redis_test
