// Objects: structs and containers in a container of arrays are what was stored, or one line.
#include "outcore/arrays_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cereal/archives/portable_binary.hpp>
#include <cereal/types/polymorphic.hpp>
#include <cerrno>
#include <sstream>

#include "tests/folder.h"

namespace outcore {

struct Probe {
  std::string name;
  int64_t step = 0;
  std::map<int, std::vector<double>> samples;
  std::optional<std::string> note;
  bool operator==(const Probe&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, step, samples, note);
  }
};

// The same name for two generations of a type, as two releases of a program have it.
struct Before {
  int32_t a = 0;
  float b = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(a, b);
  }
};
template <typename Number>
struct After {
  Number a = 0;
  float b = 0;
  std::vector<std::string> more;
  template <class Archive>
  void serialize(Archive& archive) {
    if constexpr (std::is_same_v<Number, float>)
      archive(a, b);
    else
      archive(a, b, more);
  }
};
template <>
struct ObjectName<Before> {
  static std::string get() { return "Generation"; }
};
template <typename Number>
struct ObjectName<After<Number>> {
  static std::string get() { return "Generation"; }
};

// Its number is read as a count of strings by Counts.
struct Number {
  uint64_t value = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(value);
  }
};
struct Counts {
  std::vector<std::array<double, 1000>> values;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(values);
  }
};
template <>
struct ObjectName<Number> {
  static std::string get() { return "Counted"; }
};
template <>
struct ObjectName<Counts> {
  static std::string get() { return "Counted"; }
};

struct Nothing {};

struct Stubborn {
  bool is_ok = false;
  template <class Archive>
  void save(Archive& archive) const {
    archive(is_ok);
    if (!is_ok) throw 7;  // banned-ok: programs may
  }
  template <class Archive>
  void load(Archive& archive) {
    archive(is_ok);
    throw std::runtime_error("I will\nnot");  // banned-ok: programs may
  }
};

struct Shape {
  virtual ~Shape() = default;
  virtual double area() const = 0;
};
struct Square : Shape {
  double side = 0;
  double area() const override { return side * side; }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(side);
  }
};
struct Unregistered : Square {};

}  // namespace outcore

CEREAL_REGISTER_TYPE(outcore::Square);
CEREAL_REGISTER_POLYMORPHIC_RELATION(outcore::Shape, outcore::Square);

namespace outcore {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Objects : public testing::Test {
 protected:
  Arrays open(ArraysMode mode = ArraysMode::kUpdate) const {
    auto opened = Arrays::open(folder_ / "objects.oca", mode);
    EXPECT_TRUE(opened.ok()) << opened.message();
    return std::move(opened).value();
  }
  // Through the file: what another process would load.
  template <typename T>
  Result<T> again(const T& value) const {
    Arrays out = open();
    if (Status s = store_object(out, "it", value); !s) return s.error();
    if (Status s = out.close(); !s) return s.error();
    return load_object<T>(open(ArraysMode::kRead), "it");
  }
  template <typename T>
  void expect_same(const T& value) const {
    const auto loaded = again(value);
    ASSERT_TRUE(loaded.ok()) << loaded.message();
    EXPECT_TRUE(loaded.value() == value) << ObjectName<T>::get();
  }
  // One line that says so, of this errno.
  template <typename T>
  void expect_refused(const Result<T>& loaded, int code, const std::string& why) const {
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.code(), code) << loaded.message();
    EXPECT_THAT(loaded.message(), AllOf(HasSubstr(why), HasSubstr("'it'"), Not(HasSubstr("\n"))));
  }
  scene::Folder folder_;
};

TEST_F(Objects, WhatIsStoredIsLoadedByAnotherWhoOpensIt) {
  expect_same(Probe{"left", 12, {{3, {1.5, -2}}, {-1, {}}}, "hot"});
  expect_same(std::vector<Probe>(3, Probe{"x", 1, {}, {}}));
  expect_same(std::map<std::string, int>{{"a", 1}, {"b", 2}});
  expect_same(std::vector<std::string>{"", "two", std::string("\0x", 2)});
  expect_same(std::vector<std::vector<std::vector<float>>>{{{1, 2}, {}}, {}, {{3}}});
  expect_same(std::optional<int>());
  expect_same(std::variant<int, std::string, std::vector<double>>(std::vector<double>{1, 2}));
  expect_same(std::tuple<bool, char, std::complex<double>>(true, 'x', {1, 2}));
  expect_same(std::unordered_map<uint64_t, std::set<std::string>>{{7, {"a", "b"}}});
  expect_same(std::deque<std::pair<int8_t, std::list<bool>>>{{-3, {true, false}}});
  expect_same(std::vector<bool>{true, false, true});
  expect_same(std::array<std::string, 2>{"a", "b"});
  expect_same(std::string("a text"));
  expect_same(42);
}

struct Fixed {
  double at[3] = {};
  int table[2][2] = {};
  std::array<bool, 3> flags{};
  template <class Archive>
  void serialize(Archive& archive) {
    archive(at, table, flags);
  }
};

TEST_F(Objects, ArraysOfFixedSizeAreWithin) {
  const auto loaded = again(Fixed{{1.5, 2, 3}, {{4, 5}, {6, 7}}, {true, false, true}});
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  EXPECT_EQ(loaded->at[2], 3);
  EXPECT_EQ(loaded->table[1][0], 6);
  EXPECT_TRUE(loaded->flags[2] && !loaded->flags[1]);
}

TEST_F(Objects, LongOnesAndEmptyOnesToo) {
  std::map<std::string, std::vector<double>> all;
  for (int i = 0; i < 300; ++i) all[std::to_string(i)] = std::vector<double>(1000, i);
  expect_same(all);  // 2.4 MB
  expect_same(std::vector<int>());
  expect_same(std::string());
  expect_same(Probe{});
}

TEST_F(Objects, PointersAreFollowedAndClassesAreThemselves) {
  auto square = std::make_shared<Square>();
  square->side = 3;
  const std::vector<std::shared_ptr<Shape>> twice(2, square);
  const auto loaded = again(twice);
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  ASSERT_EQ(loaded->size(), 2u);
  EXPECT_EQ(loaded->at(0)->area(), 9);
  EXPECT_EQ(loaded->at(0), loaded->at(1)) << "one object is stored once";
  const auto refused = again<std::shared_ptr<Shape>>(std::make_shared<Unregistered>());
  expect_refused(refused, EINVAL, "cereal");
}

TEST_F(Objects, ItIsAnArrayAmongOthers) {
  Arrays out = open();
  ASSERT_TRUE(out.store("u", std::vector<double>{1, 2}).ok());
  ASSERT_TRUE(store_object(out, "it", std::vector<std::string>{"a"}).ok());
  ASSERT_TRUE(store_object(out, "it", std::vector<std::string>{"b", "c"}).ok());
  ASSERT_TRUE(out.set_attribute("it", "what", "names").ok());
  ASSERT_TRUE(out.rename("it", "names").ok());
  EXPECT_EQ(load_object<std::vector<std::string>>(out, "names").value().size(), 2u)
      << "before it is finished";
  ASSERT_TRUE(out.close().ok());
  const Arrays in = open(ArraysMode::kRead);
  EXPECT_EQ(in.type_of("names").value().name, "object");
  EXPECT_EQ(in.attribute("names", "what").value(), "names");
  const auto gone = load_object<std::vector<std::string>>(in, "nmes");
  EXPECT_EQ(gone.code(), ENOENT);
  EXPECT_THAT(gone.message(), HasSubstr("names"));
}

TEST_F(Objects, TheArchiveIsThatOfCereal) {
  const Probe probe{"left", 12, {{3, {1.5}}}, {}};
  Arrays out = open();
  ASSERT_TRUE(store_object(out, "it", probe).ok());
  auto kept = arrays::load_object_bytes(out, "it", ObjectName<Probe>::get());
  ASSERT_TRUE(kept.ok()) << kept.message();
  std::ostringstream cereals;
  {
    cereal::PortableBinaryOutputArchive archive(
        cereals, cereal::PortableBinaryOutputArchive::Options::LittleEndian());
    archive(probe);
  }
  EXPECT_EQ(kept->archive(), cereals.str());
}

TEST_F(Objects, AnotherTypeIsRefusedAndBothAreNamed) {
  Arrays out = open();
  ASSERT_TRUE(store_object(out, "it", std::map<std::string, double>{}).ok());
  const auto as_vector = load_object<std::vector<std::string>>(out, "it");
  expect_refused(as_vector, EINVAL, "it holds map<string,<f8>, not vector<string>");
  expect_refused(load_object<std::map<std::string, float>>(out, "it"), EINVAL, "map<string,<f4>");
  expect_refused(load_object<Probe>(out, "it"), EINVAL, "not outcore::Probe");
  EXPECT_EQ(out.load<double>("it").code(), EINVAL);
  ASSERT_TRUE(out.store("it", 1.5).ok());
  expect_refused(load_object<double>(out, "it"), EINVAL, "it holds <f8, not an object");
  ASSERT_TRUE(out.store("it", "text").ok());
  expect_refused(load_object<std::string>(out, "it"), EINVAL, "it holds text, not an object");
  const std::string others = "bytes of somebody's, longer than any head of ours is";
  ASSERT_TRUE(out.store_whole("it", {"object", 1}, {others.size()}, others.data()).ok());
  expect_refused(load_object<std::string>(out, "it"), EINVAL, "not an object of outcore");
}

TEST_F(Objects, ATypeThatHasChangedIsRefused) {
  Arrays out = open();
  ASSERT_TRUE(store_object(out, "it", Before{1, 2}).ok());
  EXPECT_EQ(load_object<Before>(out, "it").value().a, 1);
  expect_refused(load_object<After<float>>(out, "it"), EINVAL, "other parts");    // as many bytes
  expect_refused(load_object<After<int32_t>>(out, "it"), EINVAL, "other parts");  // more of them
  ASSERT_TRUE(store_object(out, "it", After<int32_t>{1, 2, {"x"}}).ok());
  expect_refused(load_object<Before>(out, "it"), EINVAL, "other parts");  // some are left
}

TEST_F(Objects, SizesThatTheBytesCannotHoldAllocateNothing) {
  Arrays out = open();
  for (const uint64_t count :
       {uint64_t{4097}, uint64_t{1} << 32, uint64_t{1} << 62, ~uint64_t{0}}) {
    ASSERT_TRUE(store_object(out, "it", Number{count}).ok());
    expect_refused(load_object<Counts>(out, "it"), EINVAL, "more elements than bytes");
  }
  ASSERT_TRUE(store_object(out, "it", std::vector<Nothing>(4096)).ok());
  EXPECT_EQ(load_object<std::vector<Nothing>>(out, "it").value().size(), 4096u);
  const Status refused = store_object(out, "it", std::vector<Nothing>(4097));
  EXPECT_EQ(refused.code(), EINVAL);
  EXPECT_THAT(refused.message(), HasSubstr("elements of no bytes"));
  EXPECT_EQ(load_object<std::vector<Nothing>>(out, "it").value().size(), 4096u) << "it stays";
}

TEST_F(Objects, WhatItsOwnCodeThrowsIsAnError) {
  Arrays out = open();
  const Status thrown = store_object(out, "it", Stubborn{false});
  EXPECT_EQ(thrown.code(), EINVAL);
  EXPECT_FALSE(out.has("it"));
  ASSERT_TRUE(store_object(out, "it", Stubborn{true}).ok());
  expect_refused(load_object<Stubborn>(out, "it"), EINVAL, "I will not");
}

TEST_F(Objects, BytesThatAreCutOrChangedAreRefusedWhereverTheyAre) {
  const Probe probe{"left", 12, {{3, {1.5, 2.5}}, {4, {}}}, "note"};
  Arrays out = open();
  ASSERT_TRUE(store_object(out, "it", probe).ok());
  const std::string whole = out.load<std::string>("it").value();
  const auto put = [&](const std::string& bytes) {
    ASSERT_TRUE(out.store_whole("it", {"object", 1}, {bytes.size()}, bytes.data()).ok());
  };
  for (size_t size = 0; size < whole.size(); ++size) {
    put(whole.substr(0, size));
    expect_refused(load_object<Probe>(out, "it"), EIO, "damaged");
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x41);
    put(bytes);
    const auto refused = load_object<Probe>(out, "it");
    ASSERT_FALSE(refused.ok()) << "byte " << at;
    EXPECT_THAT(refused.message(), Not(HasSubstr("\n")));
  }
  put(whole);
  EXPECT_TRUE(load_object<Probe>(out, "it").value() == probe);
}

// With the right sum, as somebody would forge it: whatever the archive's bytes are.
TEST_F(Objects, ForgedArchivesAreRefusedOrLoaded) {
  using All = std::tuple<Probe, std::variant<int, std::string>, std::vector<bool>, std::bitset<9>,
                         std::shared_ptr<Shape>, std::unordered_map<int, std::vector<Probe>>>;
  auto square = std::make_shared<Square>();
  const All all{Probe{"left", 12, {{3, {1.5}}}, "n"}, "text", {true}, 5, square, {{1, {{}, {}}}}};
  Arrays out = open();
  const std::string type = ObjectName<All>::get();
  ASSERT_TRUE(store_object(out, "it", all).ok());
  const auto kept = arrays::load_object_bytes(out, "it", type);
  const std::string archive(kept->archive());
  size_t refused = 0;
  for (size_t at = 0; at < archive.size(); ++at)
    for (const int change : {1, 2, 0x7f, 0x80, 0xff}) {
      std::string bytes = arrays::object_head(type) + archive;
      char& byte = bytes[bytes.size() - archive.size() + at];
      byte = static_cast<char>(byte ^ change);
      ASSERT_TRUE(arrays::store_object_bytes(out, "it", &bytes, kept->shape).ok());
      const auto loaded = load_object<All>(out, "it");
      if (loaded.ok()) continue;
      ++refused;
      EXPECT_THAT(loaded.message(), Not(HasSubstr("\n")));
    }
  EXPECT_GT(refused, archive.size()) << "most of the bytes are sizes";
}

}  // namespace
}  // namespace outcore
