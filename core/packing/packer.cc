#include "core/packing/packer.h"

#define XXH_INLINE_ALL
#include <dlfcn.h>
#include <lz4.h>
#include <xxhash.h>
#define ZSTD_STATIC_LINKING_ONLY  // contexts in the caller's memory, so that nothing is allocated
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/late_calls.h"

namespace outcore::packing {
namespace {

constexpr char kRaw = 'r';
constexpr int kZstdLevelMax = 19, kZstdLevel = 3;

#define OUTCORE_OF_LZ4(X) \
  X(LZ4_sizeofState)      \
  X(LZ4_decompress_safe)  \
  X(LZ4_compress_fast_extState)

#define OUTCORE_OF_ZSTD(X)              \
  X(ZSTD_getCParams)                    \
  X(ZSTD_estimateCCtxSize_usingCParams) \
  X(ZSTD_estimateDCtxSize)              \
  X(ZSTD_initStaticCCtx)                \
  X(ZSTD_initStaticDCtx)                \
  X(ZSTD_compressCCtx)                  \
  X(ZSTD_decompressDCtx)                \
  X(ZSTD_findFrameCompressedSize)       \
  X(ZSTD_isError)

#define OUTCORE_POINTER(name) decltype(&::name) name = nullptr;
#define OUTCORE_LOOK_UP(name)                                             \
  it.name = reinterpret_cast<decltype(&::name)>(::dlsym(library, #name)); \
  it.is_whole = it.is_whole && it.name != nullptr;

struct Lz4 {
  OUTCORE_OF_LZ4(OUTCORE_POINTER)
  bool is_whole = false;
};

struct Zstd {
  OUTCORE_OF_ZSTD(OUTCORE_POINTER)
  bool is_whole = false;
};

// Loads the library once; it is never unloaded.
const Lz4& lz4() {
  static const Lz4 loaded = [] {
    Lz4 it;
    void* const library = os::open_library("liblz4.so.1", RTLD_NOW | RTLD_LOCAL);
    it.is_whole = library != nullptr;
    if (library == nullptr) return it;
    OUTCORE_OF_LZ4(OUTCORE_LOOK_UP)
    return it;
  }();
  return loaded;
}

const Zstd& zstd() {
  static const Zstd loaded = [] {
    Zstd it;
    void* const library = os::open_library("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    it.is_whole = library != nullptr;
    if (library == nullptr) return it;
    OUTCORE_OF_ZSTD(OUTCORE_LOOK_UP)
    return it;
  }();
  return loaded;
}

#undef OUTCORE_POINTER
#undef OUTCORE_LOOK_UP

class Lz4Packer final : public Packer {
 public:
  explicit Lz4Packer(size_t chunk_bytes)
      : Packer({Packing::Kind::kLz4, 0}, chunk_bytes),
        state_bytes_(static_cast<size_t>(lz4().LZ4_sizeofState())) {}
  size_t pack_space_bytes() const override { return state_bytes_; }
  size_t unpack_space_bytes() const override { return 0; }

 protected:
  size_t shrink(const std::byte* chunk, std::byte* space, std::byte* into,
                size_t bytes_max) const override {
    const int count = lz4_.LZ4_compress_fast_extState(
        space, reinterpret_cast<const char*>(chunk), reinterpret_cast<char*>(into),
        static_cast<int>(chunk_bytes()), static_cast<int>(bytes_max), 1);
    return count > 0 ? static_cast<size_t>(count) : 0;
  }
  bool expand(std::span<const std::byte> from, std::byte*, std::byte* into) const override {
    const auto bytes = static_cast<int>(chunk_bytes());
    return lz4_.LZ4_decompress_safe(reinterpret_cast<const char*>(from.data()),
                                    reinterpret_cast<char*>(into), static_cast<int>(from.size()),
                                    bytes) == bytes;
  }

 private:
  const Lz4& lz4_ = lz4();
  const size_t state_bytes_;
};

class ZstdPacker final : public Packer {
 public:
  ZstdPacker(int level, size_t chunk_bytes)
      : Packer({Packing::Kind::kZstd, level}, chunk_bytes),
        pack_bytes_(zstd().ZSTD_estimateCCtxSize_usingCParams(
            zstd().ZSTD_getCParams(level, chunk_bytes, 0))),
        unpack_bytes_(zstd().ZSTD_estimateDCtxSize()) {}
  size_t pack_space_bytes() const override { return pack_bytes_; }
  size_t unpack_space_bytes() const override { return unpack_bytes_; }

 protected:
  size_t shrink(const std::byte* chunk, std::byte* space, std::byte* into,
                size_t bytes_max) const override {
    ZSTD_CCtx* const context = zstd_.ZSTD_initStaticCCtx(space, pack_bytes_);
    if (context == nullptr) return 0;
    const size_t count =
        zstd_.ZSTD_compressCCtx(context, into, bytes_max, chunk, chunk_bytes(), packing().level);
    return zstd_.ZSTD_isError(count) != 0 ? 0 : count;
  }
  // Accept exactly one frame: the library would decode frames that follow it, too.
  bool expand(std::span<const std::byte> from, std::byte* space, std::byte* into) const override {
    if (zstd_.ZSTD_findFrameCompressedSize(from.data(), from.size()) != from.size()) return false;
    ZSTD_DCtx* const context = zstd_.ZSTD_initStaticDCtx(space, unpack_bytes_);
    return context != nullptr &&
           zstd_.ZSTD_decompressDCtx(context, into, chunk_bytes(), from.data(), from.size()) ==
               chunk_bytes();
  }

 private:
  const Zstd& zstd_ = zstd();
  const size_t pack_bytes_, unpack_bytes_;
};

uint32_t checksum_of(uint64_t number, const std::byte* chunk, size_t chunk_bytes) {
  return static_cast<uint32_t>(XXH3_64bits_withSeed(chunk, chunk_bytes, number));
}

Error refuse_library(const char* kind, const char* library, const char* package) {
  return {ENOSYS, std::string("compress=") + kind + ": " + library + " cannot be loaded: install " +
                      package + " (programs that are linked statically cannot have it)"};
}

}  // namespace

Result<Packing> Packing::parse(const std::string& text) {
  if (text == "none") return Packing{};
  if (text == "lz4") return Packing{Kind::kLz4, 0};
  if (text == "zstd") return Packing{Kind::kZstd, kZstdLevel};
  constexpr std::string_view kPrefix = "zstd:";
  int level = 0;
  if (text.starts_with(kPrefix)) {
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data() + kPrefix.size(), end, level);
    if (error == std::errc() && at == end && level >= 1 && level <= kZstdLevelMax)
      return Packing{Kind::kZstd, level};
  }
  return Error{EINVAL, "compress=" + text +
                           " is unknown: write none, lz4, zstd or zstd:LEVEL (1 … " +
                           std::to_string(kZstdLevelMax) + ")"};
}

std::string Packing::text() const {
  if (kind == Kind::kNone) return "none";
  return kind == Kind::kLz4 ? "lz4" : "zstd:" + std::to_string(level);
}

Result<std::shared_ptr<const Packer>> Packer::make(Packing packing, uint64_t chunk_bytes) {
  std::shared_ptr<const Packer> made;
  if (packing.kind == Packing::Kind::kLz4) {
    if (!lz4().is_whole) return refuse_library("lz4", "liblz4.so.1", "liblz4-1");
    made = std::make_shared<const Lz4Packer>(chunk_bytes);
  } else {
    if (!zstd().is_whole) return refuse_library("zstd", "libzstd.so.1", "libzstd1");
    made = std::make_shared<const ZstdPacker>(packing.level, chunk_bytes);
  }
  if (!made->works())
    return Error{EIO, "compress=" + packing.text() + ": the library does not give back chunks of " +
                          base::format_bytes(chunk_bytes) + ": install another version of it"};
  return made;
}

size_t Packer::pack(uint64_t number, const std::byte* chunk, std::byte* space,
                    std::byte* into) const {
  OC_CHECK(chunk != nullptr);
  OC_CHECK(reinterpret_cast<uintptr_t>(space) % kAlignment == 0);
  const uint32_t sum = checksum_of(number, chunk, chunk_bytes_);
  std::memcpy(into + 1, &sum, sizeof sum);
  const size_t count = shrink(chunk, space, into + kHeadBytes, chunk_bytes_ - 1);
  OC_CHECK(count < chunk_bytes_);
  const char letter = count == 0 ? kRaw : packing_.kind == Packing::Kind::kLz4 ? 'l' : 'z';
  into[0] = static_cast<std::byte>(letter);
  if (count != 0) return kHeadBytes + count;
  std::memcpy(into + kHeadBytes, chunk, chunk_bytes_);
  return value_bytes_max();
}

bool Packer::unpack(uint64_t number, std::span<const std::byte> value, std::byte* space,
                    std::byte* into) const {
  if (value.size() <= kHeadBytes || value.size() > value_bytes_max()) return false;
  OC_CHECK(reinterpret_cast<uintptr_t>(space) % kAlignment == 0);
  const char letter = static_cast<char>(value[0]);
  const std::span<const std::byte> bytes = value.subspan(kHeadBytes);
  if (letter == kRaw) {
    if (bytes.size() != chunk_bytes_) return false;
    std::memcpy(into, bytes.data(), bytes.size());
  } else if (letter != (packing_.kind == Packing::Kind::kLz4 ? 'l' : 'z') ||
             !expand(bytes, space, into)) {
    return false;
  }
  uint32_t sum = 0;
  std::memcpy(&sum, value.data() + 1, sizeof sum);
  return sum == checksum_of(number, into, chunk_bytes_);
}

// Checks that chunks of zeros, of noise, and of both are restored, and that the work space is large
// enough for the installed version of the library.
bool Packer::works() const {
  const auto space_bytes = std::max(pack_space_bytes(), unpack_space_bytes()) + kAlignment;
  std::vector<std::byte> memory(space_bytes), chunk(chunk_bytes_), value(value_bytes_max()),
      back(chunk_bytes_);
  void* at = memory.data();
  size_t left = space_bytes;
  auto* const space =
      static_cast<std::byte*>(std::align(kAlignment, space_bytes - kAlignment, at, left));
  std::mt19937_64 random(1);
  for (const size_t noise : {size_t{0}, chunk_bytes_ / 2, chunk_bytes_}) {
    for (size_t i = 0; i < noise; ++i) chunk[i] = static_cast<std::byte>(random());
    const size_t count = pack(1, chunk.data(), space, value.data());
    const bool is_small = noise == chunk_bytes_ || count < value_bytes_max();
    if (!is_small || !unpack(1, std::span(value).first(count), space, back.data()) || back != chunk)
      return false;
  }
  return true;
}

}  // namespace outcore::packing
