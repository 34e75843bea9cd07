// Arrays that are drained to another container: all of them, verified, resumed, removed, and found
// by whoever reads the first one.
#include "outcore/arrays_drain.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <numeric>

#include "outcore/arrays.h"
#include "tests/folder.h"

namespace outcore {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::vector<double> cells(double first) {
  std::vector<double> all(50 * 60 * 70);
  std::iota(all.begin(), all.end(), first);
  return all;
}

class Drains : public testing::Test {
 protected:
  static inline const Dims kShape = {50, 60, 70};
  // Four arrays: contiguous, column order, tiled, compressed; and small values.
  void make() {
    Arrays out = Arrays::open(near_, ArraysMode::kWrite).value();
    ArrayOptions options[4];
    options[1].order = Order::kColumn;
    options[2].tiles = {16, 64, 32};
    options[3].compress = "zstd";
    for (int i = 0; i < 4; ++i)
      ASSERT_TRUE(out.store_whole("u" + std::to_string(i), array_type<double>(), kShape,
                                  cells(i).data(), options[i])
                      .ok());
    ASSERT_TRUE(out.store("step", 12).ok());
    ASSERT_TRUE(out.store("title", "a flame").ok());
    ASSERT_TRUE(out.alloc<int>("none", {0, 4}).ok());
    ASSERT_TRUE(out.set_attribute("u1", "unit", "K").ok());
    ASSERT_TRUE(out.close().ok());
  }
  static void expect_all(const Arrays& in) {
    for (int i = 0; i < 4; ++i) {
      std::vector<double> all(50 * 60 * 70);
      const Status s = in.load("u" + std::to_string(i), all.data(), {0, 0, 0}, kShape);
      ASSERT_TRUE(s.ok()) << s.message();
      EXPECT_EQ(all, cells(i)) << i;
    }
    EXPECT_EQ(in.load<int>("step").value(), 12);
    EXPECT_EQ(in.load<std::string>("title").value(), "a flame");
    EXPECT_EQ(in.load_dims("none").value(), (Dims{0, 4}));
    EXPECT_EQ(in.attribute("u1", "unit").value(), "K");
    EXPECT_EQ(in.info("u1")->order, Order::kColumn);
    EXPECT_EQ(in.info("u3")->compress, "zstd:3");
    EXPECT_EQ(in.list().size(), 7u);
  }
  static uint64_t used_bytes(const std::string& path) {
    struct stat about {};
    EXPECT_EQ(::stat(path.c_str(), &about), 0);
    return static_cast<uint64_t>(about.st_blocks) * 512;
  }
  Status drain(const DrainOptions& options = {}) {
    auto drain = ArraysDrain::start(near_, far_, options);
    return drain ? drain->wait() : drain.status();
  }
  const scene::Folder folder_;
  const std::string near_ = folder_.path() + "/near.oca", far_ = folder_.path() + "/far.oca";
};

TEST_F(Drains, EverythingIsThereToo) {
  make();
  auto drain = Arrays::open(near_).value().drain(far_);
  ASSERT_TRUE(drain.ok()) << drain.message();
  const Status s = drain->wait();
  ASSERT_TRUE(s.ok()) << s.message();
  const DrainProgress done = drain->progress();
  EXPECT_EQ(done.arrays, 7u);
  EXPECT_EQ(done.arrays_done, 7u);
  EXPECT_EQ(done.bytes, 4u * 50 * 60 * 70 * 8 + 4 + 7);
  EXPECT_EQ(done.bytes_done, done.bytes);
  expect_all(Arrays::open(far_).value());
  expect_all(Arrays::open(near_).value());
}

TEST_F(Drains, WhatIsRemovedHereIsFoundThere) {
  make();
  const uint64_t before = used_bytes(near_);
  ASSERT_TRUE(drain({.may_remove = true}).ok());
  EXPECT_LT(used_bytes(near_), before / 2);
  const Arrays in = Arrays::open(near_).value();
  expect_all(in);
  const auto view = in.view<double>("u0");
  ASSERT_TRUE(view.ok()) << view.message();
  EXPECT_EQ(view.value()(1, 2, 3), cells(0)[(60 + 2) * 70 + 3]);
  EXPECT_TRUE(in.has("u2"));
  EXPECT_EQ(in.load<int>("stepp").code(), ENOENT);
  // What is new has the name here; it goes the same way.
  Arrays out = Arrays::open(near_, ArraysMode::kUpdate).value();
  ASSERT_TRUE(out.store("more", 5.0).ok());
  ASSERT_TRUE(out.close().ok());
  ASSERT_TRUE(drain({.may_remove = true}).ok());
  EXPECT_EQ(Arrays::open(near_)->load<double>("more").value(), 5.0);
  std::filesystem::remove(far_);
  const auto gone = Arrays::open(near_)->load<double>("more");
  EXPECT_EQ(gone.code(), ENOLINK);
  EXPECT_THAT(gone.message(), AllOf(HasSubstr("drained to"), HasSubstr(far_)));
  EXPECT_FALSE(Arrays::open(near_)->has("more"));
  EXPECT_TRUE(Arrays::open(near_)->list().empty());
}

TEST_F(Drains, OneThatIsAwayHidesNothingOfTheOthers) {
  make();
  const std::string other = folder_.path() + "/other.oca";
  ASSERT_TRUE(drain({.names = {"u0"}, .may_remove = true}).ok());
  auto more = ArraysDrain::start(near_, other, {.names = {"u1"}, .may_remove = true});
  ASSERT_TRUE(more.ok() && more->wait().ok());
  const auto take_away = [&](const std::string& uri) {
    std::filesystem::rename(uri, folder_.path() + "/elsewhere");
  };
  const auto bring_back = [&](const std::string& uri) {
    std::filesystem::rename(folder_.path() + "/elsewhere", uri);
  };
  const auto expect_unknown = [&](const Arrays& in, const std::string& name,
                                  const std::string& away) {
    const auto unknown = in.info(name);
    EXPECT_EQ(unknown.code(), ENOLINK) << name;
    EXPECT_THAT(unknown.message(), AllOf(HasSubstr("'" + name), HasSubstr(away)));
    EXPECT_FALSE(in.has(name));
  };
  take_away(far_);
  {
    const Arrays in = Arrays::open(near_).value();
    EXPECT_TRUE(in.has("u1") && in.has("u2"));
    std::vector<double> all(50 * 60 * 70);
    const Status s = in.load("u1", all.data(), {0, 0, 0}, kShape);
    EXPECT_TRUE(s.ok()) << s.message();
    EXPECT_EQ(all, cells(1));
    EXPECT_EQ(in.list().size(), 6u);
    expect_unknown(in, "u0", far_);
    expect_unknown(in, "nowhere", far_);
    bring_back(far_);  // whoever has the first one open finds it
    EXPECT_TRUE(in.has("u0"));
    EXPECT_EQ(in.list().size(), 7u);
    EXPECT_EQ(in.info("nowhere").code(), ENOENT);
  }
  // What was drained last may have another of the name: the one before it is not believed.
  take_away(other);
  const Arrays in = Arrays::open(near_).value();
  EXPECT_TRUE(in.has("u2"));
  expect_unknown(in, "u0", other);
  EXPECT_EQ(in.list().size(), 5u);
  bring_back(other);
  EXPECT_TRUE(in.has("u0") && in.has("u1"));
}

TEST_F(Drains, WhatIsBehindOneThatIsAwayIsNotKnownEither) {
  make();
  const std::string last = folder_.path() + "/last.oca";
  ASSERT_TRUE(drain({.may_remove = true}).ok());
  auto more = ArraysDrain::start(far_, last, {.names = {"u1"}, .may_remove = true});
  ASSERT_TRUE(more.ok() && more->wait().ok());
  EXPECT_TRUE(Arrays::open(near_)->has("u1"));
  std::filesystem::remove(last);
  const Arrays in = Arrays::open(near_).value();
  EXPECT_TRUE(in.has("u2"));
  EXPECT_EQ(in.list().size(), 6u);
  const auto unknown = in.info("u1");
  EXPECT_EQ(unknown.code(), ENOLINK) << unknown.message();
  EXPECT_THAT(unknown.message(), HasSubstr(last));
}

TEST_F(Drains, OtherStoresTakeThem) {
  make();
  const std::string sparse = "sparse:" + folder_.path() + "/s";
  auto drain = ArraysDrain::start(near_, sparse);
  ASSERT_TRUE(drain.ok()) << drain.message();
  const Status s = drain->wait();
  ASSERT_TRUE(s.ok()) << s.message();
  expect_all(Arrays::open(sparse).value());
}

TEST_F(Drains, WhatIsThereIsNotCopiedAgainAndWhatChangedIsRefused) {
  make();
  ASSERT_TRUE(drain({.names = {"u0", "step"}}).ok());
  EXPECT_EQ(Arrays::open(far_)->list().size(), 2u);
  ASSERT_TRUE(drain().ok());
  expect_all(Arrays::open(far_).value());
  ASSERT_TRUE(drain().ok());
  Arrays out = Arrays::open(near_, ArraysMode::kUpdate).value();
  const double changed = -1;
  ASSERT_TRUE(out.store("u0", &changed, {0, 0, 0}, {1, 1, 1}).ok());  // in place
  ASSERT_TRUE(out.close().ok());
  const Status s = drain({.may_remove = true});
  EXPECT_EQ(s.code(), EEXIST);
  EXPECT_THAT(s.message(), AllOf(HasSubstr("'u0'"), HasSubstr("remove it there")));
  EXPECT_TRUE(Arrays::open(near_)->has("u0"));
}

TEST_F(Drains, ItIsThrottledAndCancelled) {
  make();
  {
    auto drain = ArraysDrain::start(near_, far_, {.bytes_per_second = 1});
    ASSERT_TRUE(drain.ok()) << drain.message();
    while (drain->progress().bytes_done == 0) static_cast<void>(drain->wait_for(1));
    drain->cancel();  // else it would take days
    const Status s = drain->wait();
    EXPECT_EQ(s.code(), ECANCELED);
    EXPECT_LT(drain->progress().arrays_done, 7u);
  }
  ASSERT_TRUE(drain().ok());
  expect_all(Arrays::open(far_).value());
}

TEST_F(Drains, AKilledOneIsResumed) {
  make();
  for (int kill = 0; kill < 8; ++kill) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      auto drain = ArraysDrain::start(near_, far_);
      const uint64_t last = drain->progress().bytes * static_cast<uint64_t>(kill) / 8;
      while (!drain->wait_for(0))
        if (drain->progress().bytes_done >= last) ::kill(::getpid(), SIGKILL);
      ::_exit(0);
    }
    ::waitpid(pid, nullptr, 0);
    if (const auto there = Arrays::open(far_); there.ok())
      for (const ArrayInfo& info : there->list()) {
        if (info.name.size() != 2) continue;
        std::vector<double> all(50 * 60 * 70);
        ASSERT_TRUE(there->load(info.name, all.data(), {0, 0, 0}, kShape).ok());
        EXPECT_EQ(all, cells(info.name[1] - '0'));
      }
  }
  const Status s = drain({.may_remove = true});
  ASSERT_TRUE(s.ok()) << s.message();
  expect_all(Arrays::open(near_).value());
}

TEST_F(Drains, ABusyWriterKeepsItsArrays) {
  make();
  Arrays out = Arrays::open(near_, ArraysMode::kUpdate).value();
  ASSERT_TRUE(out.store("late", 1).ok());
  auto drain = out.drain(far_, {.may_remove = true});
  ASSERT_TRUE(drain.ok()) << drain.message();
  const Status s = drain->wait();
  EXPECT_EQ(s.code(), EBUSY);
  EXPECT_THAT(s.message(), HasSubstr("everything is there"));
  ASSERT_TRUE(out.close().ok());
  expect_all(Arrays::open(far_).value());
  EXPECT_EQ(Arrays::open(near_)->list().size(), 8u);
}

TEST_F(Drains, WhatIsWrongIsRefused) {
  make();
  EXPECT_EQ(ArraysDrain::start(near_, near_).code(), EINVAL);
  const std::string link = folder_.path() + "/link.oca";
  std::filesystem::create_symlink(near_, link);
  EXPECT_EQ(ArraysDrain::start(near_, link).code(), EINVAL);
  EXPECT_EQ(ArraysDrain::start(folder_.path() + "/no.oca", far_).code(), ENOENT);
  EXPECT_EQ(ArraysDrain::start(near_, folder_.path() + "/no/far.oca").code(), ENOENT);
  const auto unknown = ArraysDrain::start(near_, far_, {.names = {"u9"}});
  EXPECT_EQ(unknown.code(), ENOENT);
  EXPECT_THAT(unknown.message(), HasSubstr("u0"));
  EXPECT_FALSE(std::filesystem::exists(far_));
  expect_all(Arrays::open(near_).value());
}

TEST_F(Drains, ContainersThatNameEachOtherEnd) {
  make();
  ASSERT_TRUE(drain({.may_remove = true}).ok());
  auto back = ArraysDrain::start(far_, near_, {.names = {"u0"}, .may_remove = true});
  ASSERT_TRUE(back.ok()) << back.message();
  const Status s = back->wait();
  ASSERT_TRUE(s.ok()) << s.message();
  const Arrays in = Arrays::open(near_).value();
  expect_all(in);
  EXPECT_FALSE(in.has("u9"));
}

}  // namespace
}  // namespace outcore
