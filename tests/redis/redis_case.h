// RedisCase: what tests of the store redis:// share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "outcore/store.h"
#include "outcore/store_catalog.h"
#include "tests/redis/test_servers.h"

namespace outcore::redis_test {

using Bytes = std::vector<std::byte>;

inline Bytes random_bytes(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

inline OpenOptions writable(uint64_t size_bytes = 0) {
  OpenOptions options;
  options.is_writable = true;
  options.may_create = size_bytes != 0;
  options.size_bytes = size_bytes;
  return options;
}

class RedisTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!TestServers::is_installed())
      GTEST_SKIP() << "redis-server is not installed: tools/install_packages.sh engines";
  }
  void start(ServerOptions options = {}) {
    servers_ = std::make_unique<TestServers>(std::move(options));
  }
  std::shared_ptr<Store> make(const std::string& name, uint64_t size_bytes,
                              const std::string& parameters) {
    auto store = open_store(servers_->uri(name, parameters), writable(size_bytes));
    EXPECT_TRUE(store.ok()) << store.message();
    return store.ok() ? store.value() : nullptr;
  }
  static Bytes read_all(Store& store) {
    Bytes bytes(store.size_bytes());
    EXPECT_EQ(store.read(0, bytes), 0);
    return bytes;
  }
  // A field of a store's record, as its servers have it.
  void set_field(int server, const std::string& name, const std::string& field,
                 const std::string& value) {
    servers_->ask(server, {"HSET", "oc:{catalog}:" + name, field, value});
  }

  std::unique_ptr<TestServers> servers_;
};

}  // namespace outcore::redis_test
