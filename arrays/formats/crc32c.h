// Crc32c: the checksum of Zarr 3's codec of that name (Castagnoli's polynomial
// 0x1edc6f41, as in RFC 3720).
#pragma once

#include <cstdint>
#include <string_view>

namespace outcore::cli {

// Of all the bytes; 0 of none. Any thread.
uint32_t crc32c(std::string_view bytes);

}  // namespace outcore::cli
