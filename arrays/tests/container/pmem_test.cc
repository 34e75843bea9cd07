// Arrays in persistent memory: containers by pmem:, with MAP_SYNC and without, on whatever the
// test's folder is: a DAX mount (give it by TMPDIR), or an ordinary filesystem, where a mapping is
// taken for persistent memory, or nothing is.
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
#include <functional>
#include <numeric>
#include <thread>
#include <tuple>

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
using arrays::MapSync;
using scene::random_bytes;
using testing::AllOf;
using testing::HasSubstr;

// What the filesystem under the test's folder gives.
bool has_dax(const std::string& folder, MapSync map_sync) {
  const int fd = ::open((folder + "/asked").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const bool has = fd >= 0 && FileMemory::of(fd, true, map_sync) != nullptr;
  if (fd >= 0) ::close(fd);
  return has;
}

std::atomic<int> mappings{0}, synchronous_mappings{0}, syncs{0};
std::function<void(int fd)> after_sync;

void* map_as_a_file(MapSync map_sync, int fd, size_t size_bytes, int protection, off_t offset) {
  ++mappings;
  if (map_sync == MapSync::kOn) ++synchronous_mappings;
  return ::mmap(nullptr, size_bytes, protection, MAP_SHARED, fd, offset);
}

int sync_and_tell(int fd) {
  ++syncs;
  const int result = ::fdatasync(fd);
  if (after_sync) after_sync(fd);
  return result;
}

enum class Ground { kDax, kTaken, kFile };
using Choice = std::tuple<Ground, MapSync>;

class Pmem : public testing::TestWithParam<Choice> {
 protected:
  void SetUp() override {
    if (arrays::best_flush() == Flush::kNone) GTEST_SKIP() << "no known flushes";
    const bool is_dax = has_dax(folder_.path(), map_sync());
    if (ground() == Ground::kDax && !is_dax)
      GTEST_SKIP() << folder_.path() << " is on no DAX mount: give one by TMPDIR";
    if (ground() == Ground::kFile && is_dax) GTEST_SKIP() << "it has DAX";
    FileMemory::kernel.sync = &sync_and_tell;
    if (ground() == Ground::kTaken) {
      FileMemory::kernel.map = &map_as_a_file;
      FileMemory::kernel.has_dax = [](int) { return true; };
    }
    mappings = synchronous_mappings = syncs = 0;
  }
  void TearDown() override {
    FileMemory::kernel = FileMemory::kOwn;
    after_sync = nullptr;
  }
  Ground ground() const { return std::get<Ground>(GetParam()); }
  MapSync map_sync() const { return std::get<MapSync>(GetParam()); }
  bool is_memory() const { return ground() != Ground::kFile; }
  std::string path() const { return folder_ / "a.oca"; }
  std::string uri() const {
    return "pmem:" + path() + (map_sync() == MapSync::kOff ? "?map_sync=off" : "");
  }
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
  const std::string by = map_sync() == MapSync::kOn ? "(DAX, MAP_SYNC), " : "(DAX, no MAP_SYNC), ";
  const auto is = is_memory() ? AllOf(HasSubstr("persistent memory " + by), HasSubstr("stores"))
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
  EXPECT_LE(mappings, ground() == Ground::kTaken ? 2 : 0);
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
  if (ground() == Ground::kTaken) {
    EXPECT_GE(mappings, 4) << "it went by memory";
    EXPECT_EQ(synchronous_mappings, map_sync() == MapSync::kOn ? mappings.load() : 0);
  }
  if (ground() == Ground::kFile) {
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

// With MAP_SYNC nothing is left to a sync. Without, everything is: sizes, space, and which bytes
// are whose.
TEST_P(Pmem, WhatTheFilesystemIsToldIsMadeDurableInTime) {
  if (!is_memory()) GTEST_SKIP() << "a file is synced by its own calls";
  const bool is_at_once = map_sync() == MapSync::kOn;
  const auto there = storage();
  const auto bytes = random_bytes(100'000);
  arrays::Runs runs;
  runs.run_bytes = bytes.size();
  const auto expect = [&](const char* what, int at_once, int otherwise) {
    EXPECT_EQ(syncs.exchange(0), is_at_once ? at_once : otherwise) << what;
  };
  ASSERT_TRUE(there->provide(0, bytes.size()).ok());
  expect("provide", 1, 0);
  ASSERT_TRUE(there->write_runs(0, runs, bytes.data()).ok());
  expect("runs", 0, 0);
  ASSERT_TRUE(there->write(bytes.size(), bytes).ok());  // it grows
  expect("write", 1, 0);
  ASSERT_TRUE(there->write(0, bytes).ok());
  expect("write again", 0, 0);
  ASSERT_TRUE(there->sync().ok());
  expect("sync", 0, 1);
  ASSERT_TRUE(there->write_runs(0, runs, bytes.data()).ok());
  ASSERT_TRUE(there->sync().ok());
  expect("sync again", 0, 1);
  ASSERT_TRUE(there->grow(1 << 20).ok());
  expect("grow", 1, 0);
  ASSERT_TRUE(there->provide_sparse(0, 2 << 20).ok());
  expect("provide sparse", 2, 0);  // a hole, and a length
  ASSERT_TRUE(there->forget(0, 4096).ok());
  expect("forget", 0, 1);
}

TEST_P(Pmem, ASyncThatFailsIsAnErrorFromThenOn) {
  if (!is_memory()) GTEST_SKIP() << "a file is synced by its own calls";
  const auto there = storage();
  ASSERT_TRUE(there->write(0, random_bytes(4096)).ok());
  FileMemory::kernel.sync = [](int) { return errno = EIO, -1; };
  // The call that tells the filesystem something, or the one that promises that it knows it.
  const Status grown = there->write(4096, random_bytes(4096));
  EXPECT_EQ(map_sync() == MapSync::kOn ? grown.code() : there->sync().code(), EIO);
  FileMemory::kernel.sync = &sync_and_tell;
  const Status later = there->sync();
  EXPECT_EQ(later.code(), EIO);
  EXPECT_THAT(later.message(), HasSubstr("write the container anew"));
}

// As if nothing were left of the file but what the kernel promises: without MAP_SYNC the bytes of
// the last sync, with it all bytes up to the length of the last sync.
TEST_P(Pmem, AfterALossOfPowerWhatWasFlushedIsThere) {
  if (!is_memory()) GTEST_SKIP() << "a file is synced by its own calls";
  const std::string survivor = folder_ / "survivor.oca";
  uint64_t length = 0;
  after_sync = [&](int) {
    std::filesystem::copy_file(path(), survivor, std::filesystem::copy_options::overwrite_existing);
    length = std::filesystem::file_size(path());
  };
  const auto lose_power = [&] {
    if (map_sync() == MapSync::kOff) return;
    std::filesystem::copy_file(path(), survivor, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(survivor, length);
  };
  std::vector<double> u(20'000);
  std::iota(u.begin(), u.end(), 0.0);
  ArrayOptions packed;
  packed.tiles = {4096};
  packed.compress = "zstd";
  Arrays out = open(ArraysMode::kWrite);
  for (const std::string name : {"a", "b", "c"}) {
    ASSERT_TRUE(out.store(name, u).ok());
    ASSERT_TRUE(out.alloc<double>(name + "packed", {u.size()}, packed).ok());
    ASSERT_TRUE(out.store(name + "packed", u.data(), {0}, {u.size()}).ok());
    ASSERT_TRUE(out.flush().ok());
    ASSERT_TRUE(out.store("unflushed " + name, u).ok());
    lose_power();
    const auto in = Arrays::open(survivor);
    ASSERT_TRUE(in.ok()) << in.message();
    EXPECT_EQ(in->load<std::vector<double>>(name).value(), u);
    EXPECT_EQ(in->load<std::vector<double>>(name + "packed").value(), u);
    EXPECT_EQ(in->load<std::vector<double>>("unflushed " + name).code(), ENOENT);
    u[7] += 1;
  }
  ASSERT_TRUE(out.close().ok());
  lose_power();
  EXPECT_TRUE(Arrays::open(survivor)->load<std::vector<double>>("unflushed c").ok());
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

INSTANTIATE_TEST_SUITE_P(
    , Pmem,
    testing::Combine(testing::Values(Ground::kDax, Ground::kTaken, Ground::kFile),
                     testing::Values(MapSync::kOn, MapSync::kOff)),
    [](const auto& about) {
      const Ground ground = std::get<Ground>(about.param);
      return std::string(ground == Ground::kDax     ? "Dax"
                         : ground == Ground::kTaken ? "TakenForDax"
                                                    : "WithoutDax") +
             (std::get<MapSync>(about.param) == MapSync::kOn ? "" : "WithoutMapSync");
    });

}  // namespace
}  // namespace outcore
