// Chunks that are stored smaller than they are: compress=.
#include <algorithm>
#include <atomic>
#include <thread>

#include "core/packing/packer.h"
#include "far/redis/catalog.h"
#include "far/redis/space_pool.h"
#include "far/tests/redis/redis_case.h"

namespace outcore::redis_test {
namespace {

using packing::Packer;
using packing::Packing;
using testing::HasSubstr;

Bytes text_bytes(size_t count) {
  Bytes bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>("a line of text\n"[i % 15]);
  return bytes;
}

class RedisPacked : public PackingTest {
 protected:
  static constexpr uint64_t kChunk = 16 << 10;
  void SetUp() override {
    PackingTest::SetUp();
    if (!IsSkipped()) start();
  }
  // The keys of values: of the chunks, not of the fences or the catalog.
  std::vector<std::string> values() {
    std::vector<std::string> keys;
    for (const redis::Value& key : servers_->ask(0, {"KEYS", "oc:{*}:*:*"}).items)
      if (key.text.back() != 'f') keys.push_back(key.text);
    return keys;
  }
  uint64_t stored() {
    const auto bytes = stored_bytes(servers_->uri("a"));
    EXPECT_TRUE(bytes.ok()) << bytes.message();
    return bytes.ok() ? bytes.value() : 0;
  }
};

TEST_P(RedisPacked, StoresFewerBytesOfWhatCanBePacked) {
  const auto store = make("a", kSize, "replicas=0");
  const Bytes bytes = text_bytes(kSize);
  EXPECT_EQ(store->write(0, bytes), 0);
  EXPECT_EQ(read_all(*store), bytes);
  EXPECT_LT(stored(), kSize / 20);
  uint64_t sum = 0;
  for (const std::string& key : values())
    sum += static_cast<uint64_t>(servers_->ask(0, {"STRLEN", key}).number);
  EXPECT_EQ(stored(), sum);
  EXPECT_EQ(list_stores(servers_->uri("")).value()[0].booked_bytes,
            redis::needed_bytes(kSize, kChunk, 256));
  EXPECT_EQ(store->discard(0, kSize / 2), 0);
  EXPECT_EQ(values().size(), kSize / kChunk / 2);
  EXPECT_EQ(store->discard(kSize / 2, kSize / 2), 0);
  EXPECT_EQ(stored(), 0u);
}

TEST_P(RedisPacked, StoresWhatCannotBePackedAsItIs) {
  const auto store = make("a", kSize, "replicas=0");
  const Bytes bytes = random_bytes(kSize, 1);
  EXPECT_EQ(store->write(0, bytes), 0);
  EXPECT_EQ(read_all(*store), bytes);
  EXPECT_EQ(stored(), kSize + kSize / kChunk * Packer::kHeadBytes);
}

TEST_P(RedisPacked, TakesWhatIsNotedWithTheStore) {
  const Bytes bytes = text_bytes(kSize);
  EXPECT_EQ(make("a", kSize, "replicas=0")->write(0, bytes), 0);
  const auto reader = open_store(servers_->uri("a"));
  ASSERT_TRUE(reader.ok()) << reader.message();
  EXPECT_EQ(read_all(*reader.value()), bytes);
  EXPECT_THAT(reader.value()->remark(),
              HasSubstr(GetParam().find("lz4") != std::string::npos ? ", lz4" : ", zstd:3"));
  const bool is_lz4 = GetParam().find("lz4") != std::string::npos;
  for (const std::string other : {"none", is_lz4 ? "zstd" : "lz4"}) {
    const auto refused = open_store(servers_->uri("a", "compress=" + other));
    EXPECT_EQ(refused.code(), EINVAL);
    EXPECT_THAT(refused.message(), HasSubstr("it was made with compress="));
  }
  EXPECT_EQ(open_store(servers_->uri("b", "replicas=0"), writable(kSize)).value()->write(0, bytes),
            0);
  EXPECT_THAT(open_store(servers_->uri("b", GetParam().substr(1))).message(),
              HasSubstr("it was made with compress=none: leave out the parameter"));
}

TEST_P(RedisPacked, MayBeWrittenAgainAndWithAnotherLevel) {
  const bool is_lz4 = GetParam().find("lz4") != std::string::npos;
  const std::string level = is_lz4 ? "lz4" : "zstd:12";
  const Bytes bytes = text_bytes(kSize);
  EXPECT_EQ(make("a", kSize, "replicas=0")->write(0, bytes), 0);
  const auto again = open_store(servers_->uri("a", "replicas=0&compress=" + level), writable());
  ASSERT_TRUE(again.ok()) << again.message();
  EXPECT_EQ(again.value()->write(100, std::span(bytes).first(50'000)), 0);
  Bytes expected = bytes;
  std::copy_n(bytes.begin(), 50'000, expected.begin() + 100);
  EXPECT_EQ(read_all(*again.value()), expected);
}

// Of a packed value one wrong byte is many, or none that anybody notices.
TEST_P(RedisPacked, ReadsNoValueThatIsDamaged) {
  const auto store = make("a", kSize, "replicas=0");
  const Bytes bytes = text_bytes(kSize), noise = random_bytes(kChunk, 2);
  EXPECT_EQ(store->write(0, bytes), 0);
  EXPECT_EQ(store->write(0, noise), 0);
  const auto tail = [](const std::string& key) { return key.substr(key.rfind(':') + 1); };
  int damaged = 0;
  for (const std::string& key : values()) {
    const uint64_t chunk = std::stoull(tail(key));
    const std::string kind = std::to_string(chunk % 6);
    const std::string value = servers_->ask(0, {"GET", key}).text;
    std::string wrong = value;
    switch (chunk % 6) {
      case 0:
        wrong[value.size() / 2] = static_cast<char>(wrong[value.size() / 2] ^ 1);
        break;
      case 1:
        wrong = value.substr(0, value.size() - 1);
        break;
      case 2:
        wrong += value;
        break;
      case 3:
        wrong[0] = 'x';
        break;
      case 4:
        wrong[2] = static_cast<char>(wrong[2] ^ 64);
        break;
      default:
        wrong = value.substr(0, chunk % 5);
    }
    servers_->ask(0, {"SET", key, wrong});
    Bytes now(4096);
    EXPECT_EQ(store->read(chunk * kChunk + 4096, now), -EIO) << key << ", kind " << kind;
    EXPECT_THAT(store->remark(), HasSubstr("chunk " + tail(key) + " is damaged: " + key));
    EXPECT_EQ(store->write(chunk * kChunk, now), -EIO) << "nor is a part of it written";
    EXPECT_EQ(store->write(chunk * kChunk, noise), 0) << "all of it may be";
    EXPECT_EQ(store->read(chunk * kChunk, now), 0);
    damaged += std::equal(now.begin(), now.end(), noise.begin());
  }
  EXPECT_EQ(damaged, static_cast<int>(kSize / kChunk));
  EXPECT_EQ(store->sync(), 0) << "nothing is lost";
}

TEST_P(RedisPacked, ReadsNoValueOfAnotherChunk) {
  const auto store = make("a", kSize, "replicas=0");
  EXPECT_EQ(store->write(0, text_bytes(kSize)), 0);
  const std::vector<std::string> keys = values();
  servers_->ask(0, {"SET", keys[0], servers_->ask(0, {"GET", keys[1]}).text});
  Bytes now(kSize);
  EXPECT_EQ(store->read(0, now), -EIO);
}

TEST_P(RedisPacked, KeepsThreadsThatWritePartsOfOneChunkApart) {
  for (const bool is_new : {true, false}) {
    const auto store = make(is_new ? "new" : "old", kSize, "replicas=0");
    Bytes mirror(kSize);
    if (!is_new) {
      mirror = text_bytes(kSize);
      EXPECT_EQ(store->write(0, mirror), 0);
    }
    // Thread t has every eighth stretch of 500 bytes.
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (size_t t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        for (uint64_t turn = 0; turn < 4; ++turn)
          for (size_t at = t * 500; at + 500 <= kSize / 4; at += 4000) {
            const Bytes bytes = random_bytes(500, at + turn);
            const bool is_zero = (at / 500 + turn) % 3 == 0;
            wrong += (is_zero ? store->discard(at, 500) : store->write(at, bytes)) != 0;
            Bytes now(500);
            wrong += store->read(at, now) != 0;
            wrong += now != (is_zero ? Bytes(500) : bytes);
          }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0) << store->remark();
    for (size_t at = 0; at + 500 <= kSize / 4; at += 500) {
      const Bytes bytes = (at / 500 + 3) % 3 == 0 ? Bytes(500) : random_bytes(500, at + 3);
      std::copy(bytes.begin(), bytes.end(), mirror.begin() + static_cast<ptrdiff_t>(at));
    }
    EXPECT_TRUE(read_all(*store) == mirror);
  }
}

TEST_P(RedisPacked, AsksOnceForNeighboursInAChunk) {
  const auto store = make("a", kSize, "replicas=0");
  const Bytes bytes = text_bytes(kSize);
  EXPECT_EQ(store->write(0, bytes), 0);
  servers_->ask(0, {"CONFIG", "RESETSTAT"});
  Bytes now(4 * kChunk);
  std::vector<StoreRequest> pages;
  for (size_t at = 0; at < now.size(); at += 4096) pages.push_back({at, &now[at], 4096, false, 7});
  store->transfer(pages);
  for (const StoreRequest& page : pages) EXPECT_EQ(page.result, 0);
  EXPECT_TRUE(std::equal(now.begin(), now.end(), bytes.begin()));
  EXPECT_THAT(servers_->ask(0, {"INFO", "commandstats"}).text, HasSubstr("cmdstat_get:calls=4,"));
}

TEST_P(RedisPacked, NeedsNoReadBeforeAWriteWhereNothingWasWritten) {
  const auto store = make("a", kSize, "replicas=0");
  EXPECT_EQ(store->write(100, text_bytes(1000)), 0);
  EXPECT_EQ(store->discard(kSize / 2, 1000), 0) << "of what was never written";
  EXPECT_TRUE(store->is_hole(kSize / 2, 1000));
  EXPECT_THAT(servers_->ask(0, {"INFO", "commandstats"}).text,
              testing::Not(HasSubstr("cmdstat_get:")));
  EXPECT_EQ(values().size(), 1u);
  EXPECT_EQ(store->discard(100, 1000), 0);
  EXPECT_EQ(read_all(*store), Bytes(kSize));
}

INSTANTIATE_TEST_SUITE_P(Chunks, RedisPacked, testing::Values("&compress=lz4", "&compress=zstd"),
                         packing_name);

TEST(Packing, SaysWhatWouldDo) {
  for (const std::string text :
       {"gzip", "", "zstd:", "zstd:0", "zstd:20", "zstd:3x", "lz4:1", "LZ4"}) {
    const auto refused = Packing::parse(text);
    EXPECT_EQ(refused.code(), EINVAL) << text;
    EXPECT_THAT(refused.message(), HasSubstr("write none, lz4, zstd or zstd:LEVEL")) << text;
  }
  for (const std::string text : {"none", "lz4", "zstd:1", "zstd:19"})
    EXPECT_EQ(Packing::parse(text).value().text(), text);
  const auto refused = open_store("redis://127.0.0.1:1/a?compress=gzip", {});
  EXPECT_THAT(refused.message(), HasSubstr("compress=gzip is unknown: write none, lz4, zstd"));
}

TEST(Packing, GivesBackChunksOfAllSizesAtAllLevels) {
  for (const std::string text : {"lz4", "zstd:1", "zstd:5", "zstd:12", "zstd:19"})
    for (const size_t chunk_bytes : {size_t{4096}, size_t{16384}, size_t{65536}, size_t{1} << 20}) {
      const auto made = Packer::make(Packing::parse(text).value(), chunk_bytes);
      EXPECT_TRUE(made.ok()) << made.message() << " " << chunk_bytes;
    }
}

TEST(SpacePool, GivesEachPieceToOneAndWaitsWithABound) {
  redis::SpacePool pool(2, 100);
  std::byte* const first = pool.acquire(0);
  std::byte* const second = pool.acquire(0);
  EXPECT_GE(second - first, 100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % redis::SpacePool::kAlignment, 0u);
  EXPECT_EQ(pool.acquire(base::now_ns() + 1'000'000), nullptr);
  std::thread giver([&] { pool.release(first); });
  EXPECT_EQ(pool.acquire(base::now_ns() + 60'000'000'000), first);
  giver.join();
}

}  // namespace
}  // namespace outcore::redis_test
