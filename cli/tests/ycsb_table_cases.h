// YcsbTableCases: what every table of YCSB must do, for the tests of each. One thread calls them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bench/record_file.h"
#include "bench/record_numbers.h"
#include "bench/ycsb_client.h"
#include "bench/ycsb_table.h"

namespace outcore::cli {

inline constexpr uint64_t kTableSeed = 1;

inline uint64_t table_key_of(uint64_t number) {
  return bench::RecordFile::key_of(kTableSeed, number);
}

// REQUIRES, here and below: the table has the records 0 … `loaded` - 1, as they were inserted.
inline void expect_each_record_and_no_other(bench::YcsbTable& table, uint64_t loaded) {
  bench::Record record{};
  for (uint64_t i = 0; i < loaded; ++i) {
    ASSERT_TRUE(table.read(table_key_of(i), record));
    EXPECT_TRUE(record.is_whole(table_key_of(i)));
    EXPECT_EQ(record.version(), 0U);
  }
  EXPECT_FALSE(table.read(table_key_of(loaded), record));
  EXPECT_FALSE(table.update(table_key_of(loaded)));
  EXPECT_FALSE(table.read_and_update(table_key_of(loaded), record));
  EXPECT_FALSE(table.insert(table_key_of(3), loaded)) << "it has the key";
}

// Makes two of record 5.
inline void expect_the_next_version(bench::YcsbTable& table) {
  bench::Record record{};
  EXPECT_TRUE(table.update(table_key_of(5)));
  EXPECT_TRUE(table.read_and_update(table_key_of(5), record));
  EXPECT_EQ(record.version(), 1U);
  EXPECT_TRUE(table.read(table_key_of(5), record));
  EXPECT_EQ(record.version(), 2U);
  EXPECT_TRUE(record.is_whole(table_key_of(5)));
}

// `see`: of each entry of a scan of all. REQUIRES: there are more than 500 records.
inline void expect_scans_in_order(const bench::YcsbTable& table, uint64_t loaded,
                                  const std::function<void(const bench::YcsbTable::Entry&)>& see) {
  std::set<uint64_t> keys;
  for (uint64_t i = 0; i < loaded; ++i) keys.insert(table_key_of(i));
  std::vector<bench::YcsbTable::Entry> entries;
  table.scan(0, loaded + 7, entries);
  ASSERT_EQ(entries.size(), loaded);
  auto expected = keys.begin();
  for (const bench::YcsbTable::Entry& entry : entries) {
    EXPECT_EQ(entry.key, *expected++);
    see(entry);
  }
  const uint64_t middle = *std::next(keys.begin(), 500);
  table.scan(middle, 600, entries);
  EXPECT_EQ(entries.size(), loaded - 500);
  table.scan(middle - 1, 3, entries);
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries.front().key, middle);
}

// What four clients at once count of a mix, none of whose answers is wrong. REQUIRES: the table has
// `records` records, and room for 400 more, of which D and E insert some 200 each.
inline bench::YcsbCounts counts_of_clients(bench::YcsbTable& table, const std::string& mix,
                                           uint64_t records) {
  constexpr uint64_t kRoom = 400;
  bench::RecordNumbers numbers(records, kRoom);
  const bench::YcsbChoice choice(bench::YcsbChoice::Kind::kScrambled, records, kRoom, 0.99,
                                 kTableSeed);
  std::vector<bench::YcsbClient> clients;
  for (uint64_t t = 0; t < 4; ++t)
    clients.emplace_back(bench::ycsb_mix(mix), choice, table, numbers, kTableSeed, t);
  std::vector<std::thread> threads;
  for (bench::YcsbClient& client : clients)
    threads.emplace_back([&client] {
      for (int i = 0; i < 1000; ++i) client.do_next();
    });
  for (std::thread& thread : threads) thread.join();
  bench::YcsbCounts all;
  for (const bench::YcsbClient& client : clients) all += client.counts();
  EXPECT_EQ(all.wrong, 0U) << mix;
  EXPECT_EQ(numbers.count(), records + all.inserts) << mix;
  return all;
}

}  // namespace outcore::cli
