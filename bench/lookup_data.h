// LookupData: an ordered map, a hash map or a sorted vector of the standard library, in a file just
// as it lies in memory, so that whoever maps the file at the same address can search it (after the
// DI-MMAP paper, section 6).
//
// Keys are scattered over all numbers; the value of the i-th key is i. Map and hash map were filled
// in the order of i, so neighbours in the structure lie anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/data.h"
#include "bench/options.h"

namespace outcore::bench {

inline constexpr uint64_t kLookupBytesMin = uint64_t{64} << 10;

// What lies at the beginning of the data.
struct Catalogue;

class LookupData {
 public:
  // Where the data must be mapped: addresses that neither the loader nor a sanitizer uses.
  static std::byte* address() { return reinterpret_cast<std::byte*>(0x5500'0000'0000); }

  explicit LookupData(const Options& options);
  Data& file() { return file_; }
  const Data& file() const { return file_; }

  // Claims the file, and makes it unless it is there unchanged. Holds all of it in memory
  // meanwhile.
  Status make();

  // How many keys there are, in data that is mapped.
  static uint64_t count_of(std::span<const std::byte> mapped);
  uint64_t key_of(uint64_t i) const { return word_at(seed_, i); }
  // The value of a key; UINT64_MAX if it is not there. Any thread.
  static uint64_t find(std::span<const std::byte> mapped, uint64_t key);

 private:
  Status build(std::span<std::byte> memory) const;

  std::string structure_;
  uint64_t size_bytes_, seed_;
  Data file_;
  std::string tag_;
};

const std::vector<std::string>& structure_names();  // map, hash, vector

}  // namespace outcore::bench
