// Persistent heaps over the kernel's own mapping: they are the same heaps, and what the kernel
// cannot promise is refused. What both pagings share is tested where it is tested of regions.
#include <sys/mount.h>

#include <csignal>
#include <cstdlib>

#include "heaps/tests/heap/persistent_scene.h"

namespace outcore {
namespace {

using scene::Folder;
using scene::HeapOpener;
using scene::run_child;
using scene::start_runtime;
using scene::take;
using scene::wait_for;
using Lists = persistent::unordered_map<uint64_t, persistent::vector<uint64_t>>;

class PersistentPaging : public testing::Test {
 protected:
  Folder folder;
  const std::string path = folder / "heap";
  HeapOpener kernel{HeapPaging::kKernel};

  static PersistentHeapOptions by_kernel() {
    PersistentHeapOptions options;
    options.paging = HeapPaging::kKernel;
    return options;
  }
  // EINVAL or ENOTSUP in one line that has the text, and nothing is made.
  void expect_refused(const Result<PersistentHeap>& heap, int code, const std::string& text) {
    ASSERT_FALSE(heap.ok());
    EXPECT_EQ(heap.code(), code) << heap.message();
    EXPECT_NE(heap.message().find(text), std::string::npos) << heap.message();
    EXPECT_EQ(heap.message().find('\n'), std::string::npos) << heap.message();
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
};

uint64_t value_of(uint64_t list, uint64_t at) { return list * 1'000'003 + at; }

// Each opens what the other has closed, adds to it, takes away from it, and finds all of it.
TEST_F(PersistentPaging, OfOneOpensWhatTheOtherHasMade) {
  constexpr uint64_t kLists = 3000;
  HeapOpener region(HeapPaging::kOutcore, uint64_t{4} << 20);
  for (uint64_t turn = 0; turn < 6; ++turn) {
    HeapOpener& opener = turn % 2 == 0 ? kernel : region;
    PersistentHeap heap = take(turn == 0 ? opener.create(path) : opener.open(path));
    Lists& lists = *take(heap.find_or_construct<Lists>("lists"));
    for (uint64_t list = 0; list < kLists; ++list)
      for (uint64_t i = 0; i < 60; ++i) {
        auto& one = lists[list];
        one.push_back(value_of(list, one.size()));
      }
    take(heap.construct_array<uint64_t>("large " + std::to_string(turn), 100'000, turn));
    if (turn >= 2) {
      EXPECT_OK(heap.destroy<uint64_t>("large " + std::to_string(turn - 2)));
    }
    EXPECT_OK(heap.close());
    ASSERT_TRUE(take(persistent_heap_check(path)).empty());
  }
  EXPECT_GT(std::filesystem::file_size(path), uint64_t{8} << 20);
  for (HeapOpener* const opener : {&kernel, &region}) {
    PersistentHeap heap = take(opener->open_read_only(path));
    const Lists& lists = *take(heap.find<Lists>("lists"));
    ASSERT_EQ(lists.size(), kLists);
    for (const auto& [list, values] : lists) {
      ASSERT_EQ(values.size(), 360u);
      for (uint64_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], value_of(list, i));
    }
    for (const uint64_t turn : {4, 5})
      for (const uint64_t value : take(heap.find_array<uint64_t>("large " + std::to_string(turn))))
        ASSERT_EQ(value, turn);
    EXPECT_EQ(heap.info().objects.size(), 3u);
  }
}

// The bytes are in the file when flush() has returned: whoever reads it then has them.
TEST_F(PersistentPaging, OfTheKernelStoresWhatAFlushPromises) {
  PersistentHeap heap = take(kernel.create(path));
  const std::span<uint64_t> numbers = take(heap.construct_array<uint64_t>("numbers", 100'000, 7u));
  EXPECT_OK(heap.flush());
  const auto offset =
      static_cast<size_t>(reinterpret_cast<std::byte*>(numbers.data()) - heap.core().base());
  const std::vector<char> bytes = scene::read_file(path);
  ASSERT_GE(bytes.size(), offset + numbers.size_bytes());
  EXPECT_EQ(std::memcmp(bytes.data() + offset, numbers.data(), numbers.size_bytes()), 0);
  EXPECT_EQ(take(persistent_heap_info(path)).objects.size(), 1u);
}

TEST_F(PersistentPaging, OfTheKernelStartsNoRuntime) {
  ::setenv("OUTCORE_BUDGET", "none at all", 1);
  EXPECT_EQ(PersistentHeap::create(path).code(), EINVAL);
  {
    PersistentHeap heap = take(kernel.create(path));
    take(heap.construct<int>("one", 1));
    EXPECT_FALSE(heap.region().is_mapped());
    EXPECT_EQ(heap.region().flush().code(), EINVAL);
    EXPECT_OK(heap.close());
    EXPECT_EQ(heap.info().size_bytes, 0u);
  }
  ::unsetenv("OUTCORE_BUDGET");
  EXPECT_EQ(*take(take(kernel.open_read_only(path)).find<int>("one")), 1);
}

TEST_F(PersistentPaging, OfTheKernelRefusesWhatItCannotPromise) {
  Runtime runtime = start_runtime();
  expect_refused(PersistentHeap::create(runtime, path, by_kernel()), EINVAL,
                 "leave the runtime out");
  expect_refused(PersistentHeap::open(runtime, path, by_kernel()), EINVAL, "leave the runtime out");
  const auto store = std::make_shared<scene::QuotaStore>();
  expect_refused(PersistentHeap::create(runtime, store, by_kernel()), EINVAL,
                 "leave the runtime out");
  PersistentHeapOptions options = by_kernel();
  options.runtime.budget_bytes = uint64_t{16} << 20;
  expect_refused(PersistentHeap::create(path, options), EINVAL, "no budget");
  options = by_kernel();
  options.runtime.adapts_budget = true;
  expect_refused(PersistentHeap::create(path, options), EINVAL, "no budget");
  options = by_kernel();
  options.page_bytes = 65536;
  expect_refused(PersistentHeap::create(path, options), EINVAL, "page_bytes");
  for (const std::string& uri : {"sparse:" + path + "?segment=1M", "scratch:" + folder.path(),
                                 std::string("memory:"), "versioned:" + path + "?object=heap"})
    expect_refused(PersistentHeap::create(uri, by_kernel()), ENOTSUP, "files only");
  const auto secret = PersistentHeap::create("redis://me:secret@host/name", by_kernel());
  EXPECT_EQ(secret.code(), ENOTSUP) << secret.message();
  EXPECT_EQ(secret.message().find("secret"), std::string::npos) << secret.message();
  expect_refused(PersistentHeap::create("nosuch:" + path, by_kernel()), EINVAL, "nosuch");
  expect_refused(PersistentHeap::open(path, by_kernel()), ENOENT, "create it first");
  options = by_kernel();
  options.page_bytes = 4096;
  EXPECT_TRUE(PersistentHeap::create(path, options).ok());
}

TEST_F(PersistentPaging, OfTheKernelTakesEachAdvice) {
  for (const Advice advice : {Advice::kNormal, Advice::kRandom, Advice::kSequential,
                              Advice::kWillNeed, Advice::kDontNeed, Advice::kCold}) {
    PersistentHeapOptions options = by_kernel();
    options.advice = advice;
    const std::string name = folder / std::to_string(static_cast<int>(advice));
    {
      PersistentHeap heap = take(PersistentHeap::create(name, options));
      take(heap.construct_array<int>("numbers", 5'000'000, 3));  // grows, too
      EXPECT_OK(heap.close());
    }
    PersistentHeap heap = take(PersistentHeap::open(name, options));
    for (const int number : take(heap.find_array<int>("numbers"))) ASSERT_EQ(number, 3);
  }
}

// A container that ends in a child must not write into the parent's file.
TEST_F(PersistentPaging, OfTheKernelIsNotInherited) {
  std::optional<PersistentHeap> heap = take(kernel.create(path));
  volatile int* const one = take(heap->construct<int>("one", 1));
  volatile int* const late = take(heap->construct_array<int>("late", 5'000'000, 2)).data();
  for (volatile int* const place : {one, late + 4'000'000}) {
    const int status = wait_for(run_child([&] {
      ::signal(SIGSEGV, SIG_DFL);
      *place = 9;
      return 0;
    }));
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGSEGV);
  }
  // A heap of the child's own is another matter, and a grandchild's.
  EXPECT_EQ(wait_for(run_child([&] {
              PersistentHeap own = take(kernel.create(folder / "own"));
              *take(own.construct<int>("one", 5)) += 1;
              heap.reset();
              const int of_grandchild = wait_for(
                  run_child([&] { return kernel.open(folder / "own").code() == EBUSY ? 0 : 1; }));
              return of_grandchild == 0 && own.close().ok() ? 0 : 1;
            })),
            0);
  EXPECT_EQ(*take(take(kernel.open(folder / "own")).find<int>("one")), 6);
  EXPECT_EQ(*one, 1);
  EXPECT_EQ(late[4'000'000], 2);
  EXPECT_OK(heap->close());
}

// Bytes that were written but never flushed are the file's when the program is killed; names are
// those of the last flush, and nothing else of the file has changed.
TEST_F(PersistentPaging, OfTheKernelKeepsWhatAKilledProgramWrote) {
  const int status = wait_for(run_child([&] {
    PersistentHeap heap = take(kernel.create(path));
    const std::span<uint64_t> numbers = take(heap.construct_array<uint64_t>("numbers", 1 << 20));
    EXPECT_OK(heap.flush());
    for (uint64_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
    take(heap.construct<int>("late", 1));
    ::kill(::getpid(), SIGKILL);
    return 0;
  }));
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(kernel.open(path).code(), EUCLEAN);
  HeapOpener region(HeapPaging::kOutcore);
  EXPECT_EQ(region.open(path).code(), EUCLEAN);
  for (HeapOpener* const opener : {&region, &kernel}) {
    PersistentHeap heap = take(opener->open(path, {.even_if_inconsistent = true}));
    const std::span<uint64_t> numbers = take(heap.find_array<uint64_t>("numbers"));
    ASSERT_EQ(numbers.size(), uint64_t{1} << 20);
    for (uint64_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], i);
    EXPECT_EQ(heap.find<int>("late").code(), ENOENT);
    EXPECT_OK(heap.close());
  }
}

// A filesystem that has space, on a device that has none.
class HollowDisk {
 public:
  explicit HollowDisk(const std::string& folder) : below_(folder + "/below"), on_(folder + "/on") {
    std::filesystem::create_directory(below_);
    std::filesystem::create_directory(on_);
    if (::mount("none", below_.c_str(), "tmpfs", 0, "size=24m") != 0) return;
    const std::string image = below_ + "/image";
    std::ofstream(image).close();
    std::filesystem::resize_file(image, uint64_t{128} << 20);
    is_there_ =
        std::system(("mkfs.ext4 -q -F -E lazy_itable_init=0,nodiscard " + image +
                     " >/dev/null 2>&1 && mount -o loop " + image + " " + on_ + " 2>/dev/null")
                        .c_str()) == 0;
  }
  HollowDisk(const HollowDisk&) = delete;
  HollowDisk& operator=(const HollowDisk&) = delete;
  ~HollowDisk() {
    ::umount2(on_.c_str(), MNT_DETACH);
    ::umount2(below_.c_str(), MNT_DETACH);
  }
  bool is_there() const { return is_there_; }
  const std::string& folder() const { return on_; }

 private:
  std::string below_, on_;
  bool is_there_ = false;
};

// The kernel tells it once, and has forgotten the bytes: no later success counts.
TEST_F(PersistentPaging, OfTheKernelTellsForGoodWhatCouldNotBeWritten) {
  const HollowDisk disk(folder.path());
  if (!disk.is_there()) GTEST_SKIP() << "no filesystem can be made and mounted here";
  const std::string heap_path = disk.folder() + "/heap";
  {
    PersistentHeap heap = take(kernel.create(heap_path));
    take(heap.construct_array<char>("all", 48 << 20, 'x'));
    const Status flushed = heap.flush();
    EXPECT_FALSE(flushed.ok());
    EXPECT_NE(flushed.message().find("bytes may be lost"), std::string::npos) << flushed.message();
    EXPECT_EQ(heap.flush().code(), flushed.code());
    EXPECT_EQ(heap.close().code(), flushed.code());
    EXPECT_EQ(heap.close().code(), flushed.code());
  }
  EXPECT_FALSE(take(PersistentHeap::is_consistent(heap_path)));
  EXPECT_EQ(kernel.open(heap_path).code(), EUCLEAN);
}

}  // namespace
}  // namespace outcore
