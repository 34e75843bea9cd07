// Packer: compresses chunks with LZ4 or Zstandard before they are sent or stored.
//
// A value consists of a letter that says how the chunk is stored ('r' uncompressed, 'l' LZ4, 'z'
// Zstandard), a checksum of the chunk and its number, and the bytes. The libraries are loaded when
// the first compressed store is opened: programs that have none neither load nor need them. pack()
// and unpack(): any thread, the fault path; they work in memory that the caller passes.
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
  int level = 0;  // for kZstd

  // Parses "none", "lz4", "zstd" or "zstd:LEVEL". Errors: EINVAL; the message says what is valid.
  static Result<Packing> parse(const std::string& text);
  std::string text() const;
  bool operator==(const Packing&) const = default;
};

class Packer {
 public:
  static constexpr size_t kHeadBytes = 5;
  static constexpr size_t kAlignment = 64;

  // Errors: ENOSYS (the library cannot be loaded; the message has the remedy), EIO (the library
  // does not restore what it compressed).
  static Result<std::shared_ptr<const Packer>> make(Packing packing, uint64_t chunk_bytes);
  virtual ~Packer() = default;
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;

  const Packing& packing() const { return packing_; }
  size_t chunk_bytes() const { return chunk_bytes_; }
  // A chunk that does not become smaller is stored uncompressed.
  size_t value_bytes_max() const { return kHeadBytes + chunk_bytes_; }
  // Size of the work space of pack() and of unpack(); one thread at a time may use a space.
  virtual size_t pack_space_bytes() const = 0;
  virtual size_t unpack_space_bytes() const = 0;

  // Makes the value of a chunk, and returns its size. REQUIRES: `into` has value_bytes_max() bytes,
  // `space` has pack_space_bytes() and is aligned to kAlignment.
  size_t pack(uint64_t number, const std::byte* chunk, std::byte* space, std::byte* into) const;
  // Restores the chunk. False: `value` is not a valid value of chunk `number`; then the contents of
  // `into` are unspecified. REQUIRES: `into` has chunk_bytes() bytes, `space` has
  // unpack_space_bytes() and is aligned to kAlignment.
  bool unpack(uint64_t number, std::span<const std::byte> value, std::byte* space,
              std::byte* into) const;

 protected:
  Packer(Packing packing, size_t chunk_bytes) : packing_(packing), chunk_bytes_(chunk_bytes) {}
  // Compresses to at most bytes_max bytes; 0 if they do not suffice.
  virtual size_t shrink(const std::byte* chunk, std::byte* space, std::byte* into,
                        size_t bytes_max) const = 0;
  // Decompresses to exactly one chunk; otherwise false.
  virtual bool expand(std::span<const std::byte> from, std::byte* space, std::byte* into) const = 0;

 private:
  bool works() const;

  const Packing packing_;
  const size_t chunk_bytes_;
};

}  // namespace outcore::packing
