// `outcore arrays`: containers from outside, and files of other formats. What other programs write
// and read of them: python/tests/check_interchange.py.
#include "outcore/arrays.h"

#include <sys/stat.h>

#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

class ArraysCommand : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    auto out = Arrays::open(path("run.oca"), ArraysMode::kWrite);
    ASSERT_TRUE(out.ok()) << out.message();
    std::vector<double> u(4 * 5 * 6);
    for (size_t i = 0; i < u.size(); ++i) u[i] = static_cast<double>(i);
    ASSERT_TRUE(out->store_whole("u", {"<f8", 8}, {4, 5, 6}, u.data()).ok());
    ArrayOptions tiled;
    tiled.tiles = {2, 2, 2};
    tiled.order = Order::kColumn;
    ASSERT_TRUE(out->store_whole("v", {"<f8", 8}, {4, 5, 6}, u.data(), tiled).ok());
    ASSERT_TRUE(out->store("title", "a flame").ok());
    ASSERT_TRUE(out->set_attribute("u", "unit", "K").ok());
    ASSERT_TRUE(out->set_attribute("", "history", "made").ok());
    ASSERT_TRUE(out->close().ok());
  }
  Outcome arrays(std::string words) const {
    for (size_t at = 0; (at = words.find("DIR", at)) != std::string::npos; at += dir().size())
      words.replace(at, 3, dir());
    return run("arrays " + words);
  }
  void expect_refused(const std::string& words, int status, const std::string& says) const {
    const Outcome outcome = arrays(words);
    EXPECT_EQ(outcome.status, status) << words << ": " << outcome.err;
    EXPECT_EQ(outcome.error_lines(), 1u) << outcome.err;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << words << ": " << outcome.err;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir()))
      if (const std::string name = entry.path().filename(); name != "stderr") names.push_back(name);
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string bytes_of(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
};

TEST_F(ArraysCommand, DrainsAndFindsWhatHasGone) {
  const auto told = Json::parse_or_null(
      arrays("drain --json DIR/run.oca --to DIR/far.oca --rate 100M --remove").out);
  EXPECT_EQ(told["arrays"], 3);
  EXPECT_EQ(told["removed"], true);
  EXPECT_EQ(Json::parse_or_null(arrays("ls --json DIR/run.oca").out)["arrays"].size(), 3u);
  EXPECT_NE(arrays("info DIR/run.oca u").out.find("unit"), std::string::npos);
  EXPECT_NE(arrays("drain DIR/far.oca u --to DIR/more.oca").out.find("1 array, "),
            std::string::npos);
  expect_refused("drain DIR/run.oca --to DIR/run.oca", 2, "both are one container");
  expect_refused("drain DIR/run.oca --to DIR/x.oca --rate fast", 2, "fast");
  expect_refused("info pmem:DIR/run.oca?map_sync=of", 2, "did you mean 'off'");
  expect_refused("drain DIR/far.oca uu --to DIR/x.oca", 1, "did you mean");
  EXPECT_FALSE(std::filesystem::exists(path("x.oca")));
  // While the other container is away nobody knows whether it has an array of the name.
  ASSERT_EQ(arrays("export DIR/run.oca u --to DIR/u.npy").status, 0);
  expect_refused("import DIR/u.npy --to DIR/run.oca", 1, "add --replace");
  std::filesystem::rename(path("far.oca"), path("away.oca"));
  expect_refused("import DIR/u.npy --to DIR/run.oca", 1, "far.oca, which cannot be opened");
  expect_refused("info DIR/run.oca u", 1, "far.oca, which cannot be opened");
  EXPECT_EQ(arrays("ls DIR/run.oca").status, 0);
  EXPECT_EQ(arrays("import DIR/u.npy --to DIR/run.oca --replace").status, 0);
  EXPECT_EQ(arrays("info DIR/run.oca u").status, 0);
}

TEST_F(ArraysCommand, ForgedZarrsAreRefused) {
  const auto metadata = [](const std::string& dtype, const std::string& shape,
                           const std::string& rest) {
    return R"({"zarr_format":2,"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"chunks":)" +
           (rest.find("chunks") == std::string::npos ? shape : "[1048576]") +
           R"(,"order":"C","compressor":null,"filters":null,)" + rest + "}";
  };
  const std::string deep(200'000, '[');
  const std::string forged[][2] = {
      // 17 times as many bytes are 16 more than 64 bits hold
      {metadata(R"("|V17")", "[1085102592571150096]", R"("fill_value":0,"chunks":1)"), "shape"},
      {metadata(deep, "[4]", R"("fill_value":0)"), "JSON"},
      {metadata(R"("<f8")", "[4]", R"("fill_value":"AAAA")"), "fill_value"},
      {metadata(R"("<f8")", "[4]", R"("fill_value":0,"filters":[{"id":"x"}])"), "filter"}};
  int number = 0;
  for (const auto& [text, says] : forged) {
    const std::string name = "forged" + std::to_string(number++) + ".zarr";
    std::filesystem::create_directory(path(name));
    std::ofstream(path(name) + "/.zarray") << text;
    expect_refused("import DIR/" + name + " --to DIR/in.oca", 1, says);
  }
  EXPECT_FALSE(std::filesystem::exists(path("in.oca")));
  // A chunk that nobody will ever write to.
  std::filesystem::create_directory(path("pipe.zarr"));
  std::ofstream(path("pipe.zarr") + "/.zarray") << metadata(R"("<f8")", "[4]", R"("fill_value":1)");
  ASSERT_EQ(::mkfifo((path("pipe.zarr") + "/0").c_str(), 0600), 0);
  const Outcome outcome = arrays("import DIR/pipe.zarr --to DIR/in.oca");
  EXPECT_NE(outcome.status, 0);
  EXPECT_EQ(outcome.error_lines(), 1u) << outcome.err;
}

TEST_F(ArraysCommand, HalvesThatAreNotThereAreTheFill) {
  std::filesystem::create_directory(path("half.zarr"));
  for (const auto& [value, bits] :
       {std::pair{"-999", 0xe3ce}, std::pair{"0.0", 0}, std::pair{"1.5", 0x3e00},
        std::pair{"6.1035e-05", 0x0400}, std::pair{"6e-08", 1}, std::pair{"1e9", 0x7c00}}) {
    std::ofstream(path("half.zarr") + "/.zarray")
        << R"({"zarr_format":2,"dtype":"<f2","shape":[3],"chunks":[3],"order":"C",)"
        << R"("compressor":null,"filters":null,"fill_value":)" << value << "}";
    const Outcome outcome = arrays("import --replace DIR/half.zarr --to DIR/half.oca");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    uint16_t all[3] = {};
    const auto in = Arrays::open(path("half.oca"));
    ASSERT_TRUE(in->load_box("half", {"<f2", 2}, all, {0}, {3}).ok());
    EXPECT_EQ(all[2], bits) << value;
  }
}

TEST_F(ArraysCommand, AFolderOfOtherThingsIsNotReplaced) {
  std::filesystem::create_directory(path("mine.h5"));
  std::ofstream(path("mine.h5") + "/letter") << "dear";
  expect_refused("export DIR/run.oca u --to DIR/mine.h5 --replace", 1, "is a folder");
  std::filesystem::create_directory(path("mine.zarr"));
  std::ofstream(path("mine.zarr") + "/letter") << "dear";
  expect_refused("export DIR/run.oca u --to DIR/mine.zarr --replace", 1, "is a folder");
  EXPECT_TRUE(std::filesystem::exists(path("mine.h5") + "/letter"));
  EXPECT_TRUE(std::filesystem::exists(path("mine.zarr") + "/letter"));
}

TEST_F(ArraysCommand, ListsAndTells) {
  const auto all = Json::parse_or_null(arrays("ls --json DIR/run.oca").out)["arrays"];
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1]["name"], "u");
  EXPECT_EQ(all[1]["dims"], Json::array({4, 5, 6}));
  EXPECT_EQ(all[2]["order"], "column");
  EXPECT_EQ(all[2]["tiles"], Json::array({2, 2, 2}));
  const std::string text = arrays("ls DIR/run.oca").out;
  EXPECT_NE(text.find("4 x 5 x 6"), std::string::npos) << text;
  EXPECT_NE(text.find("v, column order, tiles of 2 x 2 x 2"), std::string::npos) << text;
  EXPECT_NE(arrays("info DIR/run.oca u").out.find("unit: K"), std::string::npos);
  const auto told = Json::parse_or_null(arrays("info --json DIR/run.oca").out);
  EXPECT_EQ(told["arrays"], 3);
  EXPECT_EQ(told["attributes"]["history"], "made");
  EXPECT_FALSE(told["bytes_travel"].as<std::string>().value().empty());
}

TEST_F(ArraysCommand, ArraysComeBackAsTheyWere) {
  for (const std::string ending : {".npy", ".npz", ".h5", ".nc", ".zarr"}) {
    for (const std::string name : {"u", "v"}) {
      const std::string file = "DIR/" + name + ending;
      const Outcome out = arrays("export DIR/run.oca " + name + " --to " + file);
      if (out.err.find("built without") != std::string::npos) continue;
      ASSERT_EQ(out.status, 0) << out.err;
      const Outcome in = arrays("import " + file + " --to DIR/back.oca --replace");
      ASSERT_EQ(in.status, 0) << in.err;
      const auto before = Arrays::open(path("run.oca")), after = Arrays::open(path("back.oca"));
      ASSERT_TRUE(before.ok() && after.ok());
      for (uint64_t i = 0; i < 120; ++i) {
        double a = -1, b = -2;
        const Dims at = {i / 30, i / 6 % 5, i % 6};
        ASSERT_TRUE(before->load(name, &a, at, {1, 1, 1}).ok());
        ASSERT_TRUE(after->load(name, &b, at, {1, 1, 1}).ok());
        ASSERT_EQ(a, b) << ending << " " << name << " " << i;
      }
      const bool has_attributes = name == "u" && !ending.starts_with(".np");
      EXPECT_EQ(after->attribute(name, "unit").value(), has_attributes ? "K" : "") << ending;
    }
  }
}

TEST_F(ArraysCommand, AnImportIsCompressedInTiles) {
  {
    auto out = Arrays::open(path("many.oca"), ArraysMode::kWrite);
    ASSERT_TRUE(out.ok()) << out.message();
    std::vector<double> u(300'000);
    for (size_t i = 0; i < u.size(); ++i) u[i] = static_cast<double>(i / 100);
    ASSERT_TRUE(out->store_whole("u", {"<f8", 8}, {50, 60, 100}, u.data()).ok());
    ASSERT_TRUE(out->store_whole("x", {"<f8", 8}, {100}, u.data()).ok());
    ASSERT_TRUE(out->store("title", "a flame").ok());
    ASSERT_TRUE(out->close().ok());
  }
  ASSERT_EQ(arrays("export DIR/many.oca --to DIR/many.npz").status, 0);
  const Outcome in =
      arrays("import DIR/many.npz --to DIR/packed.oca --compress zstd:5 --tiles 16,16,64");
  ASSERT_EQ(in.status, 0) << in.err;
  ASSERT_EQ(arrays("import DIR/many.npz u --to DIR/tiled.oca --tiles 16,16,64").status, 0);
  ASSERT_EQ(arrays("import DIR/many.npz u --to DIR/lz4.oca --compress lz4").status, 0);
  {
    const auto packed = Arrays::open(path("packed.oca")), tiled = Arrays::open(path("tiled.oca")),
               lz4 = Arrays::open(path("lz4.oca"));
    ASSERT_TRUE(packed.ok() && tiled.ok() && lz4.ok());
    const ArrayInfo u = packed->info("u").value();
    EXPECT_EQ(u.compress, "zstd:5");
    EXPECT_EQ(u.tiles, (Dims{16, 16, 64}));
    EXPECT_EQ(packed->info("x")->tiles, Dims{100});  // as large as it is
    EXPECT_EQ(tiled->info("u")->tiles, u.tiles);
    EXPECT_EQ(tiled->info("u")->compress, "");
    EXPECT_EQ(lz4->info("u")->compress, "lz4");
    for (const Arrays* one : {&packed.value(), &tiled.value(), &lz4.value()}) {
      std::vector<double> row(100);
      ASSERT_TRUE(one->load("u", row.data(), {49, 58, 0}, {1, 1, 100}).ok());
      EXPECT_EQ(row, std::vector<double>(100, 49 * 60 + 58));
    }
  }
  EXPECT_NE(arrays("ls DIR/packed.oca").out.find("u, tiles of 16 x 16 x 64, zstd:5\n"),
            std::string::npos);
  EXPECT_EQ(Json::parse_or_null(arrays("info --json DIR/packed.oca u").out)["compress"], "zstd:5");
  const std::string one = arrays("info DIR/packed.oca u").out;
  EXPECT_NE(one.find("zstd:5"), std::string::npos) << one;
  EXPECT_NE(one.find("at most"), std::string::npos) << one;
  const auto told = Json::parse_or_null(arrays("info --json DIR/packed.oca").out);
  EXPECT_EQ(told["file_bytes"], std::filesystem::file_size(path("packed.oca")));
  struct stat facts {};
  ASSERT_EQ(::stat(path("packed.oca").c_str(), &facts), 0);
  EXPECT_EQ(told["disk_bytes"], facts.st_blocks * 512);
  EXPECT_LT(told["disk_bytes"], told["file_bytes"]);
  EXPECT_NE(arrays("info DIR/packed.oca").out.find("on the disk"), std::string::npos);
  // And out again, the same.
  ASSERT_EQ(arrays("export DIR/packed.oca --to DIR/again.npz").status, 0);
  ASSERT_EQ(arrays("import DIR/again.npz --to DIR/again.oca").status, 0);
  const auto before = Arrays::open(path("many.oca")), after = Arrays::open(path("again.oca"));
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ(before->load<std::vector<double>>("u").value(),
            after->load<std::vector<double>>("u").value());
}

// Pieces of whole tiles are no runs of the file: 80 rows of 1 MiB, of which a piece has 0.8 MiB
// each.
TEST_F(ArraysCommand, WideTilesHaveTheRightElements) {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (80, 1048576), }";
  header.resize(117, ' ');
  std::string all = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + '\n';
  const size_t before = all.size();
  all.resize(before + (80 << 20));
  uint64_t random = 1;
  for (size_t i = before; i < all.size(); ++i) {
    random = random * 6364136223846793005 + 1442695040888963407;
    all[i] = static_cast<char>(random >> 56);
  }
  std::ofstream(path("wide.npy"), std::ios::binary) << all;
  const auto expect_same = [&](const std::string& file, const std::string& to) {
    const Outcome in =
        arrays("import DIR/" + file + " --to DIR/" + to + " --compress lz4 --tiles 80,1000");
    ASSERT_EQ(in.status, 0) << in.err;
    ASSERT_EQ(arrays("export DIR/" + to + " wide --to DIR/again.npy --replace").status, 0);
    EXPECT_EQ(outcome_of("cmp " + path("again.npy") + " " + path("wide.npy")).status, 0) << file;
  };
  expect_same("wide.npy", "wide.oca");
  const Outcome out = arrays("export DIR/wide.oca wide --to DIR/wide.npz");
  if (out.err.find("built without") != std::string::npos) GTEST_SKIP() << out.err;
  ASSERT_EQ(out.status, 0) << out.err;
  expect_same("wide.npz", "two.oca");
}

// One interrupt that comes twice, as from `timeout`, is one: what was begun goes.
TEST_F(ArraysCommand, AnInterruptLeavesNoHalfOfAFile) {
  auto out = Arrays::open(path("large.oca"), ArraysMode::kWrite);
  ASSERT_TRUE(out.ok() && out->alloc("large", {"<f8", 8}, {uint64_t{1} << 27}).ok());
  ASSERT_TRUE(out->close().ok());
  std::filesystem::create_directory(path("to"));
  const Outcome outcome = outcome_of(
      "cd " + dir() + "; " + command_path() + " arrays export large.oca --to to/large.npy & " +
      "n=0; until [ -n \"$(ls -A to)\" ] || [ $n -gt 100000 ]; do n=$((n+1)); done; "
      "kill -TERM $!; kill -INT $!; wait $!; echo $?; ls -A to");
  EXPECT_EQ(outcome.out, "1\n") << outcome.err;
}

TEST_F(ArraysCommand, ASliceIsThatPart) {
  ASSERT_EQ(arrays("export DIR/run.oca u --slice 1:3,:,-1 --to DIR/part.npy").status, 0);
  ASSERT_EQ(arrays("import DIR/part.npy --to DIR/part.oca").status, 0);
  const auto part = Arrays::open(path("part.oca"));
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->load_dims("part").value(), (Dims{2, 5}));
  const auto values = part->load<std::vector<double>>("part").value();
  EXPECT_EQ(values.front(), 35);
  EXPECT_EQ(values.back(), 89);
}

TEST_F(ArraysCommand, ShowsNumbersAndValues) {
  const Outcome shown = arrays("show DIR/run.oca u --slice 2,:,: --out DIR/u.png --json");
  if (shown.err.find("built without") != std::string::npos) GTEST_SKIP() << shown.err;
  ASSERT_EQ(shown.status, 0) << shown.err;
  const auto told = Json::parse_or_null(shown.out);
  EXPECT_EQ(told["min"], 60);
  EXPECT_EQ(told["max"], 89);
  EXPECT_EQ(told["mean"], 74.5);
  EXPECT_TRUE(bytes_of("u.png").starts_with("\x89PNG"));
  expect_refused("show DIR/run.oca u --out DIR/u.png", 1, "--replace");
  EXPECT_EQ(arrays("show DIR/run.oca u --slice 1,2,3").out, "45\n");
  EXPECT_EQ(arrays("show DIR/run.oca title").out, "a flame\n");
}

// A killed process of the same number: in a container that is each time the first one.
TEST_F(ArraysCommand, ShowsInSpiteOfAPartThatWasLeft) {
  const Outcome shown =
      outcome_of("cd " + dir() + " && sh -c 'echo left >.u.png.$$.part; exec " + command_path() +
                 " arrays show run.oca u --slice 2,:,: --out u.png'");
  if (shown.err.find("built without") != std::string::npos) GTEST_SKIP() << shown.err;
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_TRUE(bytes_of("u.png").starts_with("\x89PNG"));
}

TEST_F(ArraysCommand, WhatIsWrongIsSaidAndChangesNothing) {
  ASSERT_EQ(arrays("export DIR/run.oca u --to DIR/u.npy").status, 0);
  std::ofstream(path("cut.npy"), std::ios::binary) << bytes_of("u.npy").substr(0, 500);
  std::ofstream(path("text.npy")) << "no array at all";
  std::string pickled = bytes_of("u.npy");
  pickled.replace(pickled.find("'<f8'"), 5, "'|O' ");
  std::ofstream(path("pickled.npy"), std::ios::binary) << pickled;
  const auto before = files();
  const std::string container = bytes_of("run.oca");
  expect_refused("ls DIR/u.npy", 1, "u.npy");
  expect_refused("ls DIR/none.oca", 1, "none.oca");
  expect_refused("info DIR/run.oca ux", 1, "did you mean");
  expect_refused("export DIR/run.oca ux --to DIR/x.npy", 1, "did you mean");
  expect_refused("export DIR/run.oca u --to DIR/x.csv", 2, ".zarr");
  expect_refused("export DIR/run.oca --to DIR/x.npy", 2, "one array");
  expect_refused("export DIR/run.oca u --to DIR/u.npy", 1, "--replace");
  expect_refused("export DIR/run.oca u --slice 4,:,: --to DIR/x.npy", 2, "outside");
  expect_refused("export DIR/run.oca u --slice 0:9 --to DIR/x.npy", 2, "outside");
  expect_refused("export DIR/run.oca u --slice a --to DIR/x.npy", 2, "neither");
  expect_refused("export DIR/run.oca u --slice ::2 --to DIR/x.npy", 2, "step");
  expect_refused("export DIR/run.oca u --slice :,:,:,: --to DIR/x.npy", 2, "dimensions");
  expect_refused("export DIR/run.oca u --to DIR/none/x.npy", 1, "none");
  expect_refused("import DIR/u.npy --to DIR/run.oca", 1, "--replace");
  expect_refused("import DIR/u.npy x --to DIR/run.oca", 1, "it has u");
  expect_refused("import DIR/cut.npy --to DIR/new.oca", 1, "truncated");
  expect_refused("import DIR/text.npy --to DIR/new.oca", 1, "not an .npy file");
  expect_refused("import DIR/pickled.npy --to DIR/new.oca", 1, "pickled");
  for (const std::string to : {"DIR/new.oca", "DIR/run.oca --replace"}) {
    expect_refused("import DIR/u.npy --compress zip --to " + to, 2, "zstd:LEVEL");
    expect_refused("import DIR/u.npy --compress zstd:20 --to " + to, 2, "zstd:LEVEL");
    expect_refused("import DIR/u.npy --tiles 2,2 --to " + to, 2, "2 dimensions");
    expect_refused("import DIR/u.npy --tiles 2,0,2 --to " + to, 2, "--tiles 64,64,64");
    expect_refused("import DIR/u.npy --tiles 2,x --to " + to, 2, "--tiles 64,64,64");
  }
  expect_refused("import DIR/u.npy --to DIR/cut.npy", 1, "cut.npy");
  expect_refused("show DIR/run.oca u --slice : --out DIR/x.png", 2, "two");
  EXPECT_EQ(files(), before);
  EXPECT_EQ(bytes_of("run.oca"), container);
}

}  // namespace
}  // namespace outcore::cli
