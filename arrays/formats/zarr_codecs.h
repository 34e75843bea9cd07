// ZarrCodecs: chunks of Zarr, unpacked by zlib, zstd and blosc, and packed. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "outcore/result.h"

namespace outcore::cli {

constexpr uint64_t kChecksumBytes = 4;  // of "crc32c", behind the bytes, the lowest first

// "zlib", "gzip", "zstd", "blosc" and "crc32c" (checked, and taken away). An empty text: it can be
// unpacked; else why not.
std::string why_no_codec(const std::string& codec);
// Exactly so many bytes. EINVAL: they are others, or damaged.
Status unpack(const std::string& codec, const std::string& packed, uint64_t size_bytes,
              std::string* into);

// What pack() makes: "blosc" (Zarr's own choice), or "zlib" where this was built without it.
std::string packing();
// Elements of so many bytes. REQUIRES: less than 2 GiB.
Status pack(const std::string& bytes, uint64_t element_bytes, std::string* into);

}  // namespace outcore::cli
