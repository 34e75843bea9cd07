// `outcore bench ycsb --table heap`: the table, that lost and damaged records are found, every mix
// in every memory, and wrong input.
#include <new>

#include "bench/heap_table.h"
#include "cli/tests/command_line.h"
#include "cli/tests/ycsb_table_cases.h"

namespace outcore::cli {
namespace {

using bench::HeapParts;
using bench::HeapTable;
using bench::PlainRecords;
using bench::YcsbTable;

constexpr uint64_t kLoaded = 1000;

class HeapTableInMemory : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(table_.load(kTableSeed, kLoaded).ok());
    expect_found(kLoaded, 0);
  }
  void expect_found(uint64_t records, uint64_t updates) const {
    const YcsbTable::Found found = table_.audit(kTableSeed, records);
    EXPECT_EQ(found.entries, records);
    EXPECT_EQ(found.updates, updates);
    EXPECT_EQ(found.wrong_records, 0U);
    EXPECT_EQ(found.wrong_entries, 0U);
  }
  PlainRecords::Map& map_of(uint64_t number) {
    return maps_[bench::index_page_of(table_key_of(number), maps_.size())];
  }
  PlainRecords::Order& order_of(uint64_t number) {
    return orders_[bench::index_page_of(table_key_of(number), orders_.size())];
  }

  std::vector<PlainRecords::Map> maps_ =
      std::vector<PlainRecords::Map>(HeapParts<PlainRecords>::kCount);
  std::vector<PlainRecords::Order> orders_ =
      std::vector<PlainRecords::Order>(HeapParts<PlainRecords>::kCount);
  HeapTable<PlainRecords> table_{HeapParts<PlainRecords>{maps_, orders_}};
};

TEST_F(HeapTableInMemory, FindsEachRecordAndNoOther) {
  expect_each_record_and_no_other(table_, kLoaded);
  EXPECT_EQ(table_.load(kTableSeed, kLoaded).code(), EEXIST);
  EXPECT_TRUE(table_.failure().ok());
}

TEST_F(HeapTableInMemory, AnUpdateIsTheNextVersion) {
  expect_the_next_version(table_);
  expect_found(kLoaded, 2);
}

TEST_F(HeapTableInMemory, AScanGoesInTheOrderOfTheKeysToTheEnd) {
  bench::Record record{};
  expect_scans_in_order(table_, kLoaded, [&](const YcsbTable::Entry& entry) {
    EXPECT_TRUE(table_.read_entry(entry, record) && record.is_whole(entry.key));
  });
}

TEST_F(HeapTableInMemory, ClientsAtOnceSeeWholeRecordsAndLoseNothing) {
  uint64_t records = kLoaded, updates = 0;
  for (const std::string& name : bench::ycsb_mix_names()) {
    const bench::YcsbCounts all = counts_of_clients(table_, name, records);
    records += all.inserts;
    updates += all.updates;
    expect_found(records, updates);
  }
}

TEST_F(HeapTableInMemory, AnAuditFindsWhatIsNotAsItWas) {
  reinterpret_cast<uint64_t*>(&map_of(17).find(table_key_of(17))->second)[20] ^= 1;
  map_of(18).erase(table_key_of(18));
  order_of(19).erase(table_key_of(19));
  order_of(20).insert(table_key_of(kLoaded));
  const YcsbTable::Found found = table_.audit(kTableSeed, kLoaded);
  EXPECT_EQ(found.wrong_records, 2U);
  EXPECT_EQ(found.entries, kLoaded - 1);
  EXPECT_EQ(found.wrong_entries, 1U);
}

TEST_F(HeapTableInMemory, ASetThatHasKeysOfNoRecordIsFound) {
  order_of(20).insert(table_key_of(kLoaded));
  EXPECT_EQ(table_.audit(kTableSeed, kLoaded).wrong_entries, 1U);
}

struct FullRecords : PlainRecords {
  static bool insert(Map&, uint64_t) { throw std::bad_alloc(); }
};

TEST(HeapTableThatIsFull, TellsSo) {
  std::vector<FullRecords::Map> maps(HeapParts<FullRecords>::kCount);
  HeapTable<FullRecords> table({maps, {}});
  EXPECT_FALSE(table.insert(table_key_of(0), 0));
  EXPECT_EQ(table.failure().code(), ENOSPC);
  EXPECT_EQ(table.load(kTableSeed, 10).code(), ENOSPC);
}

class YcsbHeap : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    std::filesystem::create_directory(path("data"));
  }
  Outcome bench(const std::string& words, const std::string& budget = "4M") const {
    return run("bench ycsb --json --size 4M --budget " + budget + " --threads 2 --dir " +
               path("data") + " " + words);
  }
  void expect_empty() const { EXPECT_TRUE(std::filesystem::is_empty(path("data"))); }
};

// With room for all: by mmap, in half of it, scans and the check of all records take minutes.
TEST_F(YcsbHeap, EachMemoryDoesWhatATableOfRecordsDoes) {
  for (const std::string& mix : bench::ycsb_mix_names()) {
    const std::string work = "--touches 200 --mix " + mix;
    const Outcome records = bench(work + " --memory mmap");
    const Outcome outcome = bench(work + " --table heap --memory all", "16M");
    ASSERT_EQ(records.status, 0) << records.err;
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const auto lines = outcome.lines();
    ASSERT_EQ(lines.size(), 4U);
    for (const auto& line : lines) {
      EXPECT_EQ(line["checked"], true);
      EXPECT_EQ(line["variant"], "mix " + mix + ", table in a heap, zipf");
      for (const char* count : {"records", "reads", "updates", "inserts", "scans"})
        EXPECT_EQ(line.value(count, -1), records.lines().front().value(count, -2)) << count;
    }
    EXPECT_EQ(lines.back()["memory"], "outcore");
    for (const char* key : {"heap_bytes", "open_seconds", "close_seconds"})
      EXPECT_TRUE(lines.back().contains(key)) << key;
    expect_empty();
  }
}

TEST_F(YcsbHeap, IsTheSameUniformlyWarmAndInTurns) {
  const Outcome outcome = bench(
      "--table heap --mix D --touches 300 --distribution uniform --warm --repeat 2 --latency on"
      " --memory mmap-random,outcore");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto lines = outcome.lines();
  ASSERT_EQ(lines.size(), 4U);
  for (const auto& line : lines) {
    EXPECT_EQ(line["checked"], true);
    EXPECT_EQ(line["variant"], "mix D, table in a heap, warm");
  }
  expect_empty();
}

// Outcore's heap over the kernel's mapping: one was made for each run that writes.
TEST_F(YcsbHeap, OurHeapOverMmapDoesTheSame) {
  for (const std::string mix : {"A", "E"}) {
    const Outcome outcome = bench("--table heap --allocator own --touches 200 --mix " + mix +
                                      " --memory mmap,mmap-random,outcore",
                                  "16M");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const auto lines = outcome.lines();
    ASSERT_EQ(lines.size(), 3U);
    for (const auto& line : lines) {
      EXPECT_EQ(line["checked"], true);
      EXPECT_EQ(line["variant"], "mix " + mix + ", table in a heap, zipf, own allocator");
      EXPECT_TRUE(line.contains("heap_bytes"));
      for (const char* count : {"records", "reads", "updates", "inserts", "scans"})
        EXPECT_EQ(line.value(count, -1), lines.front().value(count, -2)) << count;
    }
    expect_empty();
  }
}

TEST_F(YcsbHeap, AnInterruptedRunLeavesNothing) {
  const Outcome outcome = outcome_of(
      "timeout --preserve-status -s INT 2 " + command_path() +
      " bench ycsb --table heap --mix C --size 4M --touches 1000000000 --memory outcore" +
      " --dir " + path("data"));
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  expect_empty();
}

TEST_F(YcsbHeap, RefusesWrongInput) {
  for (const char* words :
       {"--table tree", "--table heap --memory dram", "--table heap --memory outcore,direct",
        "--table heap --memory swap", "--table heap --memory mmap-dontneed", "--table heap --keep",
        "--table heap --advice random", "--table heap --frames shared",
        "--table heap --delivery messages", "--table heap --store x", "--table heap --share on",
        "--table heap --mix G", "--table heap --distribution once", "--table", "--allocator own",
        "--table heap --allocator boost", "--table heap --allocator mine"}) {
    const Outcome refused = bench(words);
    EXPECT_EQ(refused.status, 2) << words;
    EXPECT_EQ(refused.error_lines(), 1U) << words << ": " << refused.err;
  }
  const Outcome nowhere = run("bench ycsb --table heap --dir " + path("none"));
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_EQ(nowhere.error_lines(), 1U) << nowhere.err;
  expect_empty();
}

}  // namespace
}  // namespace outcore::cli
