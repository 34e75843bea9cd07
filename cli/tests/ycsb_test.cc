// What `outcore bench ycsb` is made of: mixes, choices of records, records, their table and its
// index; and that damaged records, lost updates and lost keys are found.
#include <map>
#include <set>
#include <thread>

#include "bench/record_file.h"
#include "bench/record_numbers.h"
#include "bench/ycsb_client.h"
#include "cli/tests/damaged_bench.h"
#include "cli/tests/ycsb_table_cases.h"

namespace outcore::cli {
namespace {

using bench::YcsbChoice;
using bench::YcsbOperation;

constexpr uint64_t kSeed = kTableSeed;

uint64_t key_of(uint64_t number) { return table_key_of(number); }

TEST(YcsbMix, HasTheSharesOfTheCoreWorkloads) {
  const std::map<std::string, std::map<YcsbOperation, int>> expected = {
      {"A", {{YcsbOperation::kRead, 50}, {YcsbOperation::kUpdate, 50}}},
      {"B", {{YcsbOperation::kRead, 95}, {YcsbOperation::kUpdate, 5}}},
      {"C", {{YcsbOperation::kRead, 100}}},
      {"D", {{YcsbOperation::kRead, 95}, {YcsbOperation::kInsert, 5}}},
      {"E", {{YcsbOperation::kScan, 95}, {YcsbOperation::kInsert, 5}}},
      {"F", {{YcsbOperation::kRead, 50}, {YcsbOperation::kReadModifyWrite, 50}}}};
  EXPECT_EQ(bench::ycsb_mix_names().size(), expected.size());
  for (const auto& [name, shares] : expected) {
    bench::Random random(3);
    std::map<YcsbOperation, int> found;
    constexpr int kDraws = 100'000;
    for (int i = 0; i < kDraws; ++i) ++found[bench::ycsb_mix(name).next(random)];
    EXPECT_EQ(found.size(), shares.size()) << name;
    for (const auto& [operation, percent] : shares)
      EXPECT_NEAR(found[operation] * 100.0 / kDraws, percent, 1) << name;
  }
}

TEST(YcsbMix, HasRoomForAllInsertsThatItMakes) {
  const bench::YcsbMix& mix = bench::ycsb_mix("D");
  EXPECT_EQ(bench::ycsb_mix("A").inserts_max(1000), 0U);
  EXPECT_EQ(mix.inserts_max(3), 3U);
  for (const uint64_t operations : {1, 10, 1000, 100'000}) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      bench::Random random(seed);
      uint64_t inserts = 0;
      for (uint64_t i = 0; i < operations; ++i)
        inserts += mix.next(random) == YcsbOperation::kInsert;
      EXPECT_LE(inserts, mix.inserts_max(operations));
    }
  }
}

TEST(YcsbChoice, TheScrambledOneComesToAllRecordsAndToNoOther) {
  for (const uint64_t records : {60, 128, 255}) {
    const YcsbChoice choice(YcsbChoice::Kind::kScrambled, records, 0, 0.99, kSeed);
    bench::Random random(5);
    std::map<uint64_t, int> found;
    for (int i = 0; i < 50'000; ++i) ++found[choice.next(records, random)];
    EXPECT_EQ(found.size(), records);
    EXPECT_LT(found.rbegin()->first, records);
    // Zipf's: the most popular has a share that the uniform choice gives to none.
    int most = 0;
    for (const auto& [number, count] : found) most = std::max(most, count);
    EXPECT_GT(most, 50'000 / 10);
  }
}

TEST(YcsbChoice, NoneComesToARecordThatIsNotThereYet) {
  for (const auto kind :
       {YcsbChoice::Kind::kUniform, YcsbChoice::Kind::kScrambled, YcsbChoice::Kind::kLatest}) {
    const YcsbChoice choice(kind, 100, 20, 0.99, kSeed);
    bench::Random random(7);
    for (uint64_t records = 100; records <= 120; ++records) {
      std::map<uint64_t, int> found;
      for (int i = 0; i < 2000; ++i) ++found[choice.next(records, random)];
      EXPECT_LT(found.rbegin()->first, records);
      if (kind == YcsbChoice::Kind::kLatest) {
        EXPECT_GT(found[records - 1], 200);
      }
    }
  }
}

TEST(Record, IsWholeUntilAnyByteOfItIsAnother) {
  bench::Record record{};
  record.write(key_of(8), 5);
  EXPECT_TRUE(record.is_whole(key_of(8)));
  EXPECT_FALSE(record.is_whole(key_of(9)));
  EXPECT_EQ(record.version(), 5U);
  auto* const bytes = reinterpret_cast<unsigned char*>(&record);
  for (size_t i = 0; i < sizeof record; ++i) {
    bytes[i] ^= 0x10;
    EXPECT_FALSE(record.is_whole(key_of(8))) << i;
    bytes[i] ^= 0x10;
  }
  // Half of it of the next version.
  bench::Record next{};
  next.write(key_of(8), 6);
  std::memcpy(static_cast<void*>(&record), &next, sizeof record / 2);
  EXPECT_FALSE(record.is_whole(key_of(8)));
}

TEST(IndexPage, HasItsKeysInOrderEachOnceUntilItIsFull) {
  bench::IndexPage page{};
  const bench::Permutation order(bench::IndexPage::kKeysMax, 3);
  for (uint64_t i = 0; i < bench::IndexPage::kKeysMax; ++i) {
    EXPECT_TRUE(page.insert(order(i) * 10, static_cast<uint32_t>(i)));
    EXPECT_FALSE(page.insert(order(i) * 10, 0));
  }
  EXPECT_FALSE(page.insert(5, 0));
  ASSERT_EQ(page.keys().size(), bench::IndexPage::kKeysMax);
  for (uint64_t i = 0; i < page.keys().size(); ++i) {
    EXPECT_EQ(page.keys()[i], i * 10);
    EXPECT_EQ(order(page.slot(i)), i);
    EXPECT_EQ(page.lower_bound(i * 10 - (i != 0)), i);
  }
}

TEST(RecordLayout, FillsTheFileAndLeavesRoomOnTheIndexPages) {
  for (const uint64_t size : {uint64_t{64} << 10, uint64_t{4} << 20, uint64_t{100} << 30}) {
    const bench::RecordLayout layout(size);
    EXPECT_LE(layout.record_at(layout.slots), size);
    EXPECT_GT(layout.record_at(layout.slots) + sizeof(bench::Record), size);
    EXPECT_LE(layout.slots, layout.index_pages * bench::IndexPage::kKeysMean);
    EXPECT_EQ(layout.record_at(0) % 4096, 0U);
  }
}

TEST(RecordNumbers, ARecordIsThereWhenAllBeforeItAre) {
  bench::RecordNumbers numbers(10, 3);
  EXPECT_EQ(numbers.claim(), 10U);
  EXPECT_EQ(numbers.claim(), 11U);
  numbers.publish(11);
  EXPECT_EQ(numbers.count(), 10U);
  numbers.publish(10);
  EXPECT_EQ(numbers.count(), 12U);
  EXPECT_EQ(numbers.claim(), 12U);
  numbers.publish(12);
  EXPECT_EQ(numbers.count(), 13U);
}

class RecordTableInMemory : public testing::Test {
 protected:
  static constexpr uint64_t kBytes = 2 << 20;
  static constexpr uint64_t kLoaded = 1000;

  void SetUp() override {
    for (uint64_t i = 0; i < kLoaded; ++i) ASSERT_TRUE(table_.insert(key_of(i), i));
  }

  // Of all records that are there, which must be whole.
  uint64_t versions() const {
    uint64_t sum = 0;
    bench::Record record{};
    for (uint64_t i = 0; i < loaded_; ++i) {
      EXPECT_TRUE(table_.read(key_of(i), record) && record.is_whole(key_of(i))) << i;
      sum += record.version();
    }
    return sum;
  }

  uint64_t loaded_ = kLoaded;
  const bench::RecordLayout layout_{kBytes};
  std::vector<uint64_t> words_ = std::vector<uint64_t>(kBytes / sizeof(uint64_t));
  bench::RecordLocks locks_;
  bench::RecordTable table_{layout_, std::as_writable_bytes(std::span(words_)), locks_};
};

TEST_F(RecordTableInMemory, FindsEachRecordAndNoOther) {
  expect_each_record_and_no_other(table_, kLoaded);
}

TEST_F(RecordTableInMemory, AnUpdateIsTheNextVersion) { expect_the_next_version(table_); }

TEST_F(RecordTableInMemory, AScanGoesInTheOrderOfTheKeysToTheEnd) {
  expect_scans_in_order(table_, kLoaded, [](const bench::RecordTable::Entry& entry) {
    EXPECT_EQ(key_of(entry.slot), entry.key);
  });
}

TEST_F(RecordTableInMemory, ClientsAtOnceSeeWholeRecordsAndLoseNothing) {
  for (const std::string& name : bench::ycsb_mix_names()) {
    const uint64_t before = versions();
    const bench::YcsbCounts all = counts_of_clients(table_, name, loaded_);
    loaded_ += all.inserts;
    EXPECT_EQ(versions() - before, all.updates) << name;
  }
}

TEST_F(RecordTableInMemory, AClientTellsOfARecordThatIsNotWhole) {
  words_[layout_.record_at(17) / sizeof(uint64_t) + 20] ^= 1;
  bench::RecordNumbers numbers(kLoaded, 0);
  for (const char* name : {"C", "F"}) {
    const YcsbChoice choice(YcsbChoice::Kind::kUniform, kLoaded, 0, 0.99, kSeed);
    bench::YcsbClient client(bench::ycsb_mix(name), choice, table_, numbers, kSeed, 0);
    for (int i = 0; i < 20'000; ++i) client.do_next();
    EXPECT_GT(client.counts().wrong, 0U) << name;
  }
}

class YcsbFile : public DamagedBench {
 protected:
  static constexpr uint64_t kBytes = 2 << 20;

  // Makes the table, writes `bytes` over what is there, and tells what the next run says. It reads
  // no more than a few records: the damage is found when the run is over.
  template <typename T>
  std::string error_after(uint64_t at, const T& bytes) {
    const std::string work = "ycsb --mix C --size 2M --touches 4";
    EXPECT_EQ(bench(work).status, 0);
    std::fstream file(path("outcore-bench-ycsb-2097152-1.dat"),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.write(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    file.close();
    EXPECT_TRUE(file.good());
    const Outcome outcome = bench(work);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    return outcome.err;
  }
  const bench::RecordLayout layout_{kBytes};
};

TEST_F(YcsbFile, ARecordThatWasDamagedIsFound) {
  const std::string error = error_after(layout_.record_at(1234) + 500, 'x');
  EXPECT_NE(error.find("1 records and 0 entries"), std::string::npos) << error;
}

TEST_F(YcsbFile, AnUpdateThatNobodyMadeIsFound) {
  bench::Record record{};
  record.write(key_of(1234), 1);
  const std::string error = error_after(layout_.record_at(1234), record);
  EXPECT_NE(error.find("1 updates where 0 were made"), std::string::npos) << error;
}

TEST_F(YcsbFile, KeysThatWereLostAreFound) {
  const std::string error = error_after(3 * 4096, uint64_t{0});
  EXPECT_NE(error.find("the index has"), std::string::npos) << error;
}

TEST_F(YcsbFile, ThatWasDamagedAllOverIsFound) {
  const std::string work = "ycsb --mix C --size 2M --touches 200";
  ASSERT_EQ(bench(work).status, 0);
  damage("outcore-bench-ycsb-2097152-1.dat");
  const Outcome outcome = bench(work);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("wrong answers"), std::string::npos) << outcome.err;
}

TEST_F(YcsbFile, EachMemoryDoesTheSame) {
  for (const std::string& mix : bench::ycsb_mix_names()) {
    const Outcome outcome =
        run("bench ycsb --mix " + mix + " --size 4M --touches 200 --memory dram,mmap,outcore" +
            " --threads 2 --budget 4M --json --dir " + dir());
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const auto lines = outcome.lines();
    ASSERT_EQ(lines.size(), 3U);
    for (const auto& line : lines) {
      EXPECT_EQ(line["checked"], true);
      EXPECT_EQ(line["variant"], "mix " + mix + ", zipf");
      for (const char* count : {"records", "reads", "updates", "inserts", "scans"})
        EXPECT_EQ(line.value(count, -1), lines.front().value(count, -2)) << count;
    }
  }
}

}  // namespace
}  // namespace outcore::cli
