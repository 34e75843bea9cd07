// The ring: one for each thread; its buffers; what happens without it, and after a fork.
#include "core/store/io_ring.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "core/tests/store/store_case.h"

namespace outcore::store_test {
namespace {

using store::IoRing;

size_t ring_count() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const auto target = std::filesystem::read_symlink(entry.path(), ignored).string();
    count += target.find("io_uring") != std::string::npos;
  }
  return count;
}

// Writes and reads back pages of a store in batches.
bool round_trip(Store& store, uint64_t seed) {
  const size_t size = store.size_bytes();
  AlignedBytes buffer(size);
  const Bytes bytes = random_bytes(size, seed);
  std::copy(bytes.begin(), bytes.end(), buffer.data());
  store.register_buffer(buffer.span());
  for (const bool is_write : {true, false}) {
    std::vector<StoreRequest> batch;
    for (size_t at = 0; at < size; at += 4096)
      batch.push_back({at, buffer.data() + at, 4096, is_write, 77});
    store.transfer(batch);
    for (const StoreRequest& r : batch)
      if (r.result != 0) return false;
    if (is_write) std::fill_n(buffer.data(), size, std::byte{0});
  }
  return std::equal(bytes.begin(), bytes.end(), buffer.data());
}

std::shared_ptr<Store> make_file(const Folder& folder, const std::string& name = "f") {
  OpenOptions options;
  options.is_writable = options.may_create = true;
  options.size_bytes = 1 << 20;
  return open_store(folder / name, options).value();
}

class Ring : public testing::Test {
 protected:
  void SetUp() override {
    if (IoRing::of_this_thread() == nullptr) GTEST_SKIP() << "io_uring is not to be had here";
  }
};

TEST_F(Ring, StoresOfAThreadShareOneAndItEndsWithTheThread) {
  const Folder folder;
  const size_t before = ring_count();
  std::thread([&] {
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(round_trip(*make_file(folder, std::to_string(i)), 1));
    EXPECT_EQ(ring_count(), before + 1);
  }).join();
  EXPECT_EQ(ring_count(), before);
}

TEST_F(Ring, ABufferIsRegisteredAsLongAsAStoreLendsIt) {
  const Folder folder;
  auto store = make_file(folder);
  auto other = make_file(folder, "g");
  AlignedBytes buffer(64 << 10);
  store->register_buffer(buffer.span());
  other->register_buffer(buffer.span());
  const auto transfer = [&](Store& through) {
    StoreRequest batch[] = {{0, buffer.data(), 4096, true, 77},
                            {4096, buffer.data() + 4096, 4096, true, 77}};
    through.transfer(batch);
    EXPECT_EQ(batch[0].result | batch[1].result, 0);
    return IoRing::of_this_thread()->registered_count();
  };
  if (transfer(*store) == 0) GTEST_SKIP() << "RLIMIT_MEMLOCK leaves no room to register";
  EXPECT_EQ(transfer(*store), 1u);
  store.reset();
  EXPECT_EQ(transfer(*other), 1u);
  other.reset();
  auto last = make_file(folder, "h");
  EXPECT_EQ(transfer(*last), 0u);
}

// Maps new memory at an old address, for which the kernel may still have the old pages registered.
std::span<std::byte> map_anew(std::span<std::byte> old, size_t size_bytes) {
  if (!old.empty()) ::munmap(old.data(), old.size());
  void* memory =
      ::mmap(old.data(), size_bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | (old.empty() ? 0 : MAP_FIXED_NOREPLACE), -1, 0);
  EXPECT_NE(memory, MAP_FAILED);
  return {static_cast<std::byte*>(memory), size_bytes};
}

// Reads two pages of a store with contents `bytes` into the buffer, as a batch.
bool reads_right(Store& store, std::span<std::byte> buffer, const Bytes& bytes) {
  StoreRequest batch[] = {{0, buffer.data(), 4096, false, 77},
                          {4096, buffer.data() + 4096, 4096, false, 77}};
  store.transfer(batch);
  return batch[0].result == 0 && batch[1].result == 0 &&
         std::equal(bytes.begin(), bytes.end(), buffer.begin());
}

TEST_F(Ring, ABufferRegisteredAgainAtTheSameAddressIsTheNewMemory) {
  const Folder folder;
  const Bytes bytes = random_bytes(8192, 7);
  auto store = make_file(folder);
  ASSERT_EQ(store->write(0, bytes), 0);
  auto memory = map_anew({}, 64 << 10);
  for (int turn = 0; turn < 3; ++turn) {
    store->register_buffer(memory);
    EXPECT_TRUE(reads_right(*store, memory, bytes)) << turn;
    memory = map_anew(memory, 64 << 10);
  }
  // Another store lends the buffer, too; the first has not returned it.
  auto other = make_file(folder);
  other->register_buffer(memory);
  EXPECT_TRUE(reads_right(*other, memory, bytes));
  ::munmap(memory.data(), memory.size());
}

TEST_F(Ring, AForgottenBufferIsNotUsedForWhatComesToItsAddress) {
  const Folder folder;
  const Bytes bytes = random_bytes(8192, 8);
  auto store = make_file(folder);
  ASSERT_EQ(store->write(0, bytes), 0);
  auto memory = map_anew({}, 64 << 10);
  store->register_buffer(memory);
  ASSERT_TRUE(reads_right(*store, memory, bytes));
  store::BufferSet::of_process().forget(memory);
  memory = map_anew(memory, 64 << 10);
  EXPECT_TRUE(reads_right(*store, memory, bytes));
  EXPECT_EQ(IoRing::of_this_thread()->registered_count(), 0u);
  ::munmap(memory.data(), memory.size());
}

TEST_F(Ring, ABufferThatCannotBeRegisteredIsUsedWithoutIt) {
  const Folder folder;
  auto store = make_file(folder);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{0, 0};
    // Root may lock any amount.
    const bool is_limited =
        ::setrlimit(RLIMIT_MEMLOCK, &none) == 0 && (::getuid() != 0 || ::setuid(65534) == 0);
    const bool is_right = round_trip(*store, 2);
    const IoRing* ring = IoRing::of_this_thread();
    ::_exit(is_limited && is_right && (ring == nullptr || ring->registered_count() == 0) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(Ring, WithoutDescriptorsForARingTransfersStillWork) {
  const Folder folder;
  auto store = make_file(folder);
  // UBSan examines an object's type through a pipe when it first meets the type.
  ASSERT_TRUE(round_trip(*store, 2));
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  bool has_ring = true;
  bool is_right = false;
  std::thread([&] {
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    has_ring = IoRing::of_this_thread() != nullptr;
    is_right = round_trip(*store, 3);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  }).join();
  EXPECT_FALSE(has_ring);
  EXPECT_TRUE(is_right);
}

TEST_F(Ring, AForkedChildMakesItsOwnAndTheParentGoesOn) {
  const Folder folder;
  auto store = make_file(folder);
  ASSERT_TRUE(round_trip(*store, 4));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(round_trip(*store, 5) ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(round_trip(*store, 6));
}

}  // namespace
}  // namespace outcore::store_test
