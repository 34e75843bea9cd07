// ZarrMetadata: what the JSON files of a Zarr folder say of an array, formats 2 and 3. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arrays/commands/array_file.h"
#include "core/base/json.h"

namespace outcore::cli {

using base::Json;

// The attribute with the names of dimensions, by the custom of xarray.
inline constexpr const char* kZarrDims = "_ARRAY_DIMENSIONS";

struct ZarrArray {
  FileArray array;  // info.tiles: its chunks
  std::string folder;
  bool is_swapped = false;          // the highest byte first
  uint32_t unicode_chars = 0;       // one text of 4 bytes a letter
  std::vector<std::string> codecs;  // to be unpacked in this order
  std::string separator = ".";      // of chunks' names
  bool has_prefix = false;          // "c/0/0"
  std::string fill;                 // the bytes of an element of a chunk that is not there
  uint64_t chunk_bytes = 0;

  std::string chunk_path(const Dims& at) const;  // by its number in each dimension
};

// EINVAL: what is wrong. What is right, and not known here, is in array.refusal.
Result<ZarrArray> parse_zarr2(const Json& metadata, const Json& attributes);
Result<ZarrArray> parse_zarr3(const Json& metadata);
Texts texts_of(const Json& attributes);

// As format 2, with these chunks. REQUIRES: check_zarr().
Json zarr2_of(const FileArray& array, const Dims& chunks);
// EINVAL: what Zarr cannot hold.
Status check_zarr(const FileArray& array);

}  // namespace outcore::cli
