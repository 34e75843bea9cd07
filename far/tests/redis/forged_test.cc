// Records and fences that others wrote, with all that a field can be but what it should be: one
// clear line and an errno, and what is right is served as before.
#include "far/store/redis_store.h"
#include "far/tests/redis/redis_case.h"
#include "far/tests/redis/shared_servers.h"
#include "outcore/shared_writers.h"

namespace outcore::redis_test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kMissing = "(missing)";
const std::string kLong(3000, '9');

struct Forgery {
  std::string field;
  std::vector<std::string> wrong;
};

// What no store has there. Each of them was taken as it is, or as 0, by whoever read it.
const std::vector<Forgery>& forgeries() {
  static const std::vector<std::string> no_number = {"",
                                                     "-1",
                                                     "abc",
                                                     "0x10",
                                                     "1e9",
                                                     "inf",
                                                     "nan",
                                                     " 1",
                                                     "1 ",
                                                     "1.5",
                                                     kLong,
                                                     "1\n2",
                                                     "18446744073709551616"};
  const auto with = [](std::vector<std::string> more) {
    more.insert(more.end(), no_number.begin(), no_number.end());
    return more;
  };
  static const std::vector<Forgery> all = {
      {"id",
       {"", "0", kLong, "0123456789abcdeg", "0123456789abcdef0", "{}:0123456789ab", kMissing}},
      {"name", {"", "b", kLong, kMissing}},
      {"chunk", with({"0", "1", "4095", "5000", "2097152", "18446744073709551615", kMissing})},
      {"parts", with({"0", "3", "2048", "4096", "4294967297", kMissing})},
      {"replicas", with({"17", "4294967296", kMissing})},
      {"size", with({"99999999999999999", kMissing})},
      {"token", with({"9999999999999999"})},
      {"chance", {"-1", "1048576", kLong, "x"}},
      {"booked", {"-1", "abc", kLong}},
      {"lease", {"-1", "abc", kLong, "1e300"}},
      {"deadline", {"-1", "abc", kLong}},
      {"lifetime", {"-1", "abc", kLong}},
      {"owner", {"a\nb", std::string("a\0b", 3), "\033[2J"}},
      {"checksum", {"a\nb"}},
      {"packing", {"brotli", "lz4\nx", kLong}},
  };
  return all;
}

class RedisForged : public RedisTest {
 protected:
  static constexpr char kAlone[] = "replicas=0&timeout=3s";
  void SetUp() override {
    RedisTest::SetUp();
    if (IsSkipped()) return;
    start();
    EXPECT_EQ(make("a", kSize, kAlone)->write(0, random_bytes(kSize, 1)), 0);
    EXPECT_EQ(make("b", kSize, kAlone)->write(0, random_bytes(kSize, 2)), 0);
    const redis::Value fields = servers_->ask(0, {"HGETALL", record_of("a")});
    for (size_t i = 0; i + 1 < fields.items.size(); i += 2)
      right_.push_back({fields.items[i].text, fields.items[i + 1].text});
  }
  void restore() {
    servers_->ask(0, {"DEL", record_of("a")});
    for (const auto& [field, value] : right_) set_field(0, "a", field, value);
    set_field(0, "a", "token", std::to_string(++token_));  // fences know those of before
  }
  void forge(const std::string& field, const std::string& value) {
    restore();
    if (value == kMissing)
      servers_->ask(0, {"HDEL", record_of("a"), field});
    else
      set_field(0, "a", field, value);
  }
  static void expect_one_line(const std::string& message) {
    EXPECT_THAT(message, Not(testing::IsEmpty()));
    EXPECT_THAT(message, Not(HasSubstr("\n")));
    EXPECT_LT(message.size(), 600u);
  }

  std::vector<std::pair<std::string, std::string>> right_;
  int token_ = 1000;
};

TEST_F(RedisForged, FieldsOfARecordAreCheckedWhereverItIsRead) {
  const std::string uri = servers_->uri("a", kAlone);
  for (const auto& [field, values] : forgeries())
    for (const std::string& value : values) {
      SCOPED_TRACE(field + " = '" + value.substr(0, 30) + "'");
      forge(field, value);
      const auto reader = open_store(uri);
      // What a writer replaces.
      const bool can_mend = field == "owner" || field == "chance" || field == "checksum";
      EXPECT_FALSE(reader.ok());
      expect_one_line(reader.message());
      if (field == "packing" && value == "brotli") {
        EXPECT_EQ(reader.code(), ENOTSUP) << reader.message();
        continue;
      }
      EXPECT_EQ(reader.code(), EIO) << reader.message();
      EXPECT_THAT(reader.message(), HasSubstr("'" + field + "'"));
      EXPECT_EQ(stored_bytes(uri).code(), EIO);
      const auto stores = list_stores(uri);
      ASSERT_TRUE(stores.ok()) << stores.message();
      for (const StoreInfo& one : stores.value())
        EXPECT_EQ(one.damage.empty(), one.name == "b") << one.damage;
      forge(field, value);
      const auto writer = open_store(uri, writable());
      EXPECT_EQ(writer.ok(), can_mend) << writer.message();
      if (!can_mend) {
        EXPECT_EQ(writer.code(), EIO) << writer.message();
        EXPECT_EQ(open_store(uri, writable()).code(), EIO) << "it keeps no lease";
        expect_one_line(remove_store(uri).message());
      }
    }
  restore();
  EXPECT_EQ(read_all(*open_store(uri).value()), random_bytes(kSize, 1));
  EXPECT_EQ(read_all(*open_store(servers_->uri("b", kAlone)).value()), random_bytes(kSize, 2));
}

TEST_F(RedisForged, AnotherKindOfValueInThePlaceOfARecordIsToldAndHidesNoOther) {
  const std::string uri = servers_->uri("a", kAlone);
  servers_->ask(0, {"SET", record_of("a"), "what?"});
  EXPECT_EQ(open_store(uri).code(), EIO);
  EXPECT_EQ(open_store(uri, writable(kSize)).code(), EIO);
  EXPECT_EQ(list_stores(uri).value().size(), 2u);
  EXPECT_TRUE(make("c", kSize, kAlone) != nullptr) << "what others book is counted all the same";
  servers_->ask(0, {"DEL", record_of("a")});
  EXPECT_EQ(open_store(uri).code(), ENOENT);
  EXPECT_EQ(list_stores(uri).value().size(), 3u);
}

TEST_F(RedisForged, CountsOfFencesAreChecked) {
  const std::string uri = servers_->uri("a", kAlone);
  const auto fences = servers_->ask(0, {"KEYS", "oc:{*}:*:f"}).items;
  ASSERT_FALSE(fences.empty());
  for (const std::string& value : {std::string("x"), std::string("-3"), std::string(), kLong}) {
    SCOPED_TRACE(value.substr(0, 30));
    for (const redis::Value& fence : fences) servers_->ask(0, {"HSET", fence.text, "seq", value});
    EXPECT_EQ(open_store(uri).code(), EIO);
    const auto writer = open_store(uri, writable());
    EXPECT_FALSE(writer.ok());
    expect_one_line(writer.message());
    for (const redis::Value& fence : fences)
      servers_->ask(0, {"HSET", fence.text, "seq", "5", "chunks", value});
    EXPECT_EQ(stored_bytes(uri).code(), EIO);
    for (const redis::Value& fence : fences) servers_->ask(0, {"HSET", fence.text, "chunks", "1"});
  }
}

// A record that says a size without end: its removal asks for no more chunks than there are.
TEST_F(RedisForged, ARemovalEndsWhateverTheSizeIs) {
  const std::string uri = servers_->uri("a", kAlone);
  forge("size", "9000000000000000");
  const Status removed = remove_store(uri);
  EXPECT_TRUE(removed.ok()) << removed.message();
  EXPECT_EQ(open_store(uri).code(), ENOENT);
}

TEST_F(RedisForged, MembersOfASharedLeaseAreChecked) {
  const std::string uri = servers_->uri("s", kAlone);
  auto joined = outcore::open_shared_store(uri, writable(kSize));
  ASSERT_TRUE(joined.ok()) << joined.message();
  const auto first = joined.value();
  EXPECT_TRUE(first->be_writer(true).ok());
  for (const std::string& value :
       {std::string(), std::string("x"), kLong + " o who", std::string("-1 w who"),
        std::string("1"), std::string("99 ww who")}) {
    SCOPED_TRACE(value.substr(0, 30));
    set_field(0, "s", "member:00000000000000aa", value);
    EXPECT_TRUE(first->lock(SharedWriters::kCatalogLock, true).ok());
    first->unlock(SharedWriters::kCatalogLock);
    EXPECT_TRUE(first->are_other_writers().ok());
  }
  set_field(0, "s", "size", "many");
  const Status locked = first->lock(SharedWriters::kCatalogLock, true);
  EXPECT_EQ(locked.code(), EIO) << locked.message();
  expect_one_line(locked.message());
}

// What a server said before another thread made the store larger, and is heard after it.
TEST_F(RedisForged, AnOlderAnswerDoesNotMakeASharedStoreSmaller) {
  auto joined = outcore::open_shared_store(servers_->uri("s", kAlone), writable(kSize));
  ASSERT_TRUE(joined.ok()) << joined.message();
  Store& store = joined.value()->store();
  EXPECT_EQ(store.resize(2 * kSize), 0);
  set_field(0, "s", "size", std::to_string(kSize));
  EXPECT_TRUE(joined.value()->lock("range 0", true).ok());
  EXPECT_EQ(store.size_bytes(), 2 * kSize);
  Bytes bytes(100);
  EXPECT_EQ(store.read(2 * kSize - 100, bytes), 0);
}

}  // namespace
}  // namespace outcore::redis_test
