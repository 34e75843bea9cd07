// Bit rot: never other bytes than those that were written, and never a crash. This is also the fuzz
// of what reads the format.
//
// VERSIONED_SEEDS=N flips as many bits; OUTCORE_TEST_SHARE=N: one part in N of the usual ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "checkpoints/pool/pool.h"
#include "checkpoints/pool/verify.h"
#include "checkpoints/tests/pool/model.h"
#include "checkpoints/tests/pool/pools.h"
#include "checkpoints/tests/pool/sim_disk.h"
#include "tests/share.h"

namespace outcore::versioned_test {
namespace {

using testing::HasSubstr;
using versioned::Pool;
using versioned::Snapshot;

constexpr uint64_t kSmallChunk = 1024;
constexpr uint32_t kSmallChunks = 20;
constexpr uint32_t kStates = 12;  // each has a checkpoint

uint64_t flip_count() { return number_of("VERSIONED_SEEDS", scene::share_of(2000)); }

uint32_t stamp_of(uint32_t state, uint32_t chunk) {
  while (state > 1 && (state * 7 + chunk) % 3 != 0) --state;  // the state that wrote it last
  return state * 100 + chunk;
}

std::shared_ptr<SimDisk> make_pool_of_states() {
  const auto disk = std::make_shared<SimDisk>(1);
  const auto pool = open_pool(disk, kSmallChunk, 1500);
  const auto object = pool->create("a", kSmallChunks * kSmallChunk).value();
  for (uint32_t state = 1; state <= kStates; ++state) {
    for (uint32_t chunk = 0; chunk < kSmallChunks; ++chunk) {
      if (state > 1 && (state * 7 + chunk) % 3 != 0) continue;
      std::vector<std::byte> bytes(kSmallChunk);
      for (uint64_t at = 0; at < kSmallChunk; at += kUnit)
        fill_unit(bytes.data() + at, stamp_of(state, chunk));
      EXPECT_EQ(pool->write(*object, chunk * kSmallChunk, bytes), 0);
    }
    EXPECT_TRUE(pool->commit("s" + std::to_string(state)).ok());
  }
  EXPECT_TRUE(pool->close().ok());
  return disk->after_kill();
}

// True if what can be read is what was written; chunks that are not told from damage.
template <typename Read>
bool has_right_bytes(uint32_t state, uint64_t& refused, Read read) {
  for (uint32_t chunk = 0; chunk < kSmallChunks; ++chunk) {
    std::vector<std::byte> bytes(kSmallChunk);
    const int error = read(chunk * kSmallChunk, std::span(bytes));
    refused += error != 0;
    if (error == 0 && !is_unit(bytes.data(), stamp_of(state, chunk))) return false;
    if (error != 0 && error != -EIO) return false;
  }
  return true;
}

std::string check_all(const std::shared_ptr<SimDisk>& disk, uint64_t& refused) {
  for (uint32_t state = 1; state <= kStates; ++state) {
    const auto at = Snapshot::open(disk, "s" + std::to_string(state));
    if (!at) {
      ++refused;
      if (at.code() != EIO && at.code() != ENOENT && at.code() != EINVAL) return at.message();
      continue;
    }
    const versioned::StateObject* const object = at.value()->find("a");
    if (object == nullptr || object->size_bytes != kSmallChunks * kSmallChunk)
      return "another object";
    if (!has_right_bytes(state, refused, [&](uint64_t offset, std::span<std::byte> into) {
          return at.value()->read(*object, offset, into);
        }))
      return "checkpoint s" + std::to_string(state) + " has other bytes";
  }
  const auto pool = Pool::open(disk, {});
  if (!pool) {
    ++refused;
    return pool.code() == EIO || pool.code() == EINVAL ? "" : pool.message();
  }
  const auto object = pool.value()->find("a");
  if (object == nullptr) return "no object";
  const uint32_t last = pool.value()->last_commit();
  if (!has_right_bytes(last, refused, [&](uint64_t offset, std::span<std::byte> into) {
        return pool.value()->read(*object, offset, into);
      }))
    return "the last commit has other bytes";
  return {};
}

TEST(Damage, OfABitOfTheDataIsFoundByReadsAndNamedByVerify) {
  for (uint64_t seed = 0; seed < flip_count() / 10; ++seed) {
    const auto disk = make_pool_of_states();
    ASSERT_TRUE(disk->flip_bit("data", seed));
    uint64_t refused = 0;
    ASSERT_EQ(check_all(disk, refused), "") << seed;
    const auto bad = versioned::verify_pool(disk).value().bad;
    ASSERT_EQ(bad.empty(), refused == 0) << seed;
    if (bad.empty()) continue;  // in a block that nobody needs
    EXPECT_EQ(bad[0].object, "a");
    EXPECT_THAT(bad[0].why, HasSubstr("data at offset"));
  }
}

TEST(Damage, OfABitOfAJournalIsRefusedOrDoesNoHarm) {
  const auto whole = make_pool_of_states();
  const auto journals = versioned::list_journals(*whole).value();
  ASSERT_GT(journals.size(), 2u);
  uint64_t refused_runs = 0;
  for (uint64_t seed = 0; seed < flip_count(); ++seed) {
    const auto disk = whole->after_kill();
    const uint64_t flips = 1 + seed % 3;
    for (uint64_t i = 0; i < flips; ++i)
      ASSERT_TRUE(disk->flip_bit(versioned::journal_name(journals[(seed + i) % journals.size()]),
                                 seed + i));
    uint64_t refused = 0;
    ASSERT_EQ(check_all(disk, refused), "") << seed;
    refused_runs += refused > 0;
  }
  EXPECT_GT(refused_runs, flip_count() / 4);
}

TEST(Damage, InTheMiddleOfTheLastJournalNamesFileOffsetAndWhatCanBeRead) {
  const auto whole = make_pool_of_states();
  const std::string last = versioned::journal_name(versioned::list_journals(*whole)->back());
  bool is_told = false;
  for (uint64_t seed = 0; seed < 300 && !is_told; ++seed) {
    const auto disk = whole->after_kill();
    disk->flip_bit(last, seed);
    const auto pool = Pool::open(disk, {});
    is_told = !pool && pool.message().find("still readable") != std::string::npos;
    if (!is_told) continue;
    EXPECT_EQ(pool.code(), EIO);
    EXPECT_THAT(pool.message(), HasSubstr(last));
    EXPECT_THAT(pool.message(), HasSubstr("at offset"));
    EXPECT_THAT(pool.message(), HasSubstr("'s1'"));
  }
  EXPECT_TRUE(is_told);
}

}  // namespace
}  // namespace outcore::versioned_test
