// A persistent heap that many processes read at once.
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#include "core/store/file_version.h"
#include "core/tests/conformance/common.h"
#include "heaps/tests/heap/persistent_scene.h"
#include "outcore/buffers.h"

namespace outcore {
namespace {

using scene::Folder;
using scene::run_child;
using scene::start_runtime;
using scene::take;
using scene::wait_for;
using Map = persistent::map<int, persistent::string>;

TEST(PersistentReaders, OfSeveralProcessesSeeTheSame) {
  constexpr int kCount = 50000;
  const Folder folder;
  const std::string path = folder / "heap";
  {
    Runtime runtime = start_runtime();
    PersistentHeap heap = take(PersistentHeap::create(runtime, path));
    Map& map = *take(heap.construct<Map>("map"));
    for (int i = 0; i < kCount; ++i)
      map.emplace(i,
                  persistent::string(static_cast<size_t>(20 + i % 50), 'x', map.get_allocator()));
    EXPECT_OK(heap.close());
  }
  ASSERT_GT(std::filesystem::file_size(path), uint64_t{4} << 20);
  int ready[2], go[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(go), 0);
  std::vector<pid_t> children;
  for (int c = 0; c < 3; ++c)
    children.push_back(run_child([&, c] {
      // One over the kernel's mapping, and the others with less than the heap.
      scene::HeapOpener opener(c == 0 ? HeapPaging::kKernel : HeapPaging::kOutcore,
                               uint64_t{4} << 20);
      PersistentHeap heap = take(opener.open_read_only(path));
      char byte = 0;  // all of them have it open at the same time
      if (::write(ready[1], &byte, 1) != 1 || ::read(go[0], &byte, 1) != 1) return 1;
      const Map& map = *take(heap.find<Map>("map"));
      int i = 0;
      for (const auto& [key, value] : map) {
        if (key != i || value.size() != static_cast<size_t>(20 + i % 50) || value[19] != 'x')
          return 2;
        ++i;
      }
      if (i != kCount) return 3;
      return heap.close().ok() ? 0 : 4;
    }));
  char bytes[3] = {};
  for (size_t got = 0; got < 3;) {
    const ssize_t n = ::read(ready[0], bytes, 3);
    ASSERT_GT(n, 0);
    got += static_cast<size_t>(n);
  }
  {
    Runtime runtime = start_runtime();
    const auto writer = PersistentHeap::open(runtime, path);
    EXPECT_EQ(writer.code(), EBUSY);
    EXPECT_NE(writer.message().find("open elsewhere"), std::string::npos) << writer.message();
    EXPECT_TRUE(take(persistent_heap_check(path)).empty());
  }
  ASSERT_EQ(::write(go[1], bytes, 3), 3);
  for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
  EXPECT_TRUE(take(PersistentHeap::is_consistent(path)));
  for (const int fd : {ready[0], ready[1], go[0], go[1]}) ::close(fd);
}

// In a buffer what is read of the heap is read once, and is in memory once.
void read_in_a_buffer(const std::string& uri) {
  constexpr int kCount = 20000, kReaders = 3;
  struct Meeting {
    std::atomic<uint32_t> arrived{0};
    std::atomic<uint64_t> read_bytes{0}, stored_bytes{0};
  };
  const scene::Common<Meeting> common;
  Meeting& meeting = common[0];
  const pid_t maker = run_child([&] {
    Runtime runtime = start_runtime();
    PersistentHeap heap = take(PersistentHeap::create(runtime, uri));
    Map& map = *take(heap.construct<Map>("map"));
    for (int i = 0; i < kCount; ++i)
      map.emplace(i, persistent::string(60, 'x', map.get_allocator()));
    meeting.stored_bytes = heap.info().size_bytes;
    return heap.close().ok() ? 0 : 1;
  });
  ASSERT_EQ(wait_for(maker), 0);
  // A file that has changed just now is not shared.
  store::FileVersion version;
  const int fd = ::open(uri.c_str(), O_RDONLY | O_CLOEXEC);
  while (store::FileVersion::of(fd, &version) == 0 && version.is_fresh()) ::sched_yield();
  ::close(fd);
  std::vector<pid_t> readers;
  for (int c = 0; c < kReaders; ++c)
    readers.push_back(run_child([&] {
      RuntimeOptions options;
      options.ignore_environment = true;
      options.budget_bytes = uint64_t{64} << 20;
      options.buffer = "heap";
      Runtime runtime = take(Runtime::start(options));
      PersistentHeap heap = take(PersistentHeap::open_read_only(runtime, uri));
      int i = 0;
      for (const auto& [key, value] : *take(heap.find<Map>("map")))
        if (key != i++ || value.size() != 60 || value[59] != 'x') return 2;
      meeting.read_bytes.fetch_add(runtime.metrics().counters.read_bytes);
      meeting.arrived.fetch_add(1);
      while (meeting.arrived.load() < kReaders) ::sched_yield();
      const auto buffers = list_buffers();
      if (i != kCount || !buffers || buffers.value().size() != 1) return 3;
      return buffers.value().front().files == 1 ? 0 : 4;
    }));
  for (const pid_t reader : readers) EXPECT_EQ(wait_for(reader), 0);
  EXPECT_GT(meeting.read_bytes, uint64_t{1} << 20);
  EXPECT_LE(meeting.read_bytes, meeting.stored_bytes * 5 / 4);
}

TEST(PersistentReaders, ShareTheirPagesInABuffer) {
  if (const std::string why = scene::why_no_buffers(); !why.empty()) GTEST_SKIP() << why;
  const Folder folder;
  ::setenv("OUTCORE_BUFFER_DIR", (folder / "buffers").c_str(), 1);
  read_in_a_buffer(folder / "heap");
  read_in_a_buffer("versioned:" + (folder / "pool") + "?object=heap");
  ::unsetenv("OUTCORE_BUFFER_DIR");
}

TEST(PersistentReaders, NeedNoPermissionToWrite) {
  const Folder folder;
  const std::string path = folder / "heap";
  Runtime runtime = start_runtime();
  { take(take(PersistentHeap::create(runtime, path)).construct<int>("one", 1)); }
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  const std::vector<char> before = scene::read_file(path);
  {
    PersistentHeap heap = take(PersistentHeap::open_read_only(runtime, path));
    EXPECT_EQ(*take(heap.find<int>("one")), 1);
    EXPECT_TRUE(heap.info().is_consistent);
  }
  EXPECT_EQ(scene::read_file(path), before);
}

}  // namespace
}  // namespace outcore
