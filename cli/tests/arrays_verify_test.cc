// `outcore arrays verify`, what copies of damaged arrays say, and messages of a full disk.
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "cli/tests/command_line.h"
#include "outcore/arrays.h"

namespace outcore::cli {
namespace {

class ArraysVerifyCommand : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    auto out = Arrays::open(container_, ArraysMode::kWrite);
    ASSERT_TRUE(out.ok()) << out.message();
    for (size_t i = 0; i < numbers_.size(); ++i) numbers_[i] = static_cast<double>(i);
    ASSERT_TRUE(out->store("u", numbers_).ok());
    ASSERT_TRUE(out->store("v", numbers_).ok());
    ASSERT_TRUE(out->close().ok());
  }
  // The first copy of the numbers is u's.
  void damage(uint64_t byte) const {
    std::fstream file(container_, std::ios::binary | std::ios::in | std::ios::out);
    const std::string all{std::istreambuf_iterator<char>(file), {}};
    const size_t at = all.find(std::string(reinterpret_cast<const char*>(numbers_.data()), 4000));
    ASSERT_NE(at, std::string::npos);
    file.seekp(static_cast<std::streamoff>(at + byte));
    file.put(static_cast<char>(all[at + byte] ^ 1));
  }
  void overwrite(uint64_t at, const std::string& with) const {
    std::fstream file(container_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at)).write(with.data(), std::ssize(with));
  }
  std::string bytes() const {
    std::ifstream file(container_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<double> numbers_ = std::vector<double>(300'000);
  const std::string container_ = path("run.oca");
};

TEST_F(ArraysVerifyCommand, WhatIsWholeIsToldSo) {
  const Outcome all = run("arrays verify " + container_);
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_EQ(all.out, "2 arrays, 4.6 MiB read, 0 damaged places\n");
  EXPECT_EQ(all.err, "");
  EXPECT_EQ(run("arrays verify " + container_ + " v").out,
            "1 array, 2.3 MiB read, 0 damaged places\n");
  const Outcome absent = run("arrays verify " + container_ + " w");
  EXPECT_EQ(absent.status, 1);
  EXPECT_NE(absent.err.find("no array 'w'"), std::string::npos) << absent.err;
}

TEST_F(ArraysVerifyCommand, EachDamageIsALineWithItsPlaceAndTheStatusIs1) {
  damage((1 << 20) + 100);
  damage((2 << 20) + 100);
  const Outcome all = run("arrays verify " + container_);
  EXPECT_EQ(all.status, 1);
  EXPECT_EQ(all.error_lines(), 1U) << all.err;
  EXPECT_NE(all.err.find("run.oca is damaged in 2 places: go back to a copy"), std::string::npos);
  EXPECT_EQ(std::count(all.out.begin(), all.out.end(), '\n'), 3) << all.out;
  EXPECT_EQ(all.out.rfind("u is damaged: bytes 1048576 to 2097151, at ", 0), 0U) << all.out;
  EXPECT_NE(all.out.find("\nu is damaged: bytes 2097152 to 2399999, at "), std::string::npos);
  EXPECT_EQ(run("arrays verify " + container_ + " v").status, 0);
  const Outcome json = run("arrays verify --json " + container_);
  EXPECT_EQ(json.status, 1);
  const auto told = Json::parse_or_null(json.out);
  EXPECT_EQ(told["damages"], 2) << json.out;
  EXPECT_EQ(told["damaged"][0]["array"], "u");
}

TEST_F(ArraysVerifyCommand, DamageIsNotHandedOn) {
  damage(8);
  for (const std::string& copy : {"export " + container_ + " u --to " + path("u.npy"),
                                  "drain " + container_ + " u --to " + path("to.oca")}) {
    const Outcome outcome = run("arrays " + copy);
    EXPECT_EQ(outcome.status, 1) << copy;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find("is damaged: bytes 0 to 1048575"), std::string::npos) << outcome.err;
  }
  EXPECT_FALSE(std::filesystem::exists(path("u.npy")));
  EXPECT_EQ(run("arrays export " + container_ + " v --to " + path("v.npy")).status, 0);
}

TEST_F(ArraysVerifyCommand, ADamagedHeaderIsNoForeignFile) {
  std::fstream file(container_, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(4096);
  file.write("xx", 2);
  file.close();
  for (const char* verb : {"verify", "ls", "info"}) {
    const Outcome outcome = run(std::string("arrays ") + verb + " " + container_);
    EXPECT_EQ(outcome.status, 1) << verb;
    EXPECT_NE(outcome.err.find("is damaged"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("is not a container"), std::string::npos) << outcome.err;
  }
}

TEST_F(ArraysVerifyCommand, ALostPageOfTheCatalogIsNoEmptyContainer) {
  ASSERT_EQ(run("arrays export " + container_ + " u --to " + path("w.npy")).status, 0);
  overwrite(8192, std::string(4096, '\0'));
  const std::string before = bytes();
  for (const std::string& command : {"verify " + container_, "ls " + container_,
                                     "import " + path("w.npy") + " --to " + container_}) {
    const Outcome outcome = run("arrays " + command);
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find("run.oca is damaged: its record at 8192: go back to a copy of it"),
              std::string::npos)
        << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_EQ(bytes(), before);
}

TEST_F(ArraysVerifyCommand, ALostHeaderPageIsToldThoughTheArraysAreWhole) {
  overwrite(0, std::string(4096, 'x'));
  const Outcome told = run("arrays verify " + container_);
  EXPECT_EQ(told.status, 1);
  EXPECT_EQ(told.out.rfind(container_ + " is damaged: its spare header page, at 0: ", 0), 0U)
      << told.out;
  EXPECT_NE(told.out.find("2 arrays, 4.6 MiB read, 1 damaged place\n"), std::string::npos);
  EXPECT_EQ(run("arrays export " + container_ + " u --to " + path("u.npy")).status, 0);
}

// One line that says what, where, why, and what to do; no half of a file.
TEST_F(ArraysVerifyCommand, AFullDiskIsOneLineWithTheRemedy) {
  const std::string full = path("full");
  std::filesystem::create_directory(full);
  if (::mount("none", full.c_str(), "tmpfs", 0, "size=1M") != 0)
    GTEST_SKIP() << "a small disk is mounted by root alone: " << std::strerror(errno);
  const auto expect_told = [&](const std::string& command) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_EQ(outcome.error_lines(), 1U) << command << ": " << outcome.err;
    EXPECT_NE(outcome.err.find(full), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("No space left on device"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("; "), std::string::npos) << "no remedy: " << outcome.err;
    EXPECT_EQ(outcome.err.find(".part"), std::string::npos) << outcome.err;
  };
  std::ofstream(path("numbers.bin"), std::ios::binary)
      .write(reinterpret_cast<const char*>(numbers_.data()), 2'400'000);
  ASSERT_EQ(run("arrays export " + container_ + " u --to " + path("u.npy")).status, 0);
  for (const std::string& command :
       {"store put " + path("numbers.bin") + " " + full + "/copy",
        "store put " + path("numbers.bin") + " sparse:" + full + "/sparse",
        "arrays import " + path("u.npy") + " --to " + full + "/in.oca",
        "arrays drain " + container_ + " --to " + full + "/to.oca",
        "arrays export " + container_ + " u --to " + full + "/u.npy",
        "arrays export " + container_ + " --to " + full + "/all.npz",
        "arrays export " + container_ + " --to " + full + "/all.h5",
        "arrays export " + container_ + " --to " + full + "/all.nc",
        "arrays export " + container_ + " --to " + full + "/all.zarr"})
    expect_told(command);
  // With some space more, the libraries fail later: at the end, or when they close the file.
  for (const std::string size : {"3M", "4M"}) {
    ASSERT_EQ(::mount("none", full.c_str(), "tmpfs", MS_REMOUNT, ("size=" + size).c_str()), 0);
    for (const char* file : {"/all.npz", "/all.h5", "/all.nc"})
      expect_told("arrays export " + container_ + " --to " + full + file);
  }
  std::ofstream(full + "/rest") << std::string(4 << 20, 'r');
  expect_told("arrays show " + container_ + " u --out " + full + "/u.png");
  ::umount(full.c_str());
}

// Whatever is wrong with a file has status 1, and a remedy; 2 is for the words of the command.
TEST_F(ArraysVerifyCommand, WhatIsWrongWithAFileHasStatus1AndARemedy) {
  std::ofstream(path("empty.oca"));
  std::ofstream(path("edges.txt")) << std::string(300'000, 'e');
  std::ofstream(path("D.h5")) << "\x89HDF\r\n\x1a\n and then nothing of it: it is truncated";
  std::ofstream(path("T.nc")) << "no NetCDF";
  std::ofstream(path("T.npz")) << "no archive";
  ASSERT_EQ(::mkfifo(path("pipe.npy").c_str(), 0600), 0);
  const std::pair<std::string, const char*> cases[] = {
      {"ls " + path("none.oca"), "name a container that is there"},
      {"ls " + path("empty.oca"), "is empty: store arrays in it first"},
      {"ls " + path("edges.txt"), "is not a container of arrays: name another"},
      {"ls " + dir(), "it is not a regular file: name a container"},
      {"verify " + path("edges.txt"), "is not a container of arrays: name another"},
      {"drain " + path("edges.txt") + " --to " + path("to.oca"), "is not a container of arrays"},
      {"info " + container_ + " nosuch", "it has 'u', 'v'"},
      {"export " + container_ + " u --to " + path("none/x.npy"), "none/x.npy: No such file or"},
      {"show " + container_ + " u --out " + path("none/x.png"), "make the folder"},
      {"import " + path("none.npy") + " --to a.oca", "name a file that is there"},
      {"import " + path("pipe.npy") + " --to a.oca", "it is not a regular file: copy it"},
      {"import " + path("D.h5") + " --to a.oca", "D.h5: it is damaged or truncated: make it anew"},
      {"import " + path("T.nc") + " --to a.oca", "it is not a NetCDF file"},
      {"import " + path("T.npz") + " --to a.oca", "it is not an .npz file"}};
  for (const auto& [command, words] : cases) {
    const Outcome outcome = outcome_of("timeout 20 " + command_path() + " arrays " + command);
    if (outcome.err.find("was built without") != std::string::npos) continue;
    EXPECT_EQ(outcome.status, 1) << command << ": " << outcome.err;
    EXPECT_EQ(outcome.error_lines(), 1U) << command << ": " << outcome.err;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << words << " in " << outcome.err;
    EXPECT_EQ(outcome.err.find(".part"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(run("arrays ls no-such-store://x").status, 2);
}

}  // namespace
}  // namespace outcore::cli
