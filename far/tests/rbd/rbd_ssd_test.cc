// oc_ssd_malloc on a Ceph pool: each step is a process of its own, one of which is killed. At the
// end nobody renews what they made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "far/tests/rbd/lifetime_notes.h"
#include "outcore/outcore.h"
#include "outcore/ssd.h"
#include "outcore/store_catalog.h"

namespace outcore::rbd_test {
namespace {

constexpr const char* kStepVariable = "OUTCORE_TEST_SSD_STEP";
constexpr uint64_t kWords = 1 << 17;
constexpr size_t kBytes = kWords * sizeof(uint64_t);

void check(bool is_true, const char* text, int line) {
  if (is_true) return;
  std::fprintf(stderr, "line %d: %s (last error: %s)\n", line, text, oc_last_error());
  ::_exit(1);
}
#define CHECK_THAT(condition) check(condition, #condition, __LINE__)

uint64_t word_of(uint64_t i) { return (i + 1) * 0x9e3779b97f4a7c15; }
uint64_t* words_of(const char* name, size_t bytes) {
  return static_cast<uint64_t*>(oc_ssd_malloc(name, bytes));
}

// Two checkpoints, and a death between them and a third.
void compute() {
  uint64_t step = 0;
  CHECK_THAT(oc_ssd_restart(nullptr, &step, sizeof step) == -ENOENT);
  uint64_t* const grid = words_of("grid", kBytes);
  CHECK_THAT(grid != nullptr);
  for (; step < 2; ++step) {
    for (uint64_t i = 0; i < kWords; ++i) grid[i] = word_of(i) + step;
    CHECK_THAT(oc_ssd_checkpoint("last", &step, sizeof step) == 0);
  }
  uint64_t* const second = words_of("second/of two", 4096);
  CHECK_THAT(second != nullptr);
  *second = 5;
  CHECK_THAT(oc_ssd_checkpoint("with second", &step, sizeof step) == 0);
  for (uint64_t i = 0; i < kWords; ++i) grid[i] = 0;
  ::raise(SIGKILL);
}

void go_on() {
  uint64_t step = 0;
  CHECK_THAT(oc_ssd_restart("lost", &step, sizeof step) == -ENOENT);
  CHECK_THAT(oc_ssd_restart("last", &step, sizeof step) == 0);
  CHECK_THAT(step == 1);
  CHECK_THAT(words_of("grid", kBytes / 2) == nullptr && errno == EINVAL);
  uint64_t* grid = words_of("grid", kBytes);
  CHECK_THAT(grid != nullptr);
  CHECK_THAT(words_of("grid", kBytes) == nullptr && errno == EBUSY);
  for (uint64_t i = 0; i < kWords; ++i) CHECK_THAT(grid[i] == word_of(i) + 1);
  uint64_t* const second = words_of("second/of two", 4096);
  CHECK_THAT(second != nullptr && *second == 0);  // it is not in that checkpoint
  CHECK_THAT(oc_ssd_free(second) == 0);
  // What is freed is not in what follows; its checkpoints keep it.
  CHECK_THAT(oc_ssd_free(grid) == 0);
  grid = words_of("grid", kBytes / 4);
  CHECK_THAT(grid != nullptr);
  for (uint64_t i = 0; i < kWords / 4; ++i) CHECK_THAT(grid[i] == 0);
  uint64_t* const brief = words_of("brief", 8);
  CHECK_THAT(brief != nullptr && oc_ssd_free(brief) == 0);
  CHECK_THAT(words_of("theirs", kBytes) == nullptr && errno == EEXIST);
  CHECK_THAT(std::strstr(oc_last_error(), "not memory of oc_ssd_malloc") != nullptr);
  CHECK_THAT(oc_ssd_checkpoint("bare", nullptr, 0) == 0);
}

void look_at_newest() {
  uint64_t step = 0;
  CHECK_THAT(oc_ssd_restart("bare", &step, sizeof step) == -EINVAL);
  CHECK_THAT(oc_ssd_restart("with second", &step, sizeof step) == 0);
  CHECK_THAT(step == 2);
  const uint64_t* const second = words_of("second/of two", 4096);
  CHECK_THAT(second != nullptr && *second == 5);
  const uint64_t* const grid = words_of("grid", kBytes);
  CHECK_THAT(grid != nullptr && grid[3] == word_of(3) + 1);
}

void make_two() {
  CHECK_THAT(words_of("first", 4096) != nullptr);
  CHECK_THAT(oc_ssd_checkpoint("one", nullptr, 0) == 0);
  CHECK_THAT(words_of("late", 4096) != nullptr);
}

void find_theirs() {
  CHECK_THAT(words_of("late", 4096) == nullptr && errno == EEXIST);
  CHECK_THAT(oc_ssd_restart("one", nullptr, 0) == 0);
}

void lack_space() { CHECK_THAT(words_of("large", size_t{1} << 40) == nullptr && errno == ENOSPC); }
void find_large_theirs() { CHECK_THAT(words_of("large", 4096) == nullptr && errno == EEXIST); }

void be_second() {
  CHECK_THAT(words_of("grid", kBytes) == nullptr && errno == EBUSY);
  CHECK_THAT(std::strstr(oc_last_error(), ("process " + std::to_string(::getppid())).c_str()));
}

class IsStepIfAsked : public testing::Environment {
 public:
  void SetUp() override {
    const char* step = ::getenv(kStepVariable);
    if (step == nullptr) return;
    const std::string name = step;
    if (name == "compute") compute();
    if (name == "go on") go_on();
    if (name == "be second") be_second();
    if (name == "make two") make_two();
    if (name == "find theirs") find_theirs();
    if (name == "lack space") lack_space();
    if (name == "find large theirs") find_large_theirs();
    if (name == "look at newest") look_at_newest();
    std::exit(0);
  }
};
[[maybe_unused]] testing::Environment* const is_step_if_asked =
    testing::AddGlobalTestEnvironment(new IsStepIfAsked);

int run(const std::string& step, const std::string& pool) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv(kStepVariable, step.c_str(), 1);
    ::setenv("OUTCORE_POOL", pool.c_str(), 1);
    ::setenv("OUTCORE_BUDGET", "1M", 1);
    ::execl("/proc/self/exe", "step", "--gtest_filter=RbdUri.*", nullptr);
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

class RbdSsd : public testing::Test {
 protected:
  void SetUp() override { OUTCORE_NEEDS_CEPH(); }
  const std::string name_ = Ceph::new_name();
};

TEST_F(RbdSsd, MemoryComesBackAfterADeathAndIsGivenBackWhenNobodyRenewsIt) {
  const std::string tail = "?conf=" + Ceph::instance().conf();
  const std::string pool = "rbd://data/" + name_ + tail + "&lifetime=1h";
  ASSERT_EQ(Ceph::instance().tell("rbd create --size 1M data/" + name_ + ".theirs"), "");
  const int killed = run("compute", pool);
  ASSERT_TRUE(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGKILL) << killed;
  ASSERT_EQ(run("go on", pool), 0);
  ASSERT_EQ(run("look at newest", pool), 0);

  {
    OpenOptions options;
    options.is_writable = true;
    const auto first = open_store(pool, options);
    ASSERT_TRUE(first.ok()) << first.message();
    EXPECT_EQ(run("be second", pool), 0);
  }

  const auto all = list_stores("rbd://data/" + tail);
  ASSERT_TRUE(all.ok()) << all.message();
  std::vector<std::string> made;
  for (const StoreInfo& one : all.value())
    if (one.name.starts_with(name_) && one.lifetime_ms != 0) {
      made.push_back(one.name);
      EXPECT_EQ(one.owner, "") << "the lock of a process that has ended";
    }
  EXPECT_EQ(made.size(), 4u) << "the run, grid, second, ordinary memory";
  for (const std::string& name : made) expire("rbd://data/" + name + tail, "data/" + name);
  // The cluster may not have noticed yet that the last process has ended.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (const std::string& name : made) {
    Status removed = remove_store("rbd://data/" + name + tail, true);
    while (removed.code() == EBUSY && std::chrono::steady_clock::now() < until)
      removed = remove_store("rbd://data/" + name + tail, true);
    EXPECT_EQ(removed.message(), "") << name;
  }
}

TEST_F(RbdSsd, AnImageThatTookTheNameOfOursIsNeitherUsedNorRemoved) {
  const std::string late = name_ + ".late";
  const std::string tail = "?conf=" + Ceph::instance().conf();
  ASSERT_EQ(run("make two", "rbd://data/" + name_ + tail), 0);
  ASSERT_EQ(Ceph::instance().tell("rbd rename data/" + late + " data/" + late + "r"), "");
  ASSERT_EQ(Ceph::instance().tell("rbd create --size 1M data/" + late), "");
  EXPECT_EQ(run("find theirs", "rbd://data/" + name_ + tail), 0);
  EXPECT_TRUE(open_store("rbd://data/" + late + tail).ok()) << "it is somebody's";
}

TEST_F(RbdSsd, WhatCouldNotBeMadeIsNotNotedAsOurs) {
  const std::string tail = "?conf=" + Ceph::instance().conf();
  ASSERT_EQ(run("lack space", "rbd://small/" + name_ + tail), 0);
  ASSERT_EQ(Ceph::instance().tell("rbd create --size 1M small/" + name_ + ".large"), "");
  EXPECT_EQ(run("find large theirs", "rbd://small/" + name_ + tail), 0);
}

TEST_F(RbdSsd, APoolThatIsNoneIsRefused) {
  const std::string tail = "conf=" + Ceph::instance().conf();
  const auto refusal = [](const std::string& pool) -> std::string {
    ::setenv("OUTCORE_POOL", pool.c_str(), 1);
    EXPECT_EQ(oc_ssd_malloc("grid", 8), nullptr) << pool;
    ::unsetenv("OUTCORE_POOL");
    return oc_last_error();
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal("rbd:data"), HasSubstr("rbd://CEPHPOOL"));
  EXPECT_THAT(refusal("rbd://data/run@x?" + tail), HasSubstr("rbd://CEPHPOOL/RUN"));
  EXPECT_THAT(refusal("rbd://data/run?size=1G&" + tail), HasSubstr("size="));
  EXPECT_THAT(refusal("rbd://data?lifetme=1h&" + tail), HasSubstr("did you mean 'lifetime'"));
  EXPECT_THAT(refusal("rbd://dat?" + tail), HasSubstr("did you mean 'data'"));
  EXPECT_THAT(refusal("rbd://small?" + tail + "&lifetime=5s"), HasSubstr("1min"));
}

}  // namespace
}  // namespace outcore::rbd_test
