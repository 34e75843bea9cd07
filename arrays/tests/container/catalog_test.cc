// The catalog on a storage whose writes fail, and which may keep what a process has read: what is
// acknowledged stays, and what cannot be proven to be damage is none.
#include "arrays/container/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>

namespace outcore::arrays {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::byte>;

constexpr uint64_t kPage = base::kSystemPage;

// Bytes in memory. Readers are not known, as in a store.
class Memory final : public ContainerStorage {
 public:
  explicit Memory(Bytes& there) : there_(there) {}
  std::function<int(uint64_t offset, uint64_t size_bytes)> fails_write = [](auto, auto) {
    return 0;
  };
  int fails_sync = 0;
  Bytes kept;  // if there are any, reads of them give these

  uint64_t size_bytes() const override { return there_.size(); }
  Status clear() override {
    there_.clear();
    return {};
  }
  Status grow(uint64_t size_bytes) override {
    there_.resize(std::max<uint64_t>(there_.size(), size_bytes));
    return {};
  }
  Status provide(uint64_t offset, uint64_t size_bytes) override {
    return grow(offset + size_bytes);
  }
  Status provide_sparse(uint64_t offset, uint64_t size_bytes) override {
    return grow(offset + size_bytes);
  }
  Status release(uint64_t, uint64_t) override { return {}; }
  Status read(uint64_t offset, std::span<std::byte> into) override {
    if (offset + into.size() > kept.size()) return read_anew(offset, into);
    std::memcpy(into.data(), &kept[offset], into.size());
    return {};
  }
  Status read_anew(uint64_t offset, std::span<std::byte> into) override {
    if (offset + into.size() > there_.size()) return Error{EIO, "it ends before"};
    std::memcpy(into.data(), &there_[offset], into.size());
    return {};
  }
  Status write(uint64_t offset, std::span<const std::byte> from) override {
    if (const int error = fails_write(offset, from.size()); error != 0)
      return Error{error, "no write"};
    if (offset + from.size() > there_.size()) return Error{EIO, "it ends before"};
    std::memcpy(&there_[offset], from.data(), from.size());
    return {};
  }
  Status read_runs(uint64_t, const Runs&, std::byte*) override { return Error{ENOTSUP, "runs"}; }
  Status write_runs(uint64_t, const Runs&, const std::byte*) override {
    return Error{ENOTSUP, "runs"};
  }
  Status sync() override { return fails_sync == 0 ? Status() : Error{fails_sync, "no sync"}; }
  Status forget(uint64_t, uint64_t) override { return {}; }
  Result<std::shared_ptr<Mapping>> map(const std::shared_ptr<ContainerStorage>&, uint64_t,
                                       uint64_t) override {
    return Error{ENOTSUP, "map"};
  }
  bool ends_where_used() const override { return false; }
  bool can_be_shared() const override { return false; }
  Status lock(Lease, bool, bool) override { return {}; }
  void unlock(Lease) override {}
  Status lock_range(uint64_t) override { return {}; }
  void unlock_range(uint64_t) override {}
  bool knows_readers() const override { return false; }
  Result<bool> is_locked_by_others(Lease) override { return false; }
  std::string uri() const override { return "memory"; }
  std::string identity() const override { return {}; }
  std::string describe() const override { return {}; }

 private:
  Bytes& there_;
};

class Catalogs : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(catalog_.create(text('0', 1)).ok()); }
  // A record that sets one attribute of the container, of so many bytes.
  static Change text(char letter, size_t size_bytes = 100'000) {
    Change change;
    change.has_attributes = true;
    change.attributes["t"] = std::string(size_bytes, letter);
    return change;
  }
  // The letter that who opens it now finds; -: it cannot be opened.
  char letter_now() {
    Memory memory(bytes_);
    Catalog catalog(memory);
    const Status s = catalog.load();
    EXPECT_TRUE(s.ok() || s.code() == EIO) << s.message();
    return s.ok() ? catalog.attributes().at("t")[0] : '-';
  }
  // The header of the second journal is in the first page.
  bool is_second_there() const { return bytes_[0] == std::byte{'O'}; }
  void write_second_journal() {
    for (const char letter : {'1', '2', '3'}) ASSERT_TRUE(catalog_.append(text(letter), true).ok());
    ASSERT_TRUE(is_second_there());
    ASSERT_EQ(letter_now(), '3');
  }
  void lose_first_page() { std::fill_n(bytes_.begin(), kPage, std::byte{0}); }

  Bytes bytes_;
  Memory memory_{bytes_};
  Catalog catalog_{memory_};
};

TEST_F(Catalogs, AMarkThatCannotBeWrittenLosesNoRecord) {
  memory_.fails_write = [](uint64_t offset, uint64_t size_bytes) {
    return offset < 2 * kPage && size_bytes < kPage ? ENOSPC : 0;
  };
  for (const char letter : {'1', '2', '3', '4', '5', '6', '7'}) {
    const Status s = catalog_.append(text(letter), true);
    ASSERT_TRUE(s.ok()) << s.message();
    EXPECT_EQ(letter_now(), letter);
  }
  EXPECT_TRUE(is_second_there());
}

// The new journal may count or not: a record in either could be lost.
TEST_F(Catalogs, NoRecordIsAcknowledgedAfterANewJournalThatMayCount) {
  bool is_written = false;
  memory_.fails_write = [&](uint64_t offset, uint64_t) {
    if (offset == 0 && is_written) memory_.fails_sync = EIO;
    is_written = is_written || offset > 256 * 1024 - 1;
    return 0;
  };
  char last = '0';
  bool has_failed = false;
  for (const char letter : {'1', '2', '3', '4', '5'}) {
    const bool is_there = catalog_.append(text(letter), true).ok();
    EXPECT_FALSE(is_there && has_failed) << letter;
    if (is_there) last = letter;
    has_failed = has_failed || !is_there;
    memory_.fails_sync = 0;
  }
  EXPECT_TRUE(has_failed);
  EXPECT_TRUE(is_second_there());
  EXPECT_EQ(letter_now(), last);
  Change small = text('s', 1);
  EXPECT_EQ(catalog_.append(small, false).code(), EIO);
}

TEST_F(Catalogs, AStoreThatHasLostTheHeaderOfItsLastJournalIsDamaged) {
  write_second_journal();
  lose_first_page();
  EXPECT_EQ(letter_now(), '-');
}

TEST_F(Catalogs, SoIsOneOfWhichTheSpareHeaderWasMended) {
  write_second_journal();
  std::fill_n(bytes_.begin() + kPage, kPage, std::byte{'x'});
  {
    Memory memory(bytes_);
    Catalog catalog(memory);
    ASSERT_TRUE(catalog.load().ok());
    ASSERT_TRUE(catalog.clean().ok());
  }
  EXPECT_EQ(letter_now(), '3');
  lose_first_page();
  EXPECT_EQ(letter_now(), '-');
}

// It has read the one page before the writer went on, and the other one afterwards.
TEST_F(Catalogs, AReaderThatAWriterOvertakesReadsWhatWas) {
  write_second_journal();
  Memory memory(bytes_);
  memory.kept.resize(kPage);
  Catalog catalog(memory);
  const Status s = catalog.load();
  ASSERT_TRUE(s.ok()) << s.message();
  EXPECT_EQ(catalog.attributes().at("t")[0], '2');
}

// Power may fail while the first page of the second journal is written, or the process may be
// killed: any part of the page is there.
TEST_F(Catalogs, AHeaderPageThatWasBegunIsNoDamage) {
  ASSERT_TRUE(catalog_.append(text('1'), true).ok());
  ASSERT_TRUE(catalog_.append(text('2'), true).ok());
  const Bytes before = bytes_;
  ASSERT_TRUE(catalog_.append(text('3'), true).ok());
  const Bytes after = bytes_;
  const auto expect_whole = [&](const std::string& what, bool counts) {
    Memory memory(bytes_);
    Catalog catalog(memory);
    ASSERT_TRUE(catalog.load().ok()) << what;
    EXPECT_EQ(catalog.attributes().at("t")[0], counts ? '3' : '2') << what;
    EXPECT_EQ(catalog.find_header_damage().value(), "") << what;
    ASSERT_TRUE(catalog.clean().ok()) << what;
    EXPECT_EQ(catalog.find_header_damage().value(), "") << what;
    // A mark that stayed would be one of a later second journal.
    EXPECT_TRUE(counts || std::count(bytes_.begin(), bytes_.begin() + kPage, std::byte{0}) == kPage)
        << what;
  };
  for (unsigned sectors = 0; sectors < 8; ++sectors) {
    bytes_ = before;
    if (sectors % 2 != 0) bytes_ = after;
    std::copy_n(before.begin(), kPage, bytes_.begin());
    const uint64_t from[] = {0, 2048, 3072};
    for (unsigned i = 0; i < 3; ++i)
      if ((sectors >> i & 1) != 0) std::copy_n(after.begin() + from[i], 512, &bytes_[from[i]]);
    expect_whole("sectors " + std::to_string(sectors), sectors % 2 != 0);
  }
  for (uint64_t end = 0; end <= kPage; end += 8) {
    bytes_ = end < 48 ? before : after;
    std::copy_n(before.begin(), kPage, bytes_.begin());
    std::copy_n(after.begin(), end, bytes_.begin());
    expect_whole("up to " + std::to_string(end), end >= 48);
  }
}

// As far as a mark has been written, in the page that counts and in the spare one.
TEST_F(Catalogs, AMarkThatWasBegunIsNoDamage) {
  write_second_journal();
  for (const uint64_t at : {uint64_t{2048}, kPage + 2048})
    for (uint64_t words = 1; words < 4; ++words) {
      const Bytes whole = bytes_;
      std::fill_n(bytes_.begin() + static_cast<long>(at + 8 * words), 32 - 8 * words, std::byte{0});
      Memory memory(bytes_);
      Catalog catalog(memory);
      ASSERT_TRUE(catalog.load().ok());
      EXPECT_EQ(catalog.find_header_damage().value(), "") << at << " " << words;
      bytes_ = whole;
    }
  bytes_[2048] ^= std::byte{1};
  Memory memory(bytes_);
  Catalog catalog(memory);
  ASSERT_TRUE(catalog.load().ok());
  EXPECT_THAT(catalog.find_header_damage().value(), HasSubstr("a mark of its header page, at 0"));
}

}  // namespace
}  // namespace outcore::arrays
