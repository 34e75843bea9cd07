#include "arrays/container/block_sums.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "arrays/container/arrays_impl.h"
#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::arrays {
namespace {

constexpr uint64_t kBlockBytesMin = uint64_t{1} << 20, kBlocksMax = 65536;
constexpr uint64_t kUnit = 4096;  // keys repeat after so many bytes, with another factor each time
constexpr uint64_t kWords = kUnit / sizeof(uint32_t);

// A bijection of 64 bits whose values look random (splitmix64).
constexpr uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

struct Keys {
  alignas(32) uint32_t low[kWords];
  alignas(32) uint32_t high[kWords];
};

constexpr Keys make_keys() {
  Keys keys{};
  for (uint64_t i = 0; i < kWords; ++i) {
    const uint64_t key = mix(i) | 1;  // odd, so that a word that differs changes the sum
    keys.low[i] = static_cast<uint32_t>(key);
    keys.high[i] = static_cast<uint32_t>(key >> 32);
  }
  return keys;
}

constexpr Keys kKeys = make_keys();

uint64_t key_of(uint64_t word) { return uint64_t{kKeys.high[word]} << 32 | kKeys.low[word]; }
uint64_t factor_of(uint64_t unit) { return mix(~unit) | 1; }
uint64_t place_hash(uint64_t at) { return mix(at ^ 0x6f75746361727273); }

// The sum of whole words: words[i] × the key of first + i.
uint64_t plain_words(uint64_t first, const std::byte* bytes, uint64_t count) {
  OC_ASSERT(first + count <= kWords);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t word;
    std::memcpy(&word, bytes + i * sizeof word, sizeof word);
    sum += word * key_of(first + i);
  }
  return sum;
}

// The same, eight words at a time. The products of the halves of the keys are added separately.
__attribute__((target("avx2"))) uint64_t wide_words(uint64_t first, const std::byte* bytes,
                                                    uint64_t count) {
  OC_ASSERT(first + count <= kWords);
  __m256i low = _mm256_setzero_si256(), high = low;
  uint64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const auto* const at = reinterpret_cast<const __m256i*>(bytes + i * sizeof(uint32_t));
    const auto* const low_at = reinterpret_cast<const __m256i*>(&kKeys.low[first + i]);
    const auto* const high_at = reinterpret_cast<const __m256i*>(&kKeys.high[first + i]);
    const __m256i word = _mm256_loadu_si256(at), odd = _mm256_srli_epi64(word, 32);
    const __m256i k = _mm256_loadu_si256(low_at), kh = _mm256_loadu_si256(high_at);
    low = _mm256_add_epi64(low, _mm256_mul_epu32(word, k));
    low = _mm256_add_epi64(low, _mm256_mul_epu32(odd, _mm256_srli_epi64(k, 32)));
    high = _mm256_add_epi64(high, _mm256_mul_epu32(word, kh));
    high = _mm256_add_epi64(high, _mm256_mul_epu32(odd, _mm256_srli_epi64(kh, 32)));
  }
  alignas(32) uint64_t lows[4], highs[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lows), low);
  _mm256_store_si256(reinterpret_cast<__m256i*>(highs), high);
  uint64_t sum = plain_words(first + i, bytes + i * sizeof(uint32_t), count - i);
  for (int lane = 0; lane < 4; ++lane) sum += lows[lane] + (highs[lane] << 32);
  return sum;
}

uint64_t words_sum(uint64_t first, const std::byte* bytes, uint64_t count) {
  static const bool is_wide = __builtin_cpu_supports("avx2") != 0;
  return is_wide && count >= 8 ? wide_words(first, bytes, count) : plain_words(first, bytes, count);
}

// The sum of bytes within one unit. In words at the ends, missing bytes count as zeros.
uint64_t unit_sum(uint64_t at, const std::byte* bytes, uint64_t size_bytes) {
  OC_ASSERT(size_bytes != 0 && at % kUnit + size_bytes <= kUnit);
  uint64_t sum = 0;
  uint64_t within = at % kUnit;
  const auto part = [&](uint64_t count) {  // `count` bytes of a word
    uint32_t word = 0;
    std::memcpy(reinterpret_cast<std::byte*>(&word) + within % sizeof word, bytes, count);
    sum += word * key_of(within / sizeof word);
    within += count;
    bytes += count;
    size_bytes -= count;
  };
  if (within % sizeof(uint32_t) != 0)
    part(std::min(size_bytes, sizeof(uint32_t) - within % sizeof(uint32_t)));
  const uint64_t words = size_bytes / sizeof(uint32_t);
  sum += words_sum(within / sizeof(uint32_t), bytes, words);
  within += words * sizeof(uint32_t);
  bytes += words * sizeof(uint32_t);
  size_bytes -= words * sizeof(uint32_t);
  if (size_bytes != 0) part(size_bytes);
  return sum * factor_of(at / kUnit);
}

}  // namespace

uint64_t sum_of(uint64_t at, std::span<const std::byte> bytes) {
  static_assert(std::endian::native == std::endian::little);
  uint64_t sum = 0;
  for (uint64_t done = 0; done < bytes.size();) {
    const uint64_t step = std::min(bytes.size() - done, kUnit - (at + done) % kUnit);
    sum += unit_sum(at + done, bytes.data() + done, step);
    done += step;
  }
  return sum;
}

uint64_t mark_of(uint64_t sum, uint64_t block) { return mix(sum ^ mix(block)); }

uint64_t block_bytes_for(uint64_t array_bytes) {
  return std::max(kBlockBytesMin, std::bit_ceil((array_bytes + kBlocksMax - 1) / kBlocksMax));
}

uint64_t block_count(const Entry& entry) {
  OC_CHECK(entry.block_bytes != 0);
  return (bytes_of(entry) + entry.block_bytes - 1) / entry.block_bytes;
}

uint64_t sums_offset(const Entry& entry) {
  return entry.offset + base::round_up(bytes_of(entry), sizeof(BlockSum));
}

BlockSums::BlockSums(uint64_t block_bytes, uint64_t first_byte, uint64_t last_byte)
    : block_bytes_(block_bytes),
      first_(first_byte / block_bytes),
      blocks_(last_byte / block_bytes - first_ + 1) {}

BlockSums::BlockSums(const Entry& entry)
    : block_bytes_(entry.block_bytes), first_(0), blocks_(block_count(entry)) {}

void BlockSums::add(uint64_t at, const std::byte* bytes, uint64_t size_bytes) {
  for (uint64_t done = 0; done < size_bytes;) {
    const uint64_t from = at + done, block = from / block_bytes_;
    const uint64_t step = std::min(size_bytes - done, (block + 1) * block_bytes_ - from);
    OC_CHECK(block >= first_ && block - first_ < blocks_.size());
    BlockSum& into = blocks_[block - first_];
    into.cover += place_hash(from + step) - place_hash(from);
    if (bytes != nullptr) into.sum += sum_of(from, {bytes + done, step});
    done += step;
  }
}

void BlockSums::add(uint64_t base, const Runs& runs, const std::byte* bytes) {
  for_each_run(runs, [&](uint64_t there, uint64_t here) {
    add(base + there, bytes == nullptr ? nullptr : bytes + here, runs.run_bytes);
    return false;
  });
}

void BlockSums::add(const BlockSums& other) {
  OC_CHECK(other.first_ >= first_ &&
           other.first_ - first_ + other.blocks_.size() <= blocks_.size());
  for (size_t i = 0; i < other.blocks_.size(); ++i) {
    BlockSum& into = blocks_[other.first_ - first_ + i];
    into.sum += other.blocks_[i].sum;
    into.cover += other.blocks_[i].cover;
  }
}

BlockSums full_cover(const Entry& entry) {
  BlockSums full(entry);
  if (entry.tiles.empty()) {
    full.add(0, nullptr, bytes_of(entry));
    return full;
  }
  const Dims shape = in_rows(entry, entry.dims), tiles = in_rows(entry, entry.tiles);
  const uint64_t tile_bytes = bytes_of_tile(entry);
  for_each_tile(entry.type.size_bytes, shape, tiles, Dims(shape.size(), 0), shape,
                [&](uint64_t number, const Runs& runs) {
                  full.add(number * tile_bytes, runs, nullptr);
                  return false;
                });
  return full;
}

}  // namespace outcore::arrays
