// Arrays in persistent memory: how bytes are copied so that it has them, and containers by pmem:,
// on whatever the test's folder is: a DAX mount (give it by TMPDIR), or an ordinary filesystem,
// where a mapping is taken for persistent memory, or nothing is.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "arrays/container/container_storage.h"
#include "arrays/container/file_memory.h"
#include "arrays/container/persist.h"
#include "arrays/tests/container/processes.h"
#include "outcore/arrays.h"
#include "tests/folder.h"
#include "tests/random_bytes.h"

namespace outcore {
namespace {

using arrays::FileMemory;
using arrays::Flush;
using scene::random_bytes;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Those that this processor has.
std::vector<Flush> flushes() {
  const Flush best = arrays::best_flush();
  if (best == Flush::kNone) return {};
  std::vector<Flush> all = {Flush::kLineFlush};
  if (best != Flush::kLineFlush) all.push_back(best);
  return all;
}

TEST(Persist, ACopyIsCutWhereLinesBeginAndEnd) {
  for (uintptr_t to = 4096; to < 4096 + 2 * arrays::kCacheLine; ++to)
    for (uint64_t size = 0; size < 5 * arrays::kCacheLine; ++size) {
      const arrays::Cut cut = arrays::cut_at_lines(to, size);
      ASSERT_EQ(cut.head + cut.body + cut.tail, size);
      const auto line = [](uintptr_t at) { return at / arrays::kCacheLine; };
      if (cut.head > 0) {
        ASSERT_EQ(line(to), line(to + cut.head - 1)) << "one flush is enough";
      }
      if (cut.body > 0) {
        ASSERT_EQ((to + cut.head) % arrays::kCacheLine, 0u);
        ASSERT_EQ(cut.body % arrays::kCacheLine, 0u);
      }
      const uintptr_t tail = to + cut.head + cut.body;
      if (cut.tail > 0) {
        ASSERT_EQ(line(tail), line(tail + cut.tail - 1)) << "one flush is enough";
      }
    }
}

TEST(Persist, ACopyOfAnyAlignmentAndLengthIsTheSameAndNothingElseIsTouched) {
  if (flushes().empty()) GTEST_SKIP() << "this processor's flushes are not known";
  const auto from = random_bytes(1024);
  for (const Flush flush : flushes())
    for (uint64_t to = 0; to < 70; ++to)
      for (uint64_t at = 0; at < 18; at += 3)
        for (const uint64_t size : {0, 1, 7, 16, 63, 64, 65, 127, 128, 129, 200, 640, 701}) {
          alignas(64) std::byte into[1024] = {};
          arrays::copy_persistently(into + to, from.data() + at, size, flush);
          arrays::drain();
          ASSERT_EQ(std::memcmp(into + to, from.data() + at, size), 0) << to << " " << size;
          for (uint64_t i = 0; i < sizeof into; ++i)
            if (i < to || i >= to + size) {
              ASSERT_EQ(into[i], std::byte{0}) << name_of(flush) << " " << to << " " << size;
            }
        }
}

TEST(Persist, ThreadsCopyNextToEachOtherInOneLine) {
  if (flushes().empty()) GTEST_SKIP() << "this processor's flushes are not known";
  const auto from = random_bytes(1 << 20);
  std::vector<std::byte> into(from.size());
  constexpr uint64_t kPart = 37;  // neighbours share lines
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t at = t * kPart; at < from.size(); at += 4 * kPart)
        arrays::copy_persistently(into.data() + at, from.data() + at,
                                  std::min(kPart, from.size() - at), arrays::best_flush());
      arrays::drain();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(into, from);
}

// What the filesystem under the test's folder gives.
bool has_dax(const std::string& folder) {
  const int fd = ::open((folder + "/asked").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const bool has = fd >= 0 && FileMemory::of(fd, true) != nullptr;
  if (fd >= 0) ::close(fd);
  return has;
}

std::atomic<int> mappings{0};

void* map_as_a_file(int fd, size_t size_bytes, int protection, off_t offset) {
  ++mappings;
  return ::mmap(nullptr, size_bytes, protection, MAP_SHARED, fd, offset);
}

enum class Ground { kDax, kTaken, kFile };

class Pmem : public testing::TestWithParam<Ground> {
 protected:
  void SetUp() override {
    if (arrays::best_flush() == Flush::kNone) GTEST_SKIP() << "no known flushes";
    const bool is_dax = has_dax(folder_.path());
    if (GetParam() == Ground::kDax && !is_dax)
      GTEST_SKIP() << folder_.path() << " is on no DAX mount: give one by TMPDIR";
    if (GetParam() == Ground::kFile && is_dax) GTEST_SKIP() << "it has DAX";
    if (GetParam() == Ground::kTaken) FileMemory::map = &map_as_a_file;
    mappings = 0;
  }
  void TearDown() override { FileMemory::map = &FileMemory::map_synchronously; }
  bool is_memory() const { return GetParam() != Ground::kFile; }
  std::string path() const { return folder_ / "a.oca"; }
  std::string uri() const { return "pmem:" + path(); }
  Arrays open(ArraysMode mode = ArraysMode::kRead) const {
    auto opened = Arrays::open(uri(), mode);
    EXPECT_TRUE(opened.ok()) << opened.message();
    return std::move(opened).value();
  }
  std::shared_ptr<arrays::ContainerStorage> storage(bool is_writable = true) const {
    auto opened = arrays::open_storage(
        {uri(), is_writable, is_writable, std::make_shared<arrays::LentRuntime>(nullptr)});
    EXPECT_TRUE(opened.ok()) << opened.message();
    return std::move(opened).value();
  }
  // Read from the file by a system call, past everything that is tested.
  std::vector<std::byte> in_file(uint64_t offset, uint64_t size_bytes) const {
    std::vector<std::byte> bytes(size_bytes);
    std::ifstream file(path(), std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size_bytes));
    EXPECT_EQ(static_cast<uint64_t>(file.gcount()), size_bytes);
    return bytes;
  }
  scene::Folder folder_;
};

TEST_P(Pmem, ItSaysWhichItIs) {
  Arrays out = open(ArraysMode::kWrite);
  ASSERT_TRUE(out.store("u", 1).ok());
  const auto is = is_memory() ? AllOf(HasSubstr("persistent memory (DAX"), HasSubstr("MAP_SYNC"))
                              : AllOf(HasSubstr("no DAX"), HasSubstr("through the page cache"));
  EXPECT_THAT(out.describe(), is);
  EXPECT_EQ(out.uri(), uri());
  ASSERT_TRUE(out.close().ok());
  EXPECT_THAT(open().describe(), is);
}

TEST_P(Pmem, RunsOfAnyLengthArriveInTheFileAndComeBack) {
  const auto there = storage();
  constexpr uint64_t kFirst = 8192;
  for (const uint64_t run : {3ull, 64ull, 1000ull, 100'000ull, (9ull << 20) + 13}) {
    const uint64_t step = run + 77, count = run > 1'000'000 ? 2 : 9;
    arrays::Runs runs;
    runs.there = 5;
    runs.run_bytes = run;
    runs.loops = {{count, step, run}};
    ASSERT_TRUE(there->provide(kFirst, 5 + count * step).ok());
    const auto from = random_bytes(count * run, run);
    ASSERT_TRUE(there->write_runs(kFirst, runs, from.data()).ok());
    ASSERT_TRUE(there->sync().ok());
    std::vector<std::byte> should(5 + count * step), back(from.size());
    for (uint64_t i = 0; i < count; ++i)
      std::copy_n(from.begin() + static_cast<long>(i * run), run,
                  should.begin() + static_cast<long>(5 + i * step));
    EXPECT_EQ(in_file(kFirst, should.size()), should) << run;  // and zeros between
    ASSERT_TRUE(there->read_runs(kFirst, runs, back.data()).ok());
    EXPECT_EQ(back, from) << run;
  }
}

TEST_P(Pmem, WhatItGrowsByIsThereAcrossWindows) {
  const auto there = storage();
  const auto bytes = random_bytes(9 << 20);
  const uint64_t far = (uint64_t{1} << 30) - (4 << 20) - 3;  // over the end of the first window
  ASSERT_TRUE(there->provide(0, 4096).ok());
  ASSERT_TRUE(there->write(0, std::span(bytes).first(4096)).ok());
  EXPECT_LE(mappings, GetParam() == Ground::kTaken ? 2 : 0);
  ASSERT_TRUE(there->provide_sparse(4096, far + bytes.size() - 4096).ok());
  arrays::Runs runs;
  runs.run_bytes = bytes.size();
  ASSERT_TRUE(there->write_runs(far, runs, bytes.data()).ok());
  ASSERT_TRUE(there->write(far + bytes.size(), std::span(bytes).first(100)).ok());  // behind it
  ASSERT_TRUE(there->sync().ok());
  EXPECT_EQ(in_file(far, bytes.size()), bytes);
  std::vector<std::byte> back(bytes.size());
  ASSERT_TRUE(storage(false)->read_runs(far, runs, back.data()).ok());
  EXPECT_EQ(back, bytes);
  runs.run_bytes = 4096;
  EXPECT_EQ(there->read_runs(far + bytes.size(), runs, back.data()).code(), EIO)
      << "the file ends before";
  if (GetParam() == Ground::kTaken) {
    EXPECT_GE(mappings, 4) << "it went by memory";
  }
  if (GetParam() == Ground::kFile) {
    EXPECT_EQ(mappings, 0);
  }
}

TEST_P(Pmem, AFullDiskIsAnErrorAndNoSignal) {
  const auto there = storage();
  const auto space = std::filesystem::space(folder_.path());
  EXPECT_THAT((std::vector{ENOSPC, EFBIG, EINVAL}),
              testing::Contains(there->provide(0, space.capacity + (1 << 30)).code()));
  struct stat about {};  // and it is not full now
  ASSERT_EQ(::stat(path().c_str(), &about), 0);
  EXPECT_LT(about.st_blocks * 512, 1 << 20);
}

TEST_P(Pmem, ArraysOfAllKindsAreThereWhenItIsOpenedAgain) {
  std::vector<double> u(300 * 1000), part(300 * 10, 7);
  std::iota(u.begin(), u.end(), 0.0);
  Arrays out = open(ArraysMode::kWrite);
  ASSERT_TRUE(out.alloc<double>("u", {300, 1000}).ok());
  ASSERT_TRUE(out.store("u", u.data(), {0, 0}, {300, 1000}).ok());
  ArrayOptions tiles;
  tiles.tiles = {64, 64};
  ASSERT_TRUE(out.alloc<double>("tiled", {300, 1000}, tiles).ok());
  ASSERT_TRUE(out.store("tiled", u.data(), {0, 0}, {300, 1000}).ok());
  tiles.compress = "zstd";
  ASSERT_TRUE(out.alloc<double>("packed", {300, 1000}, tiles).ok());
  ASSERT_TRUE(out.store("packed", u.data(), {0, 0}, {300, 1000}).ok());
  ASSERT_TRUE(out.store("packed", part.data(), {0, 500}, {300, 10}).ok());
  ASSERT_TRUE(out.store("one", 42).ok());
  ASSERT_TRUE(out.close().ok());
  const Arrays in = open();
  EXPECT_EQ(in.load<std::vector<double>>("u").value(), u);
  EXPECT_EQ(in.load<std::vector<double>>("tiled").value(), u);
  for (size_t row = 0; row < 300; ++row)
    std::fill_n(u.begin() + static_cast<long>(row * 1000 + 500), 10, 7.0);
  EXPECT_EQ(in.load<std::vector<double>>("packed").value(), u);
  EXPECT_EQ(in.load<int>("one").value(), 42);
  const auto as_file = Arrays::open(path());  // the same container
  ASSERT_TRUE(as_file.ok()) << as_file.message();
  EXPECT_EQ(as_file->load<std::vector<double>>("packed").value(), u);
}

// A region would copy it.
TEST_P(Pmem, AViewShowsWhatIsWrittenAlsoWithARuntimeLent) {
  if (!is_memory()) GTEST_SKIP() << "a file's view is a region's";
  {
    const auto there = storage();
    ASSERT_TRUE(there->provide(0, 8192).ok());
  }
  auto runtime = Runtime::start();
  ASSERT_TRUE(runtime.ok()) << runtime.message();
  auto opened = arrays::open_storage(
      {uri(), false, false, std::make_shared<arrays::LentRuntime>(&runtime.value())});
  ASSERT_TRUE(opened.ok()) << opened.message();
  const auto view = opened.value()->map(opened.value(), 4096, 4096);
  ASSERT_TRUE(view.ok()) << view.message();
  EXPECT_EQ(view.value()->data[3], std::byte{0});
  const auto bytes = random_bytes(4096);
  ASSERT_TRUE(storage()->write(4096, bytes).ok());
  EXPECT_EQ(std::memcmp(view.value()->data, bytes.data(), bytes.size()), 0);
}

TEST_P(Pmem, ProcessesWriteTogether) {
  constexpr unsigned kProcesses = 3;
  constexpr uint64_t kRows = 50, kColumns = 33;  // rows share lines
  const auto results = scene::in_processes(kProcesses, [&](uint64_t rank) {
    auto out = Arrays::open(uri(), ArraysMode::kWrite, Communicator::processes(kProcesses));
    if (!out || !out->alloc<float>("u", {kRows, kProcesses * kColumns}).ok()) return 1;
    std::vector<float> box(kRows * kColumns);
    for (uint64_t i = 0; i < box.size(); ++i)
      box[i] = static_cast<float>(i / kColumns * 1000 + rank * kColumns + i % kColumns);
    if (!out->store("u", box.data(), {0, rank * kColumns}, {kRows, kColumns}).ok()) return 2;
    return out->close().ok() ? 0 : 3;
  });
  EXPECT_EQ(results, std::vector<int>(kProcesses, 0));
  const auto u = open().load<std::vector<float>>("u");
  ASSERT_TRUE(u.ok()) << u.message();
  for (uint64_t y = 0; y < kRows; ++y)
    for (uint64_t x = 0; x < kProcesses * kColumns; ++x)
      ASSERT_EQ(u.value()[y * kProcesses * kColumns + x], static_cast<float>(y * 1000 + x));
}

TEST_P(Pmem, AfterAKillTheFinishedIsWholeAndTheUnfinishedAbsent) {
  std::vector<double> u(1'000'000);
  std::iota(u.begin(), u.end(), 0.0);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    {
      auto out = Arrays::open(uri(), ArraysMode::kWrite);
      if (!out || !out->store("done", u).ok() || !out->close().ok()) ::_exit(1);
    }
    auto out = Arrays::open(uri(), ArraysMode::kUpdate);
    if (!out || !out->alloc<double>("half", {u.size()}).ok()) ::_exit(2);
    if (!out->store("half", u.data(), {0}, {u.size() / 2}).ok()) ::_exit(3);
    if (::write(ready[1], "x", 1) != 1) ::_exit(4);
    for (;;) static_cast<void>(out->store("half", u.data(), {u.size() / 2}, {u.size() / 2}));
  }
  ::close(ready[1]);
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  ::kill(pid, SIGKILL);
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
  {
    const Arrays in = open();
    EXPECT_EQ(in.load<std::vector<double>>("done").value(), u);
    EXPECT_EQ(in.load<std::vector<double>>("half").code(), ENOENT);
  }
  Arrays again = open(ArraysMode::kUpdate);
  ASSERT_TRUE(again.store("half", u).ok());
  ASSERT_TRUE(again.close().ok());
  EXPECT_EQ(open().load<std::vector<double>>("half").value(), u);
}

INSTANTIATE_TEST_SUITE_P(, Pmem, testing::Values(Ground::kDax, Ground::kTaken, Ground::kFile),
                         [](const auto& about) {
                           return std::string(about.param == Ground::kDax     ? "Dax"
                                              : about.param == Ground::kTaken ? "TakenForDax"
                                                                              : "WithoutDax");
                         });

TEST(PmemUri, WhatCannotBeIsRefused) {
  const scene::Folder folder;
  for (const auto& [uri, why] : {std::pair{"pmem:", "write pmem:PATH"},
                                 {"pmem:/nowhere?direct=off", "no parameters"},
                                 {"pmem:/nowhere?dirct=off", "did you mean 'direct'"},
                                 {"pmem://host/nowhere", "a host has no meaning here"},
                                 {"pmen:/nowhere", "did you mean 'pmem'"}}) {
    const auto opened = Arrays::open(uri, ArraysMode::kWrite);
    EXPECT_EQ(opened.code(), EINVAL) << uri;
    EXPECT_THAT(opened.message(), AllOf(HasSubstr(why), Not(HasSubstr("\n"))));
  }
  EXPECT_EQ(Arrays::open("pmem:" + folder.path()).code(), EINVAL) << "a folder";
  EXPECT_EQ(Arrays::open("pmem:" + (folder / "none")).code(), ENOENT);
}

TEST(PmemUri, ForARegionItIsAFile) {
  const scene::Folder folder;
  auto runtime = Runtime::start();
  ASSERT_TRUE(runtime.ok()) << runtime.message();
  MapOptions options;
  options.access = Access::kReadWrite;
  options.may_create = true;
  options.size_bytes = 1 << 20;
  {
    auto region = runtime->map("pmem:" + (folder / "a"), options);
    ASSERT_TRUE(region.ok()) << region.message();
    region->data()[5] = std::byte{7};
    ASSERT_TRUE(region->sync().ok());
  }
  std::ifstream file(folder / "a", std::ios::binary);
  file.seekg(5);
  EXPECT_EQ(file.get(), 7);
}

}  // namespace
}  // namespace outcore
