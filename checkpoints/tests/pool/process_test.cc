// Pools of real files: writers that are killed, two of them, readers in other processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <random>
#include <thread>

#include "checkpoints/pool/folder_disk.h"
#include "checkpoints/pool/pool.h"
#include "checkpoints/pool/verify.h"
#include "checkpoints/store/versioned_pools.h"
#include "checkpoints/tests/pool/model.h"
#include "checkpoints/tests/pool/pools.h"
#include "tests/folder.h"

namespace outcore::versioned_test {
namespace {

using scene::Folder;
using testing::HasSubstr;
using versioned::Object;
using versioned::Pool;

constexpr uint64_t kChunks = 64;

Result<std::shared_ptr<Pool>> open_pool(const std::string& folder) {
  store::VersionedPoolOptions options;
  options.folder = folder;
  options.may_create = true;
  return store::open_versioned_pool(options);
}

// What two processes tell each other.
struct Shared {
  std::atomic<uint32_t> step;   // that was acknowledged
  std::atomic<uint32_t> stage;  // how far a child is
  std::atomic<uint32_t> may_end;
};

Shared* shared_memory() {
  void* const got =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return got == MAP_FAILED ? nullptr : new (got) Shared{};
}

bool becomes(const std::function<bool()>& condition) {
  for (int i = 0; i < 30'000; ++i) {
    if (condition()) return true;
    ::poll(nullptr, 0, 1);
  }
  return false;
}

// The chunks that a step writes, of one object.
std::vector<uint64_t> chunks_of_step(uint32_t step, uint32_t object) {
  std::mt19937_64 random(step * 2 + object);
  std::vector<uint64_t> chunks(1 + random() % 9);
  for (uint64_t& chunk : chunks) chunk = random() % kChunks;
  return chunks;
}

void write_step(Pool& pool, uint32_t step) {
  for (uint32_t object = 0; object < 2; ++object)
    for (const uint64_t chunk : chunks_of_step(step, object)) {
      std::vector<std::byte> bytes(kChunk);
      for (uint64_t at = 0; at < kChunk; at += kUnit) fill_unit(bytes.data() + at, step);
      pool.write(*pool.find(object == 0 ? "a" : "b"), chunk * kChunk, bytes);
    }
}

// Steps one after the other, each a checkpoint; the last three are kept.
[[noreturn]] void run_steps(const std::string& folder, uint32_t from, Shared& shared) {
  auto opened = open_pool(folder);
  if (!opened) ::_exit(2);
  Pool& pool = *opened.value();
  for (const char* const name : {"a", "b"})
    if (pool.find(name) == nullptr) (void)pool.create(name, kChunks * kChunk);
  for (uint32_t step = from;; ++step) {
    write_step(pool, step);
    if (!pool.commit("s" + std::to_string(step))) ::_exit(3);
    shared.step = step;
    std::vector<std::string> old;
    const auto all = pool.checkpoints();
    for (size_t i = 0; i + 3 < all.size(); ++i) old.push_back(all[i].about.name);
    if (!old.empty() && !pool.remove(old)) ::_exit(4);
    if (step % 5 == 0 && !pool.roll_back("s" + std::to_string(step))) ::_exit(5);
    ++shared.stage;
  }
}

// What the objects hold after a step, read by `read`.
template <typename Read>
void expect_step(uint32_t step, Read read) {
  for (uint32_t object = 0; object < 2; ++object) {
    std::vector<uint32_t> stamps(kChunks);
    for (uint32_t s = 1; s <= step; ++s)
      for (const uint64_t chunk : chunks_of_step(s, object)) stamps[chunk] = s;
    std::vector<std::byte> bytes(kChunks * kChunk);
    ASSERT_EQ(read(object == 0 ? "a" : "b", std::span(bytes)), 0);
    for (uint64_t at = 0; at < bytes.size(); at += kUnit)
      ASSERT_TRUE(is_unit(bytes.data() + at, stamps[at / kChunk]))
          << "step " << step << " at " << at;
  }
}

// As another process sees it beside the writer.
void expect_whole(const Pool& pool) {
  const auto disk = versioned::FolderDisk::open(pool.disk().name(), false).value();
  const auto checked = versioned::verify_pool(disk);
  ASSERT_TRUE(checked.ok()) << checked.message();
  EXPECT_TRUE(checked->bad.empty());
}

void expect_all(Pool& pool, uint32_t acknowledged, uint32_t& last) {
  const auto checkpoints = pool.checkpoints();
  ASSERT_FALSE(checkpoints.empty());
  last = static_cast<uint32_t>(std::stoul(checkpoints.back().about.name.substr(1)));
  ASSERT_GE(last, acknowledged);
  ASSERT_LE(last, acknowledged + 1);
  expect_step(last, [&](const char* name, std::span<std::byte> into) {
    return pool.read(*pool.find(name), 0, into);
  });
  for (const auto& checkpoint : checkpoints) {
    const auto snapshot = pool.open_at(checkpoint.about.name);
    ASSERT_TRUE(snapshot.ok()) << snapshot.message();
    expect_step(static_cast<uint32_t>(std::stoul(checkpoint.about.name.substr(1))),
                [&](const char* name, std::span<std::byte> into) {
                  return snapshot.value()->read(*snapshot.value()->find(name), 0, into);
                });
  }
  expect_whole(pool);
  EXPECT_TRUE(pool.is_valid());
}

TEST(Killed, AWriterLeavesItsLastCheckpointFiftyTimes) {
  const Folder folder;
  Shared* const shared = shared_memory();
  ASSERT_NE(shared, nullptr);
  std::mt19937_64 random(5);
  uint32_t last = 0;
  for (int kill_count = 0; kill_count < 50; ++kill_count) {
    shared->step = last;
    const uint32_t until = last + 1 + static_cast<uint32_t>(random() % 6);
    const uint64_t spins = random() % 20'000;  // anywhere in what comes next
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) run_steps(folder / "pool", last + 1, *shared);
    while (shared->step < until && ::waitpid(child, nullptr, WNOHANG) == 0) ::sched_yield();
    for (uint64_t i = 0; i < spins; ++i) __builtin_ia32_pause();
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_GE(shared->step, until);  // it did not end by itself
    const auto pool = open_pool(folder / "pool");
    ASSERT_TRUE(pool.ok()) << pool.message();
    expect_all(*pool.value(), shared->step, last);
    if (HasFatalFailure()) return;
  }
}

// Runs `child` in another process; its result is the exit status.
int result_of(const std::function<int()>& child) {
  const pid_t process = ::fork();
  if (process == 0) ::_exit(child());
  int status = 0;
  ::waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(TwoWriters, TheSecondIsToldWhoIsTheFirst) {
  const Folder folder;
  const auto pool = open_pool(folder / "pool");
  ASSERT_TRUE(pool.ok()) << pool.message();
  const std::string us = "process " + std::to_string(::getpid());
  EXPECT_EQ(result_of([&] {
              const auto second = open_pool(folder / "pool");
              if (second) return 1;
              return second.code() == EBUSY && second.message().find(us) != std::string::npos ? 0
                                                                                              : 2;
            }),
            0);
}

TEST(TwoWriters, AForkedChildDoesNotWriteItsParentsPool) {
  const Folder folder;
  const auto pool = open_pool(folder / "pool");
  ASSERT_TRUE(pool.ok()) << pool.message();
  const auto object = pool.value()->create("a", 1 << 20).value();
  const std::vector<std::byte> bytes(kChunk, std::byte{1});
  EXPECT_EQ(result_of([&] {
              if (pool.value()->write(*object, 0, bytes) != -EPERM) return 1;
              return pool.value()->commit("c").code() == EPERM ? 0 : 2;
            }),
            0);
  EXPECT_EQ(pool.value()->write(*object, 0, bytes), 0);
  EXPECT_TRUE(pool.value()->commit("c").ok());
}

TEST(FullDisk, RefusesWritesKeepsWhatIsThereAndTakesMoreLater) {
  const Folder folder;
  EXPECT_EQ(result_of([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{8 << 20, 8 << 20};
              if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
              const auto pool = open_pool(folder / "pool").value();
              const auto object = pool->create("a", 64 << 20).value();
              std::vector<std::byte> bytes(kChunk);
              int error = 0;
              for (uint32_t chunk = 0; chunk < 4096 && error == 0; ++chunk) {
                fill_unit(bytes.data(), chunk + 1);
                error = pool->write(*object, chunk * kChunk, bytes);
              }
              if (error != -EFBIG || !pool->commit("full")) return 2;
              // Nothing is left to write to: what is there stays what it is.
              if (pool->write(*object, 0, bytes) != -EFBIG) return 3;
              return pool->last_failure().empty() ? 4 : 0;
            }),
            0);
  const auto pool = open_pool(folder / "pool").value();
  const auto object = pool->find("a");
  std::vector<std::byte> bytes(kChunk);
  ASSERT_EQ(pool->read(*object, 0, bytes), 0);
  EXPECT_TRUE(is_unit(bytes.data(), 1));
  EXPECT_EQ(pool->write(*object, 5000 * kChunk, bytes), 0);
  EXPECT_EQ(pool->sync(), 0);
  expect_whole(*pool);
}

// A child that opens a commit and holds it until it may end.
pid_t reader_of(const std::string& folder, const std::string& at, Shared& shared) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  const auto disk = versioned::FolderDisk::open(folder, false);
  if (!disk) ::_exit(1);
  const auto snapshot = versioned::Snapshot::open(disk.value(), at);
  if (!snapshot) ::_exit(2);
  shared.stage = 1;
  becomes([&] { return shared.may_end.load() != 0; });
  std::vector<std::byte> bytes(kChunks * kChunk);
  const versioned::StateObject* const object = snapshot.value()->find("a");
  if (object == nullptr || snapshot.value()->read(*object, 0, bytes) != 0) ::_exit(3);
  for (uint64_t at_byte = 0; at_byte < bytes.size(); at_byte += kUnit)
    if (!is_unit(bytes.data() + at_byte, 1)) ::_exit(4);
  ::_exit(0);
}

void write_all(Pool& pool, Object& object, uint32_t stamp) {
  std::vector<std::byte> bytes(kChunks * kChunk);
  for (uint64_t at = 0; at < bytes.size(); at += kUnit) fill_unit(bytes.data() + at, stamp);
  ASSERT_EQ(pool.write(object, 0, bytes), 0);
}

TEST(Reader, OfACheckpointKeepsItFromBeingRemovedAndIsNamed) {
  const Folder folder;
  Shared* const shared = shared_memory();
  const auto pool = open_pool(folder / "pool").value();
  const auto object = pool->create("a", kChunks * kChunk).value();
  write_all(*pool, *object, 1);
  ASSERT_TRUE(pool->commit("first").ok());
  const pid_t child = reader_of(folder / "pool", "first", *shared);
  ASSERT_TRUE(becomes([&] { return shared->stage == 1; }));
  const Status refused = pool->remove({"first"});
  EXPECT_EQ(refused.code(), EBUSY);
  EXPECT_THAT(refused.message(), HasSubstr("process " + std::to_string(child)));
  for (uint32_t stamp = 2; stamp < 5; ++stamp) {
    write_all(*pool, *object, stamp);
    ASSERT_EQ(pool->sync(), 0);
  }
  shared->may_end = 1;
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(pool->remove({"first"}).ok());
  EXPECT_EQ(pool->usage().held_bytes, 0u);
}

TEST(Reader, OfTheLastCommitHasItWhileTheWriterGoesOnAndIsFollowedByAnother) {
  const Folder folder;
  Shared* const shared = shared_memory();
  auto pool = open_pool(folder / "pool").value();
  auto object = pool->create("a", kChunks * kChunk).value();
  write_all(*pool, *object, 1);
  ASSERT_EQ(pool->sync(), 0);
  const pid_t child = reader_of(folder / "pool", "", *shared);
  ASSERT_TRUE(becomes([&] { return shared->stage == 1; }));
  for (uint32_t stamp = 2; stamp < 5; ++stamp) {
    write_all(*pool, *object, stamp);
    ASSERT_EQ(pool->sync(), 0);
  }
  // A writer that comes later finds who reads.
  object.reset();
  pool.reset();
  pool = open_pool(folder / "pool").value();
  object = pool->find("a");
  for (uint32_t stamp = 5; stamp < 8; ++stamp) {
    write_all(*pool, *object, stamp);
    ASSERT_EQ(pool->sync(), 0);
  }
  EXPECT_EQ(pool->usage().held_bytes, kChunks * kChunk);
  shared->may_end = 1;
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  write_all(*pool, *object, 8);
  ASSERT_EQ(pool->sync(), 0);
  EXPECT_EQ(pool->usage().held_bytes, 0u);
}

void fill_chunk(std::span<std::byte> bytes, uint32_t stamp) {
  for (uint64_t at = 0; at < bytes.size(); at += kUnit) fill_unit(bytes.data() + at, stamp);
}

bool holds(Pool& pool, Object& object, uint64_t chunk, uint32_t stamp) {
  std::vector<std::byte> bytes(kChunk);
  if (pool.read(object, chunk * kChunk, bytes) != 0) return false;
  return is_unit(bytes.data(), stamp) && is_unit(bytes.data() + kChunk - kUnit, stamp);
}

TEST(Threads, WriteWhileOthersCommitReadAndRemove) {
  const Folder folder;
  const auto pool = open_pool(folder / "pool").value();
  constexpr uint32_t kThreads = 3, kPerThread = 16, kTurns = 400;
  const auto object = pool->create("a", kThreads * kPerThread * kChunk).value();
  std::atomic<bool> is_done{false};
  std::atomic<int> wrong_count{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::vector<std::byte> bytes(kChunk);
      for (uint32_t turn = 1; turn <= kTurns; ++turn) {
        const uint32_t chunk = t * kPerThread + turn % kPerThread;
        fill_chunk(bytes, turn * 10 + t);
        wrong_count += pool->write(*object, chunk * kChunk, bytes) != 0;
        wrong_count += !holds(*pool, *object, chunk, turn * 10 + t);
      }
    });
  std::thread committer([&] {
    for (int i = 0; !is_done; ++i) {
      wrong_count += !pool->commit("c" + std::to_string(i)).ok();
      if (i > 2) wrong_count += !pool->remove({"c" + std::to_string(i - 3)}).ok();
    }
  });
  for (std::thread& t : threads) t.join();
  is_done = true;
  committer.join();
  EXPECT_EQ(wrong_count, 0);
  EXPECT_TRUE(pool->is_valid());
  expect_whole(*pool);
  for (uint32_t t = 0; t < kThreads; ++t)
    for (uint32_t turn = kTurns - kPerThread + 1; turn <= kTurns; ++turn)
      EXPECT_TRUE(holds(*pool, *object, t * kPerThread + turn % kPerThread, turn * 10 + t));
}

}  // namespace
}  // namespace outcore::versioned_test
