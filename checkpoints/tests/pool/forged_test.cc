// The fuzz of the format's checker, past the checksums: records that are sealed and say what no
// writer would. Whatever they say, nothing crashes, hangs or takes all memory; a pool that opens
// can be verified and written.
//
// VERSIONED_SEEDS=N: half as many forgeries; OUTCORE_TEST_SHARE=N: one part in N of the usual ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "checkpoints/pool/pool.h"
#include "checkpoints/pool/verify.h"
#include "checkpoints/tests/pool/model.h"
#include "checkpoints/tests/pool/pools.h"
#include "checkpoints/tests/pool/sim_disk.h"
#include "tests/share.h"

namespace outcore::versioned_test {
namespace {

using versioned::Pool;
using versioned::Record;
using versioned::RecordHeader;

constexpr uint64_t kSmallestChunk = versioned::kChunkBytesMin;

uint64_t forgery_count() { return number_of("VERSIONED_SEEDS", scene::share_of(2000)) / 2; }

std::shared_ptr<SimDisk> make_pool_to_forge() {
  const auto disk = std::make_shared<SimDisk>(1);
  const auto pool = open_pool(disk, kSmallestChunk, 1000);
  const auto a = pool->create("a", 12 * kSmallestChunk).value(),
             b = pool->create("b", kSmallestChunk).value();
  const std::vector<std::byte> bytes(kSmallestChunk, std::byte{7});
  for (uint64_t state = 1; state <= 8; ++state) {
    for (uint64_t chunk = state % 3; chunk < 12; chunk += 2)
      EXPECT_EQ(pool->write(*a, chunk * kSmallestChunk, bytes), 0);
    EXPECT_EQ(pool->write(*b, 0, bytes), 0);
    EXPECT_TRUE(pool->commit("s" + std::to_string(state), "of a test").ok());
    if (state == 4) {
      EXPECT_TRUE(pool->remove({"s2"}).ok());
    }
    if (state == 5) {
      EXPECT_TRUE(pool->rename("s3", "three").ok());
    }
  }
  EXPECT_TRUE(pool->close().ok());
  return disk->after_kill();
}

std::vector<Record> records_of(SimDisk& disk, const std::string& name) {
  const auto file = disk.open(name, versioned::Disk::Mode::kRead, false).value();
  versioned::JournalReader reader(*file, name);
  std::vector<Record> all;
  for (Record record; reader.next(record) == versioned::JournalReader::Next::kRecord;)
    all.push_back(record);
  EXPECT_FALSE(all.empty());
  return all;
}

void write_back(SimDisk& disk, const std::string& name, const std::vector<Record>& records) {
  std::vector<std::byte> bytes;
  for (Record record : records) {
    record.header.payload_bytes = record.payload.size();
    record.header.payload_sum = versioned::checksum_of(record.payload);
    const RecordHeader header = versioned::sealed(record.header);
    const auto* const from = reinterpret_cast<const std::byte*>(&header);
    bytes.insert(bytes.end(), from, from + sizeof header);
    bytes.insert(bytes.end(), record.payload.begin(), record.payload.end());
    bytes.resize((bytes.size() + versioned::kRecordAlignment - 1) / versioned::kRecordAlignment *
                 versioned::kRecordAlignment);
  }
  const auto file = disk.open(name, versioned::Disk::Mode::kCreate, false).value();
  ASSERT_EQ(file->write(0, bytes), 0);
  ASSERT_EQ(file->sync(), 0);
}

// Numbers at which mistakes are made.
uint64_t strange(sim::Random& random) {
  constexpr uint64_t kStrange[] = {0,          1,          2,          0x7F,           0xFF,
                                   0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF,     0x100000000,
                                   INT64_MAX,  UINT64_MAX, 1u << 20,   kSmallestChunk, 13};
  return kStrange[random.below(std::size(kStrange))];
}

void forge(Record& record, sim::Random& random) {
  auto& payload = record.payload;
  switch (random.below(7)) {
    case 0:
    case 1:
    case 2:
      if (payload.empty()) break;
      {
        const uint64_t value = strange(random), at = random.below(payload.size());
        const size_t size = std::min<size_t>(size_t{1} << random.below(4), payload.size() - at);
        std::memcpy(payload.data() + at, &value, size);
      }
      break;
    case 3:
      payload.resize(random.below(payload.size() + 1));
      break;
    case 4:
      payload.resize(payload.size() + 1 + random.below(64), std::byte{0xFF});
      break;
    case 5:
      record.header.type = static_cast<uint16_t>(random.below(14));
      break;
    default:
      record.header.commit = static_cast<uint32_t>(strange(random));
  }
}

void use(const std::shared_ptr<SimDisk>& disk, uint64_t* opened) {
  for (const char* name : {"", "s1", "three", "s8"}) {
    const auto at = versioned::Snapshot::open(disk, name);
    if (!at) continue;
    std::vector<std::byte> bytes(kSmallestChunk);
    if (const auto* object = at.value()->find("a"); object != nullptr)
      for (uint64_t chunk = 0; chunk < std::min<uint64_t>(object->size_bytes / kSmallestChunk, 50);
           ++chunk)
        static_cast<void>(at.value()->read(*object, chunk * kSmallestChunk, bytes));
  }
  const auto pool = Pool::open(disk, {});
  if (!pool) {
    EXPECT_TRUE(pool.code() == EIO || pool.code() == EINVAL || pool.code() == ENOMEM)
        << pool.message();
    EXPECT_FALSE(pool.message().empty());
    return;
  }
  ++*opened;
  EXPECT_TRUE(pool.value()->is_valid());
  const auto checked = versioned::verify_pool(disk);
  EXPECT_TRUE(checked.ok() || checked.code() == EIO || checked.code() == ENOENT)
      << checked.message();
  const std::vector<std::byte> bytes(kSmallestChunk, std::byte{9});
  for (const auto& object : pool.value()->objects())
    if (object->size_bytes() >= kSmallestChunk) {
      EXPECT_EQ(pool.value()->write(*object, 0, bytes), 0);
      std::vector<std::byte> back(kSmallestChunk);
      EXPECT_EQ(pool.value()->read(*object, 0, back), 0);
      EXPECT_EQ(back, bytes);
    }
  EXPECT_TRUE(pool.value()->commit("after").ok() || pool.value()->has_checkpoint("after"));
}

// The number of the next one would begin anew, at 0: it could never be read.
TEST(Forged, ACommitPastTheLastThatThereCanBeIsRefused) {
  const auto whole = make_pool_to_forge();
  ASSERT_TRUE(Pool::open(whole, {}).value()->commit("behind the base").ok());
  const std::string name = versioned::journal_name(versioned::list_journals(*whole)->back());
  for (const uint32_t commit : {UINT32_MAX - 1, UINT32_MAX})
    for (const versioned::RecordType type :
         {versioned::RecordType::kBase, versioned::RecordType::kCommit}) {
      const auto disk = whole->after_kill();
      std::vector<Record> records = records_of(*disk, name);
      const auto last = std::find_if(records.rbegin(), records.rend(),
                                     [&](const Record& r) { return r.type() == type; });
      ASSERT_NE(last, records.rend());
      last->header.commit = commit;
      write_back(*disk, name, records);
      EXPECT_EQ(Pool::open(disk, {}).code(), EIO) << commit;
    }
}

TEST(Forged, RecordsWithRightChecksumsDoNoHarm) {
  const auto whole = make_pool_to_forge();
  const auto journals = versioned::list_journals(*whole).value();
  uint64_t opened = 0;
  for (uint64_t seed = 0; seed < forgery_count() && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto disk = whole->after_kill();
    sim::Random random(seed);
    const std::string name = versioned::journal_name(
        random.below(3) == 0 ? journals[random.below(journals.size())] : journals.back());
    std::vector<Record> records = records_of(*disk, name);
    switch (random.below(8)) {
      case 0:
        records.erase(records.begin() + static_cast<ptrdiff_t>(random.below(records.size())));
        break;
      case 1: {
        const Record again = records[random.below(records.size())];
        records.insert(records.begin() + static_cast<ptrdiff_t>(random.below(records.size() + 1)),
                       again);
        break;
      }
      case 2:
        std::swap(records[random.below(records.size())], records[random.below(records.size())]);
        break;
      default:
        forge(records[random.below(records.size())], random);
    }
    if (random.below(2) == 0)  // else they are refused for their order alone
      for (size_t i = 1; i < records.size(); ++i)
        records[i].header.sequence = records[0].header.sequence + i;
    write_back(*disk, name, records);
    use(disk, &opened);
  }
  EXPECT_GT(opened, forgery_count() / 20) << "most of what is forged is not even looked at";
}

}  // namespace
}  // namespace outcore::versioned_test
