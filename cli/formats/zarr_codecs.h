// ZarrCodecs: chunks of Zarr, unpacked by zlib, zstd and blosc. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore::cli {

// "zlib", "gzip", "zstd", "blosc" and "crc32c" (which is taken away). An empty text: it can be
// unpacked; else why not.
std::string why_no_codec(const std::string& codec);
// Exactly so many bytes. EINVAL: they are others, or damaged.
Status unpack(const std::string& codec, const std::string& packed, uint64_t size_bytes,
              std::string* into);

}  // namespace outcore::cli
