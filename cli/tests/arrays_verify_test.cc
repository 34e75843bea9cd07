// `outcore arrays verify`, what copies of damaged arrays say, and messages of a full disk.
#include <sys/mount.h>

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
    EXPECT_EQ(outcome.err.find("is no container"), std::string::npos) << outcome.err;
  }
}

// One line that says what, where, why, and what to do; no half of a file.
TEST_F(ArraysVerifyCommand, AFullDiskIsOneLineWithTheRemedy) {
  const std::string full = path("full");
  std::filesystem::create_directory(full);
  if (::mount("none", full.c_str(), "tmpfs", 0, "size=1M") != 0)
    GTEST_SKIP() << "a small disk is mounted by root alone: " << std::strerror(errno);
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
        "arrays export " + container_ + " --to " + full + "/all.zarr"}) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_EQ(outcome.error_lines(), 1U) << command << ": " << outcome.err;
    EXPECT_NE(outcome.err.find(full), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("No space left on device"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("; "), std::string::npos) << "no remedy: " << outcome.err;
  }
  ::umount(full.c_str());
}

}  // namespace
}  // namespace outcore::cli
