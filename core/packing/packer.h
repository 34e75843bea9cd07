// Packer: how chunks are made smaller before they travel: by LZ4 or Zstandard.
//
// A value is a letter that names how the chunk is stored ('r' as it is, 'l' LZ4, 'z' Zstandard), a
// checksum of the chunk and its number, and the bytes. The libraries are loaded when the first such
// store is opened: programs that have none neither load nor need them. pack() and unpack(): any
// thread, the fault path too; all they need lies in the caller's Space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "outcore/result.h"

namespace outcore::packing {

struct Packing {
  enum class Kind : uint8_t { kNone, kLz4, kZstd };

  Kind kind = Kind::kNone;
  int level = 0;  // of kZstd

  // "none", "lz4", "zstd" or "zstd:LEVEL". EINVAL: what would do.
  static Result<Packing> parse(const std::string& text);
  std::string text() const;
  bool operator==(const Packing&) const = default;
};

class Packer {
 public:
  static constexpr size_t kHeadBytes = 5;
  static constexpr size_t kAlignment = 64;

  // Errors: ENOSYS (the library cannot be loaded, with the remedy), EIO (it does not give back what
  // it was given).
  static Result<std::shared_ptr<const Packer>> make(Packing packing, uint64_t chunk_bytes);
  virtual ~Packer() = default;
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;

  const Packing& packing() const { return packing_; }
  size_t chunk_bytes() const { return chunk_bytes_; }
  // A chunk that does not become smaller is stored as it is.
  size_t value_bytes_max() const { return kHeadBytes + chunk_bytes_; }
  // Of the memory that pack() and unpack() work in, one thread at a time.
  virtual size_t pack_space_bytes() const = 0;
  virtual size_t unpack_space_bytes() const = 0;

  // The value of a whole chunk; returns its bytes. REQUIRES: `into` has value_bytes_max(), `space`
  // has pack_space_bytes() and is aligned to kAlignment.
  size_t pack(uint64_t number, const std::byte* chunk, std::byte* space, std::byte* into) const;
  // False if it is not a value of this chunk, in every byte; `into` is unspecified then. REQUIRES:
  // `into` has chunk_bytes(), `space` has unpack_space_bytes() and is aligned.
  bool unpack(uint64_t number, std::span<const std::byte> value, std::byte* space,
              std::byte* into) const;

 protected:
  Packer(Packing packing, size_t chunk_bytes) : packing_(packing), chunk_bytes_(chunk_bytes) {}
  // At most bytes_max; 0: they do not suffice.
  virtual size_t shrink(const std::byte* chunk, std::byte* space, std::byte* into,
                        size_t bytes_max) const = 0;
  // Exactly a chunk, or false.
  virtual bool expand(std::span<const std::byte> from, std::byte* space, std::byte* into) const = 0;

 private:
  bool works() const;

  const Packing packing_;
  const size_t chunk_bytes_;
};

}  // namespace outcore::packing
