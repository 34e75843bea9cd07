// What a persistent heap says of files that are none, are damaged, or belong to others.
#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>

#include "heaps/persistent/persistent_format.h"
#include "heaps/tests/heap/persistent_scene.h"

namespace outcore {
namespace {

using heap::persistent::Header;
using heap::persistent::kHeaderStride;
using scene::Folder;
using scene::read_file;
using scene::run_child;
using scene::take;
using scene::wait_for;
using scene::write_file;

class PersistentErrors : public testing::TestWithParam<HeapPaging> {
 protected:
  Folder folder;
  scene::HeapOpener opener{GetParam()};
  const std::string path = folder / "heap";

  void make_heap() {
    PersistentHeap heap = take(opener.create(path));
    take(heap.construct<persistent::vector<int>>("v", 100000u, 7));
    EXPECT_OK(heap.close());
  }
  // Opens, checks, and expects this of both.
  void expect_refused(int code, const std::string& text) {
    for (const bool is_read_only : {false, true}) {
      const auto heap = is_read_only ? opener.open_read_only(path) : opener.open(path);
      ASSERT_FALSE(heap.ok());
      EXPECT_EQ(heap.code(), code) << heap.message();
      EXPECT_NE(heap.message().find(text), std::string::npos) << heap.message();
      EXPECT_EQ(heap.message().find('\n'), std::string::npos);
    }
    const auto findings = persistent_heap_check(path);
    if (findings) {
      EXPECT_FALSE(findings.value().empty());
    }
  }
};

TEST_P(PersistentErrors, TellWhatIsMissing) {
  expect_refused(ENOENT, "create it first");
  EXPECT_EQ(opener.create(folder / "no/such/folder").code(), ENOENT);
  EXPECT_EQ(PersistentHeap::is_consistent(path).code(), ENOENT);
}

TEST_P(PersistentErrors, TellWhatIsThereAlready) {
  make_heap();
  EXPECT_EQ(opener.create(path).code(), EEXIST);
  EXPECT_TRUE(opener.open(path).ok());
}

TEST_P(PersistentErrors, TellAFileThatIsNoHeap) {
  write_file(path, std::vector<char>(100000, 'x'));
  expect_refused(EINVAL, "not a persistent heap");
  write_file(path, {});
  expect_refused(EINVAL, "not a persistent heap");
  write_file(path, {'O', 'U', 'T'});
  expect_refused(EINVAL, "not a persistent heap");
  EXPECT_EQ(opener.open(folder.path()).code(), EISDIR);
}

TEST_P(PersistentErrors, TellAFileThatWasCutShort) {
  make_heap();
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  expect_refused(EINVAL, "cut short");
  std::filesystem::resize_file(path, 5000);
  EXPECT_FALSE(opener.open(path).ok());
  EXPECT_FALSE(take(PersistentHeap::is_consistent(path)));
}

TEST_P(PersistentErrors, AreNoneWhereNothingIsFreed) {
  make_heap();
  PersistentHeap heap = take(opener.open(path));
  heap.deallocate(nullptr);
  EXPECT_OK(heap.close());
  heap.deallocate(nullptr);
  PersistentHeap reader = take(opener.open_read_only(path));
  reader.deallocate(nullptr);
  EXPECT_OK(reader.close());
}

TEST_P(PersistentErrors, TellDamagedHeaders) {
  make_heap();
  std::vector<char> bytes = read_file(path);
  bytes[20] ^= 1;
  write_file(path, bytes);
  // The other copy says that the heap was closed.
  EXPECT_EQ(take(persistent_heap_check(path)),
            std::vector<std::string>{"copy 1 of the header is damaged: the other copy is used, and "
                                     "nothing is lost"});
  EXPECT_TRUE(take(PersistentHeap::is_consistent(path)));
  EXPECT_TRUE(opener.open_read_only(path).ok());
  // Whoever opens it to write mends it.
  EXPECT_OK(take(opener.open(path)).close());
  EXPECT_TRUE(take(persistent_heap_check(path)).empty());
  bytes = read_file(path);
  bytes[20] ^= 1;
  write_file(path, bytes);
  bytes[kHeaderStride + 40] ^= 1;
  write_file(path, bytes);
  expect_refused(EINVAL, "both copies of its header are damaged");
}

// A copy that is left of an open heap is no proof that the other one said the same.
TEST_P(PersistentErrors, TellAHeapThatWasNotClosedByOneCopy) {
  make_heap();
  std::vector<char> bytes = read_file(path);
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.state = static_cast<uint32_t>(heap::persistent::State::kOpen);
  const auto encoded = heap::persistent::encode(header);
  std::memcpy(bytes.data(), encoded.data(), encoded.size());
  bytes[20] ^= 1;
  write_file(path, bytes);
  expect_refused(EUCLEAN, "not closed");
  EXPECT_EQ(take(persistent_heap_check(path)).size(), 2u);
}

TEST_P(PersistentErrors, TellDamagedMetadata) {
  make_heap();
  std::vector<char> bytes = read_file(path);
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes[header.metadata_offset + header.metadata_bytes - 1] ^= 1;
  write_file(path, bytes);
  expect_refused(EINVAL, "checksum");
}

TEST_P(PersistentErrors, TellANewerFormat) {
  make_heap();
  std::vector<char> bytes = read_file(path);
  for (const uint64_t copy : {uint64_t{0}, kHeaderStride}) bytes[copy + 8] = 9;
  write_file(path, bytes);
  expect_refused(EINVAL, "both copies of its header are damaged");  // their checksums are wrong
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  const auto encoded = heap::persistent::encode(header);
  std::memcpy(bytes.data(), encoded.data(), encoded.size());
  write_file(path, bytes);
  for (const auto& heap : {opener.open(path), opener.open_read_only(path)}) {
    EXPECT_EQ(heap.code(), ENOTSUP);
    EXPECT_NE(heap.message().find("format 9"), std::string::npos) << heap.message();
    EXPECT_NE(heap.message().find("newer Outcore"), std::string::npos) << heap.message();
  }
  EXPECT_EQ(persistent_heap_check(path).code(), ENOTSUP);
}

TEST_P(PersistentErrors, TellAHeapThatIsOpenElsewhere) {
  make_heap();
  int ready[2], done[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(done), 0);
  opener.stop();
  const pid_t child = run_child([&] {
    scene::HeapOpener own(GetParam());
    PersistentHeap heap = take(own.open(path));
    char byte = 0;
    if (::write(ready[1], &byte, 1) != 1 || ::read(done[0], &byte, 1) != 1) return 1;
    return heap.close().ok() ? 0 : 2;
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  expect_refused(EBUSY, "open elsewhere");
  EXPECT_EQ(opener.create(path).code(), EBUSY);
  EXPECT_EQ(persistent_heap_check(path).code(), EBUSY);
  EXPECT_FALSE(take(PersistentHeap::is_consistent(path)));
  ASSERT_EQ(::write(done[1], &byte, 1), 1);
  EXPECT_EQ(wait_for(child), 0);
  PersistentHeap heap = take(opener.open(path));
  expect_refused(EBUSY, "open elsewhere");  // in this process, too
  for (const int fd : {ready[0], ready[1], done[0], done[1]}) ::close(fd);
}

TEST_P(PersistentErrors, TellAFileThatMayNotGrow) {
  const int status = wait_for(run_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{uint64_t{8} << 20, uint64_t{8} << 20};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    PersistentHeapOptions options;
    options.paging = GetParam();
    // Frames that rest in a file of memory would be limited, too.
    if (options.paging == HeapPaging::kOutcore)
      options.runtime = {.budget_bytes = uint64_t{16} << 20,
                         .frames = FrameKind::kPrivate,
                         .ignore_environment = true};
    PersistentHeap heap = take(PersistentHeap::create(path, options));
    auto& numbers = *take(heap.construct<persistent::vector<int>>("numbers"));
    int code = 0;
    for (uint64_t size = 1000; code == 0; size *= 2) {
      Result<void*> object = heap.allocate(size);
      code = object.code();
      if (code == 0) numbers.push_back(static_cast<int>(size));
    }
    if (code != EFBIG) return 2;
    if (!heap.close().ok()) return 3;
    PersistentHeap again = take(PersistentHeap::open(path, options));
    return take(again.find<persistent::vector<int>>("numbers"))->size() > 10 ? 0 : 4;
  }));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(WIFEXITED(status));
}

// A real filesystem that is full.
TEST_P(PersistentErrors, TellAFullDisk) {
  const std::string disk = folder / "disk";
  std::filesystem::create_directory(disk);
  if (::mount("none", disk.c_str(), "tmpfs", 0, "size=16m") != 0)
    GTEST_SKIP() << "mount a small filesystem: " << std::strerror(errno);
  {
    PersistentHeap heap = take(opener.create(disk + "/heap"));
    auto& all = *take(heap.construct<persistent::vector<PersistentPointer<char>>>("all"));
    all.reserve(10000);
    Result<void*> object = heap.allocate(3000);
    for (; object; object = heap.allocate(3000)) {
      std::memset(object.value(), 'x', 3000);
      all.push_back(static_cast<char*>(object.value()));
    }
    EXPECT_EQ(object.code(), ENOSPC) << object.message();
    EXPECT_GT(all.size(), 3000u);
    EXPECT_LT(all.size(), 6000u);
    for (const auto& text : all) ASSERT_EQ(text[2999], 'x');
    for (size_t i = 0; i < 400; ++i) {  // room for the metadata
      heap.deallocate(all.back().get());
      all.pop_back();
    }
    EXPECT_OK(heap.close());
    EXPECT_TRUE(take(PersistentHeap::is_consistent(disk + "/heap")));
  }
  ::umount(disk.c_str());
}

INSTANTIATE_TEST_SUITE_P(Pagings, PersistentErrors, scene::kEveryPaging, scene::name_of_paging);

}  // namespace
}  // namespace outcore
