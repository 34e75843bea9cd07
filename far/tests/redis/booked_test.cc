// What is booked for a store is what servers take for it.
#include "far/redis/catalog.h"
#include "far/tests/redis/redis_case.h"

namespace outcore::redis_test {
namespace {

constexpr uint32_t kPartsOfAStore = 256;

class RedisBooked : public RedisTest, public testing::WithParamInterface<uint64_t> {
 protected:
  static constexpr uint64_t kSize = 32 << 20;
  // Of the server's memory, without the buffers of its clients.
  int64_t used() {
    const auto number = [this](const std::string& name) {
      const std::string text = "\n" + servers_->ask(0, {"INFO", "memory"}).text;
      const size_t at = text.find("\n" + name + ":");
      EXPECT_NE(at, std::string::npos) << name;
      return at == std::string::npos ? 0 : std::stoll(text.substr(at + name.size() + 2));
    };
    return number("used_memory") - number("mem_clients_normal");
  }
};

TEST_P(RedisBooked, IsWhatAStoreOfWhichEveryByteIsWrittenTakes) {
  const uint64_t chunk = GetParam();
  start();
  const auto store = make("a", kSize, "replicas=0&chunk=" + std::to_string(chunk));
  ASSERT_NE(store, nullptr);
  const Bytes bytes = random_bytes(1 << 20, chunk);
  EXPECT_EQ(store->write(0, bytes), 0);  // loads the scripts, makes connections
  const int64_t before = used();
  for (uint64_t at = 1 << 20; at < kSize; at += bytes.size()) ASSERT_EQ(store->write(at, bytes), 0);
  const auto taken = static_cast<double>(used() - before);
  const auto booked = static_cast<double>(list_stores(servers_->uri("")).value()[0].booked_bytes);
  EXPECT_EQ(booked, static_cast<double>(redis::needed_bytes(kSize, chunk, kPartsOfAStore)));
  const double needed = taken * kSize / (kSize - (1 << 20));
  EXPECT_LE(needed, booked * 1.002) << "a server would be full before the store is";
  EXPECT_GE(needed, booked * 0.985) << "more is booked than is needed";
}

INSTANTIATE_TEST_SUITE_P(With, RedisBooked, testing::Values(4096, 8192, 16384, 65536),
                         [](const auto& one) { return std::to_string(one.param); });

TEST(Booked, IsSoMuchAsFitsIntoTheRoom) {
  for (const uint64_t chunk : {uint64_t{4096}, uint64_t{65536}, uint64_t{1} << 20})
    for (const uint64_t room : {uint64_t{100} << 20, (uint64_t{7} << 30) + 12'345}) {
      const uint64_t size = redis::bookable_bytes(room, chunk, kPartsOfAStore);
      EXPECT_LE(redis::needed_bytes(size, chunk, kPartsOfAStore), room);
      EXPECT_GT(redis::needed_bytes(size + chunk, chunk, kPartsOfAStore), room);
    }
  EXPECT_EQ(redis::bookable_bytes(1000, 4096, kPartsOfAStore), 0u);
}

}  // namespace
}  // namespace outcore::redis_test
