// heap_mix [SEED [STEPS [THREADS [LIVE_BYTES_MAX]]]]: the malloc family, operator new and anonymous
// mappings, mixed at random, with sizes from 16 B to 64 MiB. Every block is full of words that only
// it has, and is checked whenever it is changed or freed. Prints the same for the same arguments.
#include <malloc.h>
#include <pthread.h>

#include <new>

#include "program.h"

using namespace program;

namespace {

constexpr uint64_t kBlocksMax = 64;
constexpr uint64_t kBytesMax = 64 << 20;
constexpr unsigned kThreadsMax = 16;

enum class Kind : uint8_t { kNone, kMalloc, kNew, kNewAligned, kMap };

struct Block {
  Kind kind;
  uint64_t* words;
  uint64_t bytes;
  uint64_t alignment;
  uint64_t seed;
  uint64_t first;  // number of its first word: more than 0 once its head was unmapped
};

// One thread's blocks and numbers.
struct Mixer {
  uint64_t state = 0;
  uint64_t live_bytes = 0, live_bytes_max = 0, seeds = 0;
  uint64_t sum = 0;  // of what was checked
  uint64_t steps = 0;
  Block blocks[kBlocksMax] = {};

  uint64_t next() { return word_at(state, ++seeds); }
  uint64_t below(uint64_t limit) { return next() % limit; }
  // Small ones as often as large ones.
  uint64_t pick_size() {
    const uint64_t bits = 4 + below(23);
    const uint64_t bytes = (uint64_t{1} << bits) + below(uint64_t{1} << bits);
    return bytes < kBytesMax ? bytes : kBytesMax;
  }
};

uint8_t tail_byte(const Block& b, uint64_t at) {
  return static_cast<uint8_t>(word_at(b.seed, b.first + at / 8) >> (at % 8 * 8));
}

void fill_from(const Block& b, uint64_t from) {
  const uint64_t whole = b.bytes / 8, begin = from / 8;
  if (begin < whole) fill(b.words + begin, whole - begin, b.seed, b.first + begin);
  auto* bytes = reinterpret_cast<uint8_t*>(b.words);
  for (uint64_t i = whole * 8; i < b.bytes; ++i) bytes[i] = tail_byte(b, i);
}

void check(Mixer& m, const Block& b, uint64_t bytes) {
  const uint64_t whole = bytes / 8;
  if (!is_filled(b.words, whole, b.seed, b.first)) fail("a block has other words");
  const auto* all = reinterpret_cast<const uint8_t*>(b.words);
  for (uint64_t i = whole * 8; i < bytes; ++i)
    if (all[i] != tail_byte(b, i)) fail("a block has other bytes at its end");
  m.sum = word_at(m.sum, bytes) ^ (whole > 0 ? b.words[whole / 2] : 0);
}

void require_zero(const Block& b, uint64_t from) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(b.words);
  for (uint64_t i = from; i < b.bytes; ++i)
    if (bytes[i] != 0) fail("new memory is not zero");
}

void begin_block(Mixer& m, Block& b, Kind kind, void* at, uint64_t bytes, uint64_t alignment) {
  if (at == nullptr) fail("no memory for %lu bytes", bytes);
  if (reinterpret_cast<uintptr_t>(at) % alignment != 0) fail("not aligned to %lu", alignment);
  b = {kind, static_cast<uint64_t*>(at), bytes, alignment, m.next(), 0};
  if (kind == Kind::kMalloc && ::malloc_usable_size(at) < bytes) fail("usable size is too small");
  m.live_bytes += bytes;
}

// Blocks that come full of zeros are checked first.
void allocate(Mixer& m, Block& b) {
  const uint64_t bytes = m.pick_size();
  const uint64_t alignment = uint64_t{16} << m.below(12);
  void* at = nullptr;
  switch (m.below(12)) {
    case 0:
    case 1:
    case 2:
      begin_block(m, b, Kind::kMalloc, std::malloc(bytes), bytes, 16);
      break;
    case 3:
    case 4:
      begin_block(m, b, Kind::kMalloc, std::calloc(bytes / 16, 16), bytes / 16 * 16, 16);
      require_zero(b, 0);
      break;
    case 5:
      begin_block(m, b, Kind::kMalloc, ::aligned_alloc(alignment, bytes), bytes, alignment);
      break;
    case 6:
      if (::posix_memalign(&at, alignment, bytes) != 0) fail("posix_memalign");
      begin_block(m, b, Kind::kMalloc, at, bytes, alignment);
      break;
    case 7:
      begin_block(m, b, Kind::kMalloc, ::memalign(alignment, bytes), bytes, alignment);
      break;
    case 8:
      begin_block(m, b, Kind::kMalloc, ::valloc(bytes), bytes, kPageBytes);
      break;
    case 9:
      begin_block(m, b, Kind::kNew, ::operator new(bytes), bytes, 16);
      break;
    case 10:
      at = ::operator new(bytes, std::align_val_t(alignment));
      begin_block(m, b, Kind::kNewAligned, at, bytes, alignment);
      break;
    default: {
      const uint64_t pages = (bytes + kPageBytes - 1) / kPageBytes;
      at = ::mmap(nullptr, pages * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                  -1, 0);
      require(at != MAP_FAILED, "anonymous mmap");
      begin_block(m, b, Kind::kMap, at, pages * kPageBytes, kPageBytes);
      require_zero(b, 0);
    }
  }
  fill_from(b, 0);
}

void release(Mixer& m, Block& b) {
  check(m, b, b.bytes);
  switch (b.kind) {
    case Kind::kMalloc:
      std::free(b.words);
      break;
    case Kind::kNew:
      ::operator delete(b.words);
      break;
    case Kind::kNewAligned:
      ::operator delete(b.words, std::align_val_t(b.alignment));
      break;
    case Kind::kMap:
      require(::munmap(b.words, b.bytes) == 0, "munmap");
      break;
    case Kind::kNone:
      break;
  }
  m.live_bytes -= b.bytes;
  b.kind = Kind::kNone;
}

void resize(Mixer& m, Block& b) {
  uint64_t bytes = m.pick_size();
  if (m.below(2) == 0) bytes = b.bytes + m.below(b.bytes);
  if (bytes > kBytesMax) bytes = kBytesMax;
  void* at =
      m.below(2) == 0 ? std::realloc(b.words, bytes) : ::reallocarray(b.words, bytes / 16 + 1, 16);
  require(at != nullptr, "realloc");
  if (::malloc_usable_size(at) < bytes) fail("usable size after realloc is too small");
  m.live_bytes += bytes - b.bytes;
  b.words = static_cast<uint64_t*>(at);
  const uint64_t kept = b.bytes < bytes ? b.bytes : bytes;
  b.bytes = bytes;
  check(m, b, kept);
  fill_from(b, kept);
}

// Parts of an anonymous mapping go, or it grows, shrinks and moves, or is made empty.
void reshape(Mixer& m, Block& b, Block* spare) {
  const uint64_t pages = b.bytes / kPageBytes;
  auto* base = reinterpret_cast<uint8_t*>(b.words);
  const uint64_t cut = pages > 1 ? 1 + m.below(pages - 1) : 0;
  switch (m.below(5)) {
    case 0:  // its head
      require(::munmap(base, cut * kPageBytes) == 0 || cut == 0, "munmap of the head");
      b.words += cut * kPageBytes / 8;
      b.first += cut * kPageBytes / 8;
      b.bytes -= cut * kPageBytes;
      m.live_bytes -= cut * kPageBytes;
      break;
    case 1:  // its middle: two are left
      if (pages < 3 || spare == nullptr) break;
      require(::munmap(base + kPageBytes, (pages - 2) * kPageBytes) == 0, "munmap of the middle");
      *spare = b;
      spare->words += (pages - 1) * kPageBytes / 8;
      spare->first += (pages - 1) * kPageBytes / 8;
      spare->bytes = b.bytes = kPageBytes;
      m.live_bytes -= (pages - 2) * kPageBytes;
      break;
    case 2:
    case 3: {
      const uint64_t most = kBytesMax / kPageBytes;
      uint64_t new_pages = m.below(2) == 0 || cut == 0 ? pages + m.below(pages + 8) : cut;
      if (new_pages > most) new_pages = most;
      const uint64_t bytes = new_pages * kPageBytes;
      void* at = ::mremap(base, b.bytes, bytes, MREMAP_MAYMOVE);
      require(at != MAP_FAILED, "mremap");
      m.live_bytes += bytes - b.bytes;
      const uint64_t kept = b.bytes < bytes ? b.bytes : bytes;
      b.words = static_cast<uint64_t*>(at);
      b.bytes = bytes;
      check(m, b, kept);
      require_zero(b, kept);
      fill_from(b, kept);
      break;
    }
    default:
      require(::madvise(base, b.bytes, MADV_DONTNEED) == 0, "madvise");
      require_zero(b, 0);
      fill_from(b, 0);
  }
}

// Requests that no memory can meet fail with their error, and change nothing.
void ask_too_much(Mixer& m, const Block* b) {
  volatile uint64_t huge = ~uint64_t{0} / 2 + 100;
  const auto is_refused = [](void* at) { return at == nullptr && errno == ENOMEM; };
  errno = 0;
  require(is_refused(std::malloc(huge)), "malloc refuses");
  errno = 0;
  require(is_refused(std::calloc(huge, 4)), "calloc refuses");
  if (b != nullptr && b->kind == Kind::kMalloc) {
    errno = 0;
    require(is_refused(::reallocarray(b->words, huge, 4)), "reallocarray refuses");
    check(m, *b, b->bytes);
  }
  void* at = &m;
  require(::posix_memalign(&at, 24, 100) == EINVAL, "posix_memalign wants a power of two");
  void* none = std::malloc(0);
  std::free(none);
  std::free(nullptr);
}

void step(Mixer& m) {
  Block& b = m.blocks[m.below(kBlocksMax)];
  Block* spare = nullptr;
  for (Block& other : m.blocks)
    if (other.kind == Kind::kNone && &other != &b) spare = &other;
  if (m.below(50) == 0) ask_too_much(m, &b);
  if (b.kind == Kind::kNone)
    allocate(m, b);
  else if (b.kind == Kind::kMalloc && m.below(2) == 0)
    resize(m, b);
  else if (b.kind == Kind::kMap && m.below(3) != 0)
    reshape(m, b, spare);
  else
    release(m, b);
  while (m.live_bytes > m.live_bytes_max) {
    Block& victim = m.blocks[m.below(kBlocksMax)];
    if (victim.kind != Kind::kNone) release(m, victim);
  }
}

void* run(void* argument) {
  Mixer& m = *static_cast<Mixer*>(argument);
  for (uint64_t i = 0; i < m.steps; ++i) step(m);
  for (Block& b : m.blocks)
    if (b.kind != Kind::kNone) release(m, b);
  require(m.live_bytes == 0, "all is freed");
  return nullptr;
}

}  // namespace

int main(int count, char** arguments) {
  uint64_t values[] = {1, 400, 1, 192 << 20};
  for (int i = 1; i < count && i <= 4; ++i) values[i - 1] = std::strtoull(arguments[i], nullptr, 0);
  const uint64_t threads = values[2] < kThreadsMax ? values[2] : kThreadsMax;
  static Mixer mixers[kThreadsMax];
  pthread_t ids[kThreadsMax];
  for (uint64_t i = 0; i < threads; ++i) {
    mixers[i].state = values[0] * kThreadsMax + i;
    mixers[i].steps = values[1];
    mixers[i].live_bytes_max = values[3] / threads;
    if (threads == 1)
      run(&mixers[i]);
    else
      require(::pthread_create(&ids[i], nullptr, run, &mixers[i]) == 0, "pthread_create");
  }
  for (uint64_t i = 0; i < threads; ++i) {
    if (threads > 1) ::pthread_join(ids[i], nullptr);
    std::printf("%lu %016lx\n", i, mixers[i].sum);
  }
  return 0;
}
