// Persistent heaps whose program ends early, and stores that fail.
#include <fcntl.h>

#include <csignal>

#include "heaps/tests/heap/persistent_scene.h"

namespace outcore {
namespace {

using scene::Folder;
using scene::QuotaStore;
using scene::run_child;
using scene::start_runtime;
using scene::take;
using scene::wait_for;

class PersistentCrash : public testing::TestWithParam<HeapPaging> {
 protected:
  Folder folder;
  const std::string path = folder / "heap";

  // Runs in a child, which is killed by die().
  static void run_and_die(const std::function<void()>& f) {
    const int status = wait_for(run_child([&] {
      f();
      return 0;
    }));
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_EQ(WTERMSIG(status), SIGKILL);
  }
  static void die() { ::kill(::getpid(), SIGKILL); }
  void make_heap() {
    scene::HeapOpener opener(GetParam());
    PersistentHeap heap = take(opener.create(path));
    take(heap.construct<persistent::vector<int>>("v", 100u, 7));
    EXPECT_OK(heap.close());
  }
};

TEST_P(PersistentCrash, OfTheProgramIsToldByTheHeap) {
  make_heap();
  run_and_die([&] {
    scene::HeapOpener opener(GetParam());
    PersistentHeap heap = take(opener.open(path));
    take(heap.find<persistent::vector<int>>("v"))->push_back(8);
    die();
  });
  EXPECT_FALSE(take(PersistentHeap::is_consistent(path)));
  const std::vector<std::string> findings = take(persistent_heap_check(path));
  ASSERT_EQ(findings.size(), 1u) << findings.at(0);
  EXPECT_NE(findings[0].find("not closed"), std::string::npos) << findings[0];
  scene::HeapOpener opener(GetParam());
  const auto opened = opener.open(path);
  EXPECT_EQ(opened.code(), EUCLEAN);
  EXPECT_NE(opened.message().find("was not closed"), std::string::npos) << opened.message();
  EXPECT_EQ(opener.open_read_only(path).code(), EUCLEAN);
}

TEST_P(PersistentCrash, LeavesWhatTheLastFlushStored) {
  run_and_die([&] {
    scene::HeapOpener opener(GetParam());
    PersistentHeap heap = take(opener.create(path));
    take(heap.construct<persistent::vector<int>>("v", 100000u, 7));
    EXPECT_OK(heap.flush());
    take(heap.construct_array<int>("late", 1000000));  // grows; not in the metadata
    die();
  });
  EXPECT_FALSE(take(PersistentHeap::is_consistent(path)));
  scene::HeapOpener opener(GetParam());
  {
    PersistentHeap heap = take(opener.open(path, {.even_if_inconsistent = true}));
    auto& v = *take(heap.find<persistent::vector<int>>("v"));
    ASSERT_EQ(v.size(), 100000u);
    for (const int i : v) ASSERT_EQ(i, 7);
    EXPECT_EQ(heap.find_array<int>("late").code(), ENOENT);
    v.push_back(8);
    EXPECT_OK(heap.close());
  }
  EXPECT_TRUE(take(PersistentHeap::is_consistent(path)));
  EXPECT_TRUE(take(persistent_heap_check(path)).empty());
  EXPECT_EQ(std::filesystem::file_size(path), take(persistent_heap_info(path)).size_bytes);
  PersistentHeap heap = take(opener.open(path));
  EXPECT_EQ(take(heap.find<persistent::vector<int>>("v"))->size(), 100001u);
}

TEST_P(PersistentCrash, BeforeTheFirstFlushLeavesAnEmptyHeap) {
  run_and_die([&] {
    scene::HeapOpener opener(GetParam());
    PersistentHeap heap = take(opener.create(path));
    take(heap.construct<int>("one", 1));
    die();
  });
  EXPECT_FALSE(take(PersistentHeap::is_consistent(path)));
  scene::HeapOpener opener(GetParam());
  PersistentHeap heap = take(opener.open(path, {.even_if_inconsistent = true}));
  EXPECT_EQ(heap.find<int>("one").code(), ENOENT);
}

TEST_P(PersistentCrash, OfAChildLeavesTheParentsHeapAlone) {
  scene::HeapOpener opener(GetParam());
  PersistentHeap heap = take(opener.create(path));
  take(heap.construct<int>("one", 1));
  const int status = wait_for(run_child([&] {
    const PersistentHeap mine = std::move(heap);  // and it ends here
    return mine.find<int>("one").code() == EPERM ? 0 : 1;
  }));
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(take(PersistentHeap::is_consistent(path)));
  EXPECT_EQ(opener.open(path).code(), EBUSY);  // the parent still has it
  take(heap.construct<int>("two", 2));
  EXPECT_OK(heap.close());
  EXPECT_EQ(*take(take(opener.open(path)).find<int>("two")), 2);
}

// The lock ends with its owner, whatever children go on.
TEST_P(PersistentCrash, OfAnOwnerWithAChildLeavesNoLock) {
  int to_test[2], to_child[2];
  ASSERT_EQ(::pipe2(to_test, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(to_child, O_CLOEXEC), 0);
  const pid_t owner = scene::run_child([&] {
    scene::HeapOpener opener(GetParam());
    PersistentHeap heap = take(opener.create(path));
    scene::run_child([&] {
      ::close(to_child[1]);
      const pid_t self = ::getpid();  // told by itself: until it runs it has what its parent had
      if (::write(to_test[1], &self, sizeof self) != sizeof self) return 1;
      char none;
      return static_cast<int>(::read(to_child[0], &none, 1));  // until the test closes its end
    });
    ::close(to_child[1]);
    return ::pause();
  });
  pid_t child = 0;
  ASSERT_EQ(::read(to_test[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  scene::HeapOpener opener(GetParam());
  EXPECT_EQ(opener.open(path).code(), EBUSY);
  ::kill(owner, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(scene::wait_for(owner)));
  EXPECT_EQ(opener.open(path).code(), EUCLEAN);
  for (const int fd : {to_test[0], to_test[1], to_child[0], to_child[1]}) ::close(fd);
}

INSTANTIATE_TEST_SUITE_P(Pagings, PersistentCrash, scene::kEveryPaging, scene::name_of_paging);

class PersistentFailure : public testing::Test {
 protected:
  Runtime runtime = start_runtime();
  std::shared_ptr<QuotaStore> store = std::make_shared<QuotaStore>();

  PersistentHeap create() { return take(PersistentHeap::create(runtime, store)); }
  Result<PersistentHeap> open() { return PersistentHeap::open(runtime, store); }
};

TEST_F(PersistentFailure, OfASyncAtCloseIsToldAndDoesNotMark) {
  for (int before = 0; before < 3; ++before) {  // of the objects, of the metadata, of the header
    store = std::make_shared<QuotaStore>();
    {
      PersistentHeap heap = create();
      take(heap.construct<int>("one", 1));
      store->syncs_before_error = before;
      store->sync_error = EIO;
      Status s = heap.close();
      EXPECT_EQ(s.code(), EIO);
      EXPECT_NE(s.message().find("not marked consistent"), std::string::npos) << s.message();
      // The kernel has forgotten what it could not write: no later success counts.
      store->sync_error = 0;
      EXPECT_EQ(heap.close().code(), EIO);
      if (before == 0) {  // it is still there, to be saved elsewhere
        EXPECT_EQ(*take(heap.find<int>("one")), 1);
      }
    }
    EXPECT_EQ(open().code(), EUCLEAN);
  }
}

TEST_F(PersistentFailure, OfAWriteAtCloseMayBeTriedAgain) {
  PersistentHeap heap = create();
  int* one = take(heap.construct<int>("one", 1));
  store->write_error = ENOSPC;
  EXPECT_EQ(heap.close().code(), ENOSPC);
  store->write_error = 0;
  EXPECT_EQ(*one, 1);  // it is still open
  *one = 2;
  take(heap.construct<int>("two", 2));
  EXPECT_OK(heap.close());
  EXPECT_OK(heap.close());
  EXPECT_EQ(heap.find<int>("one").code(), EBADF);
  PersistentHeap again = take(open());
  EXPECT_EQ(*take(again.find<int>("one")), 2);
  EXPECT_EQ(*take(again.find<int>("two")), 2);
}

TEST_F(PersistentFailure, OfAFlushLeavesTheHeapAsItWas) {
  PersistentHeap heap = create();
  take(heap.construct<int>("one", 1));
  EXPECT_OK(heap.flush());
  store->write_error = EIO;
  take(heap.construct<int>("two", 2));
  EXPECT_EQ(heap.flush().code(), EIO);
  store->write_error = 0;
  EXPECT_OK(heap.flush());
  EXPECT_OK(heap.close());
  EXPECT_EQ(*take(take(open()).find<int>("two")), 2);
}

TEST_F(PersistentFailure, OfAnOpenLeavesTheHeapConsistent) {
  { take(create().construct<int>("one", 1)); }
  store->sync_error = EIO;
  EXPECT_EQ(open().code(), EIO);
  store->sync_error = 0;
  EXPECT_EQ(*take(take(open()).find<int>("one")), 1);
}

// A full store is told where space is asked for, nothing changes, and what was there stays whole.
TEST_F(PersistentFailure, ForWantOfSpaceChangesNothing) {
  store->quota_bytes = uint64_t{24} << 20;
  std::vector<uint64_t*> all;
  uint64_t made = 0;
  {
    PersistentHeap heap = create();
    auto& list = *take(heap.construct<persistent::vector<PersistentPointer<uint64_t>>>("list"));
    list.reserve(100000);
    for (bool is_full = false; !is_full; ++made) {
      const uint64_t size = made % 50 == 0 ? 100000 : 8 + made % 300 * 8;
      Result<void*> object = heap.allocate(size);
      is_full = object.code() == ENOSPC;
      if (is_full) {
        EXPECT_NE(object.message().find("free space"), std::string::npos) << object.message();
        break;
      }
      auto* number = static_cast<uint64_t*>(take(std::move(object)));
      std::fill_n(number, size / 8, made);
      list.push_back(number);
    }
    ASSERT_GT(made, 1000u);
    const uint64_t in_use = heap.info().in_use_bytes;
    for (int i = 0; i < 100; ++i) ASSERT_EQ(heap.allocate(200000).code(), ENOSPC);
    EXPECT_EQ(heap.construct_array<char>("large", 200000).code(), ENOSPC);
    EXPECT_EQ(heap.find_array<char>("large").code(), ENOENT);
    EXPECT_EQ(heap.info().in_use_bytes, in_use);
    for (uint64_t i = 0; i < list.size(); ++i) ASSERT_EQ(*list[i], i);
    // What is freed can be had again.
    for (uint64_t i = 0; i < list.size(); i += 2) {
      heap.deallocate(list[i].get());
      list[i] = nullptr;
    }
    take(heap.allocate(200000));
    EXPECT_OK(heap.close());
  }
  PersistentHeap heap = take(open());
  auto& list = *take(heap.find<persistent::vector<PersistentPointer<uint64_t>>>("list"));
  ASSERT_EQ(list.size(), made);
  for (uint64_t i = 1; i < list.size(); i += 2) ASSERT_EQ(*list[i], i);
}

TEST_F(PersistentFailure, ForWantOfSpaceAtCloseMayBeMended) {
  store->quota_bytes = uint64_t{8} << 20;
  PersistentHeap heap = create();
  std::vector<void*> all;
  for (const uint64_t size : {65536, 8192})
    for (Result<void*> object = heap.allocate(size); object; object = heap.allocate(size))
      all.push_back(object.value());
  EXPECT_EQ(heap.close().code(), ENOSPC);
  for (int i = 0; i < 40; ++i) {
    heap.deallocate(all.back());
    all.pop_back();
  }
  EXPECT_OK(heap.close());
  EXPECT_TRUE(open().ok());
}

}  // namespace
}  // namespace outcore
