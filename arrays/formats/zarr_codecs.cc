#include "arrays/formats/zarr_codecs.h"

#include <zlib.h>
#ifdef OUTCORE_ZSTD
#include <zstd.h>
#endif
#ifdef OUTCORE_BLOSC
#include <blosc.h>
#endif

#include <algorithm>
#include <cerrno>
#include <limits>

#include "arrays/formats/crc32c.h"
#include "cli/assert.h"

namespace outcore::cli {
namespace {

#ifdef OUTCORE_BLOSC
constexpr int kBloscLevel = 5;
#else
constexpr int kZlibLevel = 4;
#endif

Status unpack_zlib(const std::string& packed, std::string* into) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 32) != Z_OK) return Error{ENOMEM, "zlib has no memory"};
  constexpr size_t kMost = std::numeric_limits<uInt>::max() / 2;
  size_t given = 0, done = 0;
  int result = Z_OK;
  while (result == Z_OK) {
    const size_t more = std::min(kMost, packed.size() - given);
    const size_t room = std::min(kMost, into->size() - done);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + given));
    stream.avail_in = static_cast<uInt>(more);
    stream.next_out = reinterpret_cast<Bytef*>(into->data() + done);
    stream.avail_out = static_cast<uInt>(room);
    result = inflate(&stream, Z_NO_FLUSH);
    given += more - stream.avail_in;
    done += room - stream.avail_out;
    CLI_CHECK(given <= packed.size() && done <= into->size());
    if (result == Z_OK && more == stream.avail_in && room == stream.avail_out) break;
  }
  inflateEnd(&stream);
  if (result == Z_STREAM_END && done == into->size()) return {};
  return Error{EINVAL, "it is damaged"};
}

#ifdef OUTCORE_ZSTD
Status unpack_zstd(const std::string& packed, std::string* into) {
  const size_t n = ZSTD_decompress(into->data(), into->size(), packed.data(), packed.size());
  if (ZSTD_isError(n) != 0) return Error{EINVAL, std::string("zstd: ") + ZSTD_getErrorName(n)};
  return n == into->size() ? Status() : Error{EINVAL, "it has too few bytes"};
}
#endif

#ifdef OUTCORE_BLOSC
Status unpack_blosc(const std::string& packed, std::string* into) {
  size_t size = 0;
  if (blosc_cbuffer_validate(packed.data(), packed.size(), &size) != 0 || size != into->size())
    return Error{EINVAL, "it is damaged"};
  const int n = blosc_decompress_ctx(packed.data(), into->data(), into->size(), 1);
  return n == static_cast<int>(size) ? Status() : Error{EINVAL, "it is damaged"};
}
#endif

}  // namespace

std::string why_no_codec(const std::string& codec) {
  if (codec == "zlib" || codec == "gzip" || codec == "crc32c") return {};
#ifdef OUTCORE_ZSTD
  if (codec == "zstd") return {};
#else
  if (codec == "zstd") return "it is packed by zstd: install libzstd-dev, and build Outcore again";
#endif
#ifdef OUTCORE_BLOSC
  if (codec == "blosc") return {};
#else
  if (codec == "blosc")
    return "it is packed by blosc: install libblosc-dev, and build Outcore again";
#endif
  return "it is packed by '" + codec +
         "', which is not known here: use zlib, gzip, zstd, blosc "
         "or none";
}

Status unpack(const std::string& codec, const std::string& packed, uint64_t size_bytes,
              std::string* into) {
  if (codec == "crc32c") {
    if (packed.size() < kChecksumBytes) return Error{EINVAL, "it is damaged"};
    *into = packed.substr(0, packed.size() - kChecksumBytes);
    uint32_t sum = 0;
    for (size_t i = 0; i < kChecksumBytes; ++i)
      sum |= uint32_t{static_cast<uint8_t>(packed[into->size() + i])} << (8 * i);
    return sum == crc32c(*into) ? Status() : Error{EINVAL, "it is damaged: its checksum differs"};
  }
  into->assign(size_bytes, '\0');
  if (codec == "zlib" || codec == "gzip") return unpack_zlib(packed, into);
#ifdef OUTCORE_ZSTD
  if (codec == "zstd") return unpack_zstd(packed, into);
#endif
#ifdef OUTCORE_BLOSC
  if (codec == "blosc") return unpack_blosc(packed, into);
#endif
  return Error{EINVAL, why_no_codec(codec)};
}

#ifdef OUTCORE_BLOSC
std::string packing() { return "blosc"; }

Status pack(const std::string& bytes, uint64_t element_bytes, std::string* into) {
  const char* const by = blosc_compname_to_compcode("zstd") >= 0 ? "zstd" : "lz4";
  into->resize(bytes.size() + BLOSC_MAX_OVERHEAD);
  const int n = blosc_compress_ctx(kBloscLevel, BLOSC_SHUFFLE, element_bytes, bytes.size(),
                                   bytes.data(), into->data(), into->size(), by, 0, 1);
  if (n <= 0) return Error{EIO, "blosc could not pack " + std::to_string(bytes.size()) + " bytes"};
  into->resize(static_cast<size_t>(n));
  return {};
}
#else
std::string packing() { return "zlib"; }

Status pack(const std::string& bytes, uint64_t, std::string* into) {
  uLongf size = compressBound(bytes.size());
  into->resize(size);
  if (compress2(reinterpret_cast<Bytef*>(into->data()), &size,
                reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), kZlibLevel) != Z_OK)
    return Error{ENOMEM, "zlib has no memory"};
  into->resize(size);
  return {};
}
#endif

}  // namespace outcore::cli
