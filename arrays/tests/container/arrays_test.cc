// Named arrays by one process: what is stored is loaded, by any box, type, order and tiles, on
// files and on other stores; what is wrong is refused in one line.
#include "outcore/arrays.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "tests/folder.h"

namespace outcore {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::vector<double> numbers(uint64_t count, double first = 0) {
  std::vector<double> all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

// What a box of an array whose elements are numbered in row order holds.
std::vector<double> box_of(const Dims& shape, const Dims& at, const Dims& dims) {
  std::vector<double> all;
  Dims i(dims.size(), 0);
  for (;;) {
    uint64_t number = 0;
    for (size_t d = 0; d < shape.size(); ++d) number = number * shape[d] + at[d] + i[d];
    all.push_back(static_cast<double>(number));
    size_t d = dims.size();
    while (d > 0 && ++i[d - 1] == dims[d - 1]) i[--d] = 0;
    if (d == 0) return all;
  }
}

class ArraysOn : public testing::TestWithParam<std::string> {
 protected:
  std::string uri(const std::string& name = "a") const {
    std::string uri = GetParam();
    for (const auto& [word, by] : {std::pair{"FOLDER", folder_.path()}, {"NAME", name}})
      if (const size_t at = uri.find(word); at != std::string::npos)
        uri.replace(at, std::string(word).size(), by);
    return uri;
  }
  static Arrays open(const std::string& uri, ArraysMode mode = ArraysMode::kRead) {
    auto opened = Arrays::open(uri, mode);
    EXPECT_TRUE(opened.ok()) << opened.message();
    return std::move(opened).value();
  }
  scene::Folder folder_;
};

TEST_P(ArraysOn, NothingIsKeptThatCouldNotBeReadAgain) {
  {
    Arrays out = open(uri(), ArraysMode::kWrite);
    ArrayOptions options;
    options.tiles = {1, uint64_t{1} << 63};
    EXPECT_EQ(out.alloc<double>("x", {0, uint64_t{1} << 63}, options).code(), EINVAL);
    ASSERT_TRUE(out.store("y", 1).ok());
    ASSERT_TRUE(out.close().ok());
  }
  if (GetParam().starts_with("memory")) return;  // it has gone
  EXPECT_EQ(open(uri()).load<int>("y").value(), 1);
}

TEST_P(ArraysOn, WhatIsStoredIsThereWhenItIsOpenedAgain) {
  {
    Arrays out = open(uri(), ArraysMode::kWrite);
    ASSERT_TRUE(out.store("step", 12).ok());
    ASSERT_TRUE(out.store("title", "a flame").ok());
    ASSERT_TRUE(out.store("v", numbers(5000)).ok());
    ASSERT_TRUE(out.store("z", std::complex<float>(1, 2)).ok());
    ASSERT_TRUE(out.store("is", true).ok());
    ASSERT_TRUE(out.alloc<float>("empty", {0, 7}).ok());
    ASSERT_TRUE(out.alloc<int16_t>("zeros", {100, 100}).ok());
    ASSERT_TRUE(out.set_attribute("v", "unit", "K").ok());
    ASSERT_TRUE(out.set_attribute("", "code", "S3D").ok());
    ASSERT_EQ(out.close().message(), "");
  }
  const Arrays in = open(uri());
  EXPECT_EQ(in.load<int>("step").value(), 12);
  EXPECT_EQ(in.load<std::string>("title").value(), "a flame");
  EXPECT_EQ(in.load<std::vector<double>>("v").value(), numbers(5000));
  EXPECT_EQ(in.load<std::complex<float>>("z").value(), std::complex<float>(1, 2));
  EXPECT_TRUE(in.load<bool>("is").value());
  EXPECT_EQ(in.load_dims("empty").value(), (Dims{0, 7}));
  EXPECT_EQ(in.load<std::vector<int16_t>>("zeros").value(), std::vector<int16_t>(10'000));
  EXPECT_EQ(in.type_of("v")->name, "<f8");
  EXPECT_EQ(in.attribute("v", "unit").value(), "K");
  EXPECT_EQ(in.attribute("", "code").value(), "S3D");
  std::vector<std::string> names;
  for (const ArrayInfo& info : in.list()) names.push_back(info.name);
  EXPECT_THAT(names, testing::ElementsAre("empty", "is", "step", "title", "v", "z", "zeros"));
}

TEST_P(ArraysOn, BoxesAreStoredAndLoadedByOtherBoxes) {
  const Dims shape = {13, 40, 50};
  for (const Dims& tiles : {Dims{}, Dims{4, 16, 16}, Dims{13, 1, 50}, Dims{100, 100, 100}}) {
    const std::string at = uri("boxes" + std::to_string(tiles.empty() ? 0 : tiles[0] + tiles[1]));
    {
      Arrays out = open(at, ArraysMode::kWrite);
      ASSERT_TRUE(out.alloc<double>("u", shape, {Order::kRow, tiles}).ok());
      for (const auto& [x, nx] : {std::pair{0, 6}, {6, 7}})
        for (const auto& [y, ny] : {std::pair{0, 17}, {17, 23}})
          for (const auto& [z, nz] : {std::pair{0, 3}, {3, 47}}) {
            const Dims from = {uint64_t(x), uint64_t(y), uint64_t(z)},
                       dims = {uint64_t(nx), uint64_t(ny), uint64_t(nz)};
            const auto part = box_of(shape, from, dims);
            ASSERT_TRUE(out.store("u", part.data(), from, dims).ok());
          }
      ASSERT_EQ(out.close().message(), "");
    }
    const Arrays in = open(at);
    EXPECT_EQ(in.load<std::vector<double>>("u").value(), numbers(13 * 40 * 50));
    std::mt19937 random(7);
    for (int i = 0; i < 50; ++i) {
      Dims from(3), dims(3);
      uint64_t count = 1;
      for (size_t d = 0; d < 3; ++d) {
        from[d] = random() % shape[d];
        dims[d] = 1 + random() % (shape[d] - from[d]);
        count *= dims[d];
      }
      std::vector<double> part(count, -1);
      ASSERT_TRUE(in.load("u", part.data(), from, dims).ok());
      ASSERT_EQ(part, box_of(shape, from, dims));
    }
    const auto view = in.view<double>("u");
    if (!tiles.empty()) {
      EXPECT_EQ(view.code(), ENOTSUP);
      continue;
    }
    ASSERT_TRUE(view.ok()) << view.message();
    EXPECT_TRUE(view->is_dense());
    EXPECT_EQ(view.value()(12, 39, 49), 13 * 40 * 50 - 1);
    const auto part = in.view<double>("u", {3, 4, 5}, {2, 3, 4});
    ASSERT_TRUE(part.ok()) << part.message();
    EXPECT_FALSE(part->is_dense());
    EXPECT_EQ(part.value()(1, 2, 3), box_of(shape, {4, 6, 8}, {1, 1, 1})[0]);
  }
}

TEST_P(ArraysOn, ColumnOrderIsKeptAndNamesStayTrue) {
  {
    Arrays out = open(uri(), ArraysMode::kWrite);
    const double columns[] = {0, 3, 1, 4, 2, 5};  // of {{0, 1, 2}, {3, 4, 5}}
    ASSERT_TRUE(out.alloc<double>("c", {2, 3}, {Order::kColumn, {}}).ok());
    ASSERT_TRUE(out.store("c", columns, {0, 0}, {2, 3}).ok());
    ASSERT_TRUE(out.alloc<double>("big", {500, 300}, {Order::kColumn, {64, 64}}).ok());
    const auto part = numbers(20 * 30);
    ASSERT_TRUE(out.store("big", part.data(), {100, 200}, {20, 30}).ok());
    ASSERT_EQ(out.close().message(), "");
  }
  const Arrays in = open(uri());
  const auto view = in.view<double>("c");
  ASSERT_TRUE(view.ok()) << view.message();
  EXPECT_EQ(view.value()(1, 0), 3);
  EXPECT_EQ(view.value()(0, 2), 2);
  std::vector<double> row(3);
  ASSERT_TRUE(in.load("c", row.data(), {1, 0}, {1, 3}).ok());
  EXPECT_EQ(row, (std::vector<double>{3, 4, 5}));
  double one = 0;
  ASSERT_TRUE(in.load("big", &one, {103, 205}, {1, 1}).ok());
  EXPECT_EQ(one, 5 * 20 + 3);
}

TEST_P(ArraysOn, ArraysAreReplacedRenamedAndRemovedAndTheirSpaceIsUsedAgain) {
  ASSERT_TRUE(open(uri(), ArraysMode::kWrite).store("u", numbers(100'000)).ok());
  Arrays out = open(uri(), ArraysMode::kUpdate);
  ASSERT_TRUE(out.store("u", numbers(100'000, 5)).ok());
  EXPECT_EQ(out.load<std::vector<double>>("u")->front(), 5);
  EXPECT_EQ(out.alloc<double>("u", {3}).code(), EEXIST);
  ASSERT_TRUE(out.flush().ok());
  ASSERT_TRUE(out.rename("u", "w").ok());
  EXPECT_EQ(out.rename("u", "x").code(), ENOENT);
  ASSERT_TRUE(out.store("s", 1).ok());
  EXPECT_EQ(out.rename("w", "s").code(), EEXIST);
  const double seven = 7;
  ASSERT_EQ(out.store("w", &seven, {10}, {1}).message(), "") << "in place";
  ASSERT_EQ(out.close().message(), "");
  {
    const Arrays in = open(uri());
    EXPECT_FALSE(in.has("u"));
    EXPECT_EQ(in.load<std::vector<double>>("w").value()[10], 7);
    EXPECT_EQ(in.load<std::vector<double>>("w").value()[11], 16);
  }
  Arrays again = open(uri(), ArraysMode::kUpdate);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(again.remove("w").ok());
    ASSERT_TRUE(again.store("w", numbers(100'000, i)).ok());
    ASSERT_TRUE(again.flush().ok());
    EXPECT_EQ(again.load<std::vector<double>>("w")->back(), 99'999 + i);
  }
}

TEST_P(ArraysOn, WhatIsWrongIsRefusedInOneLineAndNothingIsWritten) {
  EXPECT_EQ(Arrays::open(uri("none")).code(), ENOENT);
  {
    Arrays out = open(uri(), ArraysMode::kWrite);
    ASSERT_TRUE(out.alloc<double>("temperature", {10, 10}).ok());
    const auto some = numbers(100);
    const auto wrong = [](const Status& s, int code, const std::string& why) {
      EXPECT_EQ(s.code(), code) << s.message();
      EXPECT_THAT(s.message(), AllOf(HasSubstr(why), Not(HasSubstr("\n"))));
    };
    wrong(out.store("temperatur", some.data(), {0, 0}, {1, 1}), ENOENT,
          "did you mean 'temperature'");
    wrong(out.store("temperature", some.data(), {5, 5}, {6, 1}), EINVAL, "5 + 6 in dimension 0");
    wrong(out.store("temperature", some.data(), {UINT64_MAX, 0}, {2, 1}), EINVAL, "dimension 0");
    wrong(out.store("temperature", some.data(), {5}, {5}), EINVAL, "2 dimensions");
    const std::vector<float> floats(4);
    wrong(out.store("temperature", floats.data(), {0, 0}, {2, 2}), EINVAL, "<f8, not <f4");
    wrong(out.alloc<double>("huge", {UINT64_MAX, 3}), EINVAL, "4 EiB");
    wrong(out.alloc<double>("huge", {uint64_t{1} << 61}), EINVAL, "4 EiB");
    wrong(out.alloc<double>("", {1}), EINVAL, "1 to 255");
    wrong(out.alloc<double>("many", Dims(33, 1)), EINVAL, "at most 32");
    wrong(out.alloc<double>("t", {4, 4}, {Order::kRow, {2}}), EINVAL, "tiles");
    wrong(out.alloc("t", {">f8", 8}, {4}), EINVAL, "not a type");
    wrong(out.alloc<float>("temperature", {10, 10}), EEXIST, "same");
    wrong(out.load<int>("temperature").status(), EINVAL, "<f8, not <i4");
    wrong(out.remove("x"), ENOENT, "no array 'x'");
    ASSERT_EQ(out.close().message(), "");
    wrong(out.store("late", 1), EBADF, "closed");
  }
  Arrays in = open(uri());
  EXPECT_EQ(in.store("x", 1).code(), EACCES);
  EXPECT_EQ(in.list().size(), 1u);
  EXPECT_EQ(in.load<std::vector<double>>("temperature").value(), std::vector<double>(100));
}

TEST_P(ArraysOn, ManyArraysOutgrowTheFirstJournal) {
  constexpr int kCount = 1000;
  const std::string prefix(230, 'n');  // that the journal of 248 KiB is soon full
  const auto name_at = [&](int i) { return prefix + std::to_string(i); };
  const auto count_of = [](int i) { return i % 7 == 0 ? 40 : 1200; };  // in the journal, and not
  {
    Arrays out = open(uri(), ArraysMode::kWrite);
    for (int i = 0; i < kCount; ++i)
      ASSERT_EQ(out.store(name_at(i), numbers(count_of(i), i)).message(), "");
    ASSERT_EQ(out.close().message(), "");
  }
  const Arrays in = open(uri());
  ASSERT_EQ(in.list().size(), static_cast<size_t>(kCount));
  for (int i = 0; i < kCount; ++i)
    ASSERT_EQ(in.load<std::vector<double>>(name_at(i)).value(), numbers(count_of(i), i));
  if (const std::string path = folder_ / "a.oca"; std::filesystem::exists(path)) {
    std::string first(7, ' ');
    std::ifstream(path, std::ios::binary).read(first.data(), 7);
    EXPECT_EQ(first, "OUTCARR") << "there is no header of a second journal";
  }
}

std::string name_of(const testing::TestParamInfo<std::string>& about) {
  const std::vector<std::string> names = {"File", "Pmem", "PmemWithoutMapSync", "Sparse",
                                          "Versioned"};
  return names[about.index];
}

INSTANTIATE_TEST_SUITE_P(Stores, ArraysOn,
                         testing::Values("FOLDER/NAME.oca", "pmem:FOLDER/NAME.oca",
                                         "pmem:FOLDER/NAME.oca?map_sync=off",
                                         "sparse:FOLDER/NAME?segment=1M",
                                         "versioned:FOLDER/pool?object=NAME"),
                         name_of);

TEST(Arrays, AFileThatIsNoContainerIsLeftAlone) {
  const scene::Folder folder;
  const std::string path = folder.path() + "/thesis.txt";
  std::ofstream(path) << std::string(10'000, 'x');
  for (const ArraysMode mode : {ArraysMode::kRead, ArraysMode::kWrite, ArraysMode::kUpdate})
    EXPECT_THAT(Arrays::open(path, mode).message(), HasSubstr("not a container"));
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), std::string(10'000, 'x'));
}

TEST(Arrays, ASecondWriterIsRefusedAndReadersAreNot) {
  const scene::Folder folder;
  const std::string path = folder.path() + "/a.oca";
  auto first = Arrays::open(path, ArraysMode::kWrite);
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(first->store("u", numbers(1000)).ok());
  EXPECT_EQ(Arrays::open(path, ArraysMode::kUpdate).code(), EBUSY);
  EXPECT_EQ(Arrays::open(path)->list().size(), 0u) << "it is not finished";
  ASSERT_TRUE(first->flush().ok());
  {
    const auto reader = Arrays::open(path);
    ASSERT_TRUE(reader.ok()) << reader.message();
    EXPECT_EQ(reader->load<std::vector<double>>("u").value(), numbers(1000));
    const double one = 1;
    EXPECT_EQ(first->store("u", &one, {0}, {1}).code(), EBUSY) << "somebody reads it";
    ASSERT_TRUE(first->store("u", numbers(1000, 1)).ok());
    ASSERT_TRUE(first->flush().ok());
    EXPECT_EQ(reader->load<std::vector<double>>("u").value(), numbers(1000)) << "as it was";
  }
  ASSERT_TRUE(first->close().ok());
  EXPECT_EQ(Arrays::open(path)->load<std::vector<double>>("u").value(), numbers(1000, 1));
}

TEST(Arrays, AFileThatBeginsWithZerosIsNotANewContainer) {
  const scene::Folder folder;
  const std::string path = folder.path() + "/dump";
  std::ofstream(path) << std::string(1 << 20, '\0') << "data";
  for (const ArraysMode mode : {ArraysMode::kWrite, ArraysMode::kUpdate})
    EXPECT_EQ(Arrays::open(path, mode).code(), EINVAL);
  EXPECT_EQ(std::ifstream(path, std::ios::ate).tellg(), (1 << 20) + 4);
}

TEST(Arrays, AWholeArrayIsCheckedAsRoomForOneIs) {
  const scene::Folder folder;
  const std::string path = folder.path() + "/a.oca";
  Arrays out = Arrays::open(path, ArraysMode::kWrite).value();
  const auto some = numbers(100);
  EXPECT_EQ(out.store_whole("u", {"V2000000", 2'000'000}, {1}, some.data()).code(), EINVAL);
  EXPECT_EQ(out.store_whole("u", {"<f8", 4}, {100}, some.data()).code(), EINVAL);
  EXPECT_EQ(out.store_whole("u", {}, {100}, some.data()).code(), EINVAL);
  EXPECT_EQ(out.store_whole("u", {"<f8", 8}, {100}, some.data(), {Order::kRow, {2, 2}}).code(),
            EINVAL);
  EXPECT_EQ(out.store_whole("u", {"<f8", 8}, {100}, some.data(), {Order::kRow, {0}}).code(),
            EINVAL);
  EXPECT_EQ(out.store("a\nb", 1).code(), EINVAL);
  ASSERT_TRUE(out.store_whole("u", {"<f8", 8}, {100}, some.data(), {Order::kRow, {7}}).ok());
  ASSERT_EQ(out.close().message(), "");
  EXPECT_EQ(out.load<int>("u").code(), EBADF);
  EXPECT_EQ(Arrays::open(path)->load<std::vector<double>>("u").value(), some);
}

TEST(Arrays, WhatAViewShowsIsNotUsedAgain) {
  const scene::Folder folder;
  const std::string path = folder.path() + "/a.oca";
  ASSERT_TRUE(Arrays::open(path, ArraysMode::kWrite)->store("u", numbers(100'000)).ok());
  Arrays out = Arrays::open(path, ArraysMode::kUpdate).value();
  const auto view = out.view<double>("u");
  ASSERT_TRUE(view.ok()) << view.message();
  ASSERT_TRUE(out.remove("u").ok());
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(out.store("v" + std::to_string(i), numbers(100'000, 1)).ok());
  ASSERT_TRUE(out.close().ok());
  EXPECT_EQ(Arrays::open(path, ArraysMode::kWrite).code(), EBUSY);
  for (uint64_t i = 0; i < 100'000; ++i) ASSERT_EQ(view->span()[i], static_cast<double>(i));
}

TEST(Arrays, AFileThatWasRenamedIsStillTheOneThatIsOpen) {
  const scene::Folder folder;
  const std::string path = folder.path() + "/a.oca", other = folder.path() + "/b.oca";
  ASSERT_TRUE(Arrays::open(path, ArraysMode::kWrite)->store("u", numbers(50'000)).ok());
  ASSERT_TRUE(Arrays::open(other, ArraysMode::kWrite)->store("u", numbers(50'000, 7)).ok());
  const auto in = Arrays::open(path);
  std::filesystem::rename(other, path);
  EXPECT_EQ(in->view<double>("u")->span()[0], 0);
  EXPECT_EQ(Arrays::open(path)->view<double>("u")->span()[0], 7);
}

TEST(Arrays, AViewOutlivesItsContainer) {
  const scene::Folder folder;
  const std::string path = folder.path() + "/a.oca";
  ASSERT_TRUE(Arrays::open(path, ArraysMode::kWrite)->store("u", numbers(1'000'000)).ok());
  auto view = [&] {
    auto in = Arrays::open(path);
    return in->view<double>("u");
  }();
  ASSERT_TRUE(view.ok()) << view.message();
  double sum = 0;
  for (const double x : view->span()) sum += x;
  EXPECT_EQ(sum, 999'999.0 * 500'000);
}

}  // namespace
}  // namespace outcore
