// Thousands of damaged heaps: whatever their bytes, checking and opening them ends, and says so.
// OUTCORE_TEST_SHARE=N: one part in N of them.
#include <random>

#include "heaps/persistent/persistent_format.h"
#include "heaps/persistent/persistent_image.h"
#include "heaps/tests/heap/persistent_scene.h"
#include "tests/share.h"

namespace outcore {
namespace {

using heap::persistent::checksum_of;
using heap::persistent::Header;
using heap::persistent::kHeadersBytes;
using heap::persistent::kHeaderStride;
using scene::Folder;
using scene::start_runtime;
using scene::take;

class BytesStore : public Store {
 public:
  explicit BytesStore(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  uint64_t size_bytes() const override { return bytes_.size(); }
  int read(uint64_t offset, std::span<std::byte> into) override {
    std::memcpy(into.data(), bytes_.data() + offset, into.size());
    return 0;
  }
  int write(uint64_t offset, std::span<const std::byte> from) override {
    std::memcpy(bytes_.data() + offset, from.data(), from.size());
    return 0;
  }
  int resize(uint64_t size_bytes) override {
    bytes_.reserve(uint64_t{64} << 20);  // it stays where it is
    bytes_.resize(size_bytes);
    return 0;
  }
  StoreTraits traits() const override {
    StoreTraits traits;
    traits.is_fault_safe = true;
    return traits;
  }
  std::string uri() const override { return "bytes:"; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

std::vector<std::byte> make_heap(Runtime& runtime) {
  const auto store = std::make_shared<BytesStore>(std::vector<std::byte>());
  PersistentHeap heap = take(PersistentHeap::create(runtime, store));
  auto& v = *take(heap.construct<persistent::vector<persistent::string>>("strings"));
  for (int i = 0; i < 300; ++i) v.emplace_back(static_cast<size_t>(i % 90), 'x');
  for (int i = 0; i < 20; ++i)
    take(heap.construct_array<int>("array " + std::to_string(i), 1u << i % 11));
  for (int i = 0; i < 20; i += 3) EXPECT_OK(heap.destroy<int>("array " + std::to_string(i)));
  EXPECT_OK(heap.close());
  return store->bytes();
}

// Both headers with right checksums, of themselves and of the metadata.
void sign(std::vector<std::byte>& bytes) {
  for (const uint64_t copy : {uint64_t{0}, kHeaderStride}) {
    Header header;
    std::memcpy(&header, bytes.data() + copy, sizeof header);
    if (header.metadata_offset < bytes.size() &&
        header.metadata_bytes <= bytes.size() - header.metadata_offset)
      header.metadata_checksum =
          checksum_of({bytes.data() + header.metadata_offset, header.metadata_bytes});
    header.checksum =
        checksum_of({reinterpret_cast<const std::byte*>(&header), offsetof(Header, checksum)});
    std::memcpy(bytes.data() + copy, &header, sizeof header);
  }
}

void damage(std::vector<std::byte>& bytes, uint64_t offset, uint64_t size,
            std::mt19937_64& random) {
  const uint64_t at = offset + random() % size;
  switch (random() % 4) {
    case 0:
      bytes[at] ^= static_cast<std::byte>(1 << random() % 8);
      break;
    case 1:
      bytes[at] = static_cast<std::byte>(random());
      break;
    case 2:
      for (uint64_t i = at / 8 * 8; i < std::min(at / 8 * 8 + 8, offset + size); ++i)
        bytes[i] = std::byte{0xff};
      break;
    default:  // a word of another place
      std::memcpy(&bytes[at / 8 * 8], &bytes[(offset + random() % size) / 8 * 8],
                  std::min<uint64_t>(8, offset + size - at / 8 * 8));
  }
}

TEST(PersistentFuzz, DamagedBytesAreFindingsAndNoMore) {
  const Folder folder;
  const std::string path = folder / "heap";
  Runtime runtime = start_runtime();
  const std::vector<std::byte> sound = make_heap(runtime);
  Header header;
  std::memcpy(&header, sound.data(), sizeof header);
  std::mt19937_64 random(11);
  uint64_t refused = 0, opened = 0;
  const uint64_t rounds = scene::share_of(4000);
  for (uint64_t round = 0; round < rounds; ++round) {
    std::vector<std::byte> bytes = sound;
    const unsigned changes = 1 + random() % 4;
    for (unsigned i = 0; i < changes; ++i) {
      if (round % 3 == 0)
        damage(bytes, random() % 2 * kHeaderStride, sizeof(Header), random);
      else
        damage(bytes, header.metadata_offset, header.metadata_bytes, random);
    }
    if (round % 50 == 49) bytes.resize(random() % bytes.size());
    if (round % 4 != 0 && bytes.size() >= kHeadersBytes) sign(bytes);
    const auto store = std::make_shared<BytesStore>(bytes);
    const auto heap =
        PersistentHeap::open_read_only(runtime, store, {.even_if_inconsistent = round % 2 == 0});
    if (heap) {
      ++opened;
      for (const PersistentObject& object : heap.value().info().objects)
        ASSERT_LE(object.offset + object.count * object.element_bytes, bytes.size());
    } else {
      ++refused;
      ASSERT_EQ(heap.message().find('\n'), std::string::npos);
      ASSERT_NE(heap.code(), ENOMEM) << heap.message();
    }
    if (round % 8 == 0) {  // and as the command does
      std::vector<char> chars(bytes.size());
      std::memcpy(chars.data(), bytes.data(), bytes.size());
      scene::write_file(path, chars);
      const auto findings = persistent_heap_check(path);
      if (!heap && findings) {
        EXPECT_FALSE(findings.value().empty()) << round << ": " << heap.message();
      }
    }
  }
  EXPECT_GT(refused, rounds / 4);
  EXPECT_GT(opened, rounds / 80);
}

// What is opened to be written may be used, and never reaches outside.
TEST(PersistentFuzz, WhatOpensCanBeUsed) {
  Runtime runtime = start_runtime();
  const std::vector<std::byte> sound = make_heap(runtime);
  Header header;
  std::memcpy(&header, sound.data(), sizeof header);
  std::mt19937_64 random(12);
  uint64_t opened = 0;
  const uint64_t rounds = scene::share_of(600);
  for (uint64_t round = 0; round < rounds; ++round) {
    std::vector<std::byte> bytes = sound;
    damage(bytes, header.metadata_offset, header.metadata_bytes, random);
    sign(bytes);
    auto heap = PersistentHeap::open(runtime, std::make_shared<BytesStore>(std::move(bytes)));
    if (!heap) continue;
    ++opened;
    for (int i = 0; i < 50; ++i) {
      const uint64_t size = 1 + random() % 3000;
      const Result<void*> object = heap->allocate(size);
      ASSERT_TRUE(object.ok()) << object.message();
      std::memset(object.value(), 1, size);
    }
    ASSERT_TRUE(heap->close().ok());
  }
  EXPECT_GT(opened, rounds / 30);
}

}  // namespace
}  // namespace outcore
