#include "arrays/commands/arrays_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <set>

#include "arrays/commands/array_box.h"
#include "arrays/commands/array_pieces.h"
#include "arrays/commands/arrays_verify.h"
#include "arrays/commands/open_file.h"
#include "cli/command.h"
#include "cli/export_target.h"
#include "cli/interrupts.h"
#include "cli/text.h"

namespace outcore::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kWholeBytes = 1 << 20;  // so small an array is stored in one call
constexpr size_t kAttributeBytesMax = 64 << 10;

// When the command is interrupted, no half file is left.
Status check_interrupt() {
  return is_interrupted() ? Status(Error{EINTR, "interrupted: nothing was written"}) : Status();
}

Result<std::vector<ArrayInfo>> chosen(const Arrays& arrays, const std::vector<std::string>& names) {
  if (names.empty()) return arrays.list();
  std::vector<ArrayInfo> infos;
  for (const std::string& name : names) {
    auto info = arrays.info(name);
    if (!info) return info.error();
    const auto is_same = [&name](const ArrayInfo& other) { return other.name == name; };
    if (std::none_of(infos.begin(), infos.end(), is_same)) infos.push_back(std::move(*info));
  }
  return infos;
}

Status check_target(const ArraysCopy& copy, const Arrays& arrays) {
  std::error_code error;
  if (fs::equivalent(copy.file, arrays.uri(), error) || fs::equivalent(copy.file, copy.uri, error))
    return Error{EINVAL, copy.file + " is the container itself: write another file"};
  if (exists(copy.file) && !copy.may_replace)
    return Error{EEXIST, copy.file + " is there: add --replace"};
  return {};
}

struct Part {
  FileArray array;
  LoadBox load;
};

// An array or a slice of it, and how its boxes are loaded.
Result<Part> part_of(const Arrays& arrays, const ArrayInfo& info, const std::string& text) {
  const auto slice = parse_slice(text, info.dims);
  if (!slice) return Error{EINVAL, "'" + info.name + "': " + slice.message()};
  auto attributes = load_attributes(arrays, info.name);
  if (!attributes) return attributes.error();
  Part part;
  part.array.info = info;
  part.array.attributes = std::move(attributes).value();
  part.array.info.dims = slice->kept();
  const auto& dropped = slice->is_dropped;
  if (!text.empty() && info.type.name == "text")
    return Error{EINVAL, "'" + info.name + "' is a text: leave --slice out"};
  if (std::count(dropped.begin(), dropped.end(), true) != 0) {
    Dims tiles;
    for (size_t d = 0; d < info.tiles.size(); ++d)
      if (!dropped[d]) tiles.push_back(info.tiles[d]);
    part.array.info.tiles = tiles;
    const std::vector<std::string> names = dimension_names({info, part.array.attributes, {}});
    std::string kept;
    for (size_t d = 0; d < names.size(); ++d)
      if (!dropped[d]) kept += (kept.empty() ? "" : " ") + names[d];
    if (part.array.attributes.contains(kDimsNote)) part.array.attributes[kDimsNote] = kept;
  }
  for (size_t d = 0; d < part.array.info.tiles.size(); ++d)  // no chunk is larger than the slice
    part.array.info.tiles[d] = std::clamp<uint64_t>(part.array.info.tiles[d], 1,
                                                    std::max<uint64_t>(part.array.info.dims[d], 1));
  part.array.info.size_bytes = count_of(part.array.info.dims) * info.type.size_bytes;
  part.load = [&arrays, name = info.name, type = info.type, slice = slice.value()](
                  const Dims& offsets, const Dims& dims, void* into) -> Status {
    if (Status s = check_interrupt(); !s) return s;
    Dims from = slice.offsets, size = slice.dims;
    for (size_t d = 0, kept = 0; d < from.size(); ++d) {
      if (slice.is_dropped[d]) continue;
      from[d] += offsets[kept];
      size[d] = dims[kept++];
    }
    return arrays.load_box(name, type, into, from, size);
  };
  return part;
}

}  // namespace

Result<Texts> load_attributes(const Arrays& arrays, const std::string& name) {
  const auto keys = arrays.attributes(name);
  if (!keys) return keys.error();
  Texts texts;
  for (const std::string& key : keys.value()) {
    auto text = arrays.attribute(name, key);
    if (!text) return text.error();
    texts[key] = std::move(text).value();
  }
  return texts;
}

namespace {

Status write_parts(const ArrayFormat& format, const std::vector<Part>& parts,
                   const Texts& attributes, const std::string& path) {
  const auto writer = format.create(path);
  if (!writer) return writer.error();
  for (const Part& part : parts)
    if (Status s = writer.value()->check(part.array); !s)
      return Error{s.code(), "export '" + part.array.info.name + "': " + s.message() +
                                 (parts.size() > 1 ? "; or name the others" : "")};
  if (Status s = writer.value()->set_attributes(attributes); !s) return s;
  for (const Part& part : parts)
    if (Status s = writer.value()->add(part.array, part.load); !s) return s;
  return writer.value()->finish();
}

}  // namespace

Status export_arrays(const ArraysCopy& copy) {
  const auto format = array_format_of(copy.file);
  if (!format) return format.error();
  const auto arrays = open_container(copy.uri);
  if (!arrays) return arrays.error();
  const auto infos = chosen(arrays.value(), copy.names);
  if (!infos) return infos.error();
  if (infos->empty()) return Error{ENOENT, arrays->uri() + " has no arrays"};
  if (!format.value()->has_many && infos->size() != 1)
    return Error{EINVAL, std::string(format.value()->name) + " holds one array, and " +
                             std::to_string(infos->size()) +
                             " are to be exported: name one, or "
                             "write .npz, .h5, .nc or .zarr"};
  if (!copy.slice.empty() && infos->size() != 1)
    return Error{EINVAL, "--slice is of one array: name it"};
  if (Status s = check_target(copy, arrays.value()); !s) return s;
  std::vector<Part> parts;
  for (const ArrayInfo& info : infos.value()) {
    auto part = part_of(arrays.value(), info, copy.slice);
    if (!part) return part.error();
    parts.push_back(std::move(part).value());
  }
  const auto attributes = load_attributes(arrays.value(), "");
  if (!attributes) return attributes.error();
  // Damage is not copied. If only a slice is exported, the whole array is not checked.
  if (copy.slice.empty())
    for (const ArrayInfo& info : infos.value())
      if (Status s = check_array(arrays.value(), info.name); !s) return s;
  catch_interrupts();
  ExportTarget target(copy.file);
  if (Status s = target.check_folder(); !s) return s;
  if (Status s = write_parts(*format.value(), parts, attributes.value(), target.temporary()); !s)
    return target.explain(s.error());
  return target.finish(copy.may_replace);
}

namespace {

// The arrays that are wanted, by their indices in the file. Errors: ENOENT, EIO (one that cannot be
// imported), EINVAL.
Result<std::vector<size_t>> chosen(const ArraysCopy& copy, const ArrayReader& reader) {
  std::vector<size_t> wanted;
  const auto& all = reader.arrays();
  if (all.empty()) return Error{ENOENT, copy.file + " has no arrays"};
  for (size_t i = 0; copy.names.empty() && i < all.size(); ++i) wanted.push_back(i);
  for (const std::string& name : copy.names) {
    const auto is_it = [&name](const FileArray& array) { return array.info.name == name; };
    const auto found = std::find_if(all.begin(), all.end(), is_it);
    std::string names;
    for (size_t i = 0; i < all.size() && i < 8; ++i)
      names += (i == 0 ? "" : ", ") + all[i].info.name;
    if (found == all.end())
      return Error{ENOENT, copy.file + " has no array '" + name + "': it has " + names +
                               (all.size() > 8 ? ", …" : "")};
    wanted.push_back(static_cast<size_t>(found - all.begin()));
  }
  std::set<std::string> names;
  for (const size_t i : wanted) {
    if (!all[i].refusal.empty())
      return Error{EIO, "import '" + all[i].info.name + "' of " + copy.file + ": " +
                            all[i].refusal +
                            (copy.names.empty() && all.size() > 1 ? "; or name the others" : "")};
    if (!names.insert(all[i].info.name).second)
      return Error{EINVAL, copy.file + " has '" + all[i].info.name + "' twice"};
  }
  return wanted;
}

// Attributes that a container cannot hold are left out, with a message.
Status store_attributes(Arrays& arrays, const std::string& name, const Texts& texts) {
  for (const auto& [key, text] : texts) {
    if (text.empty()) continue;
    const bool is_fit =
        text.size() <= kAttributeBytesMax && key.size() <= 255 && one_line(key) == key;
    if (!is_fit)
      std::fprintf(stderr, "outcore: the attribute '%s' of '%s' is left out: it is too long\n",
                   one_line(key.substr(0, 60)).c_str(), one_line(name).c_str());
    else if (Status s = arrays.set_attribute(name, key, text); !s)
      return s;
  }
  return {};
}

// Checked before a container is opened, because opening writes to it.
Status check_compress(const std::string& compress) {
  constexpr std::string_view kLevel = "zstd:";
  int level = 0;
  if (compress.starts_with(kLevel)) {
    const char* const end = compress.data() + compress.size();
    const auto [at, error] = std::from_chars(compress.data() + kLevel.size(), end, level);
    if (error != std::errc() || at != end || level > 19) level = 0;
  }
  if (compress.empty() || compress == "none" || compress == "lz4" || compress == "zstd" ||
      level >= 1)
    return {};
  return Error{EINVAL, "--compress " + compress +
                           " is unknown: write none, lz4, zstd or zstd:LEVEL (1 … 19)"};
}

// The tiles for arrays with so many dimensions. EINVAL: no array that is wanted has so many.
Result<Dims> tiles_of(const ArraysCopy& copy, const ArrayReader& reader,
                      const std::vector<size_t>& wanted) {
  if (copy.tiles.empty()) return Dims();
  auto tiles = parse_tiles(copy.tiles);
  if (!tiles) return tiles.error();
  const auto is_fit = [&](size_t i) {
    return reader.arrays()[i].info.dims.size() == tiles->size();
  };
  if (std::none_of(wanted.begin(), wanted.end(), is_fit)) {
    const ArrayInfo& first = reader.arrays()[wanted.front()].info;
    return Error{EINVAL, "--tiles " + copy.tiles + " has " + std::to_string(tiles->size()) +
                             " dimensions: '" + first.name + "' is " + text_of(first.dims)};
  }
  return tiles;
}

Error overflow(const ArrayInfo& info) {
  return {EIO, "'" + info.name + "' of " + text_of(info.dims) + " is larger than any disk"};
}

// Whether its bytes are as many as its shape says, computed in 64 bits.
bool is_sized(const ArrayInfo& info) {
  uint64_t bytes = info.type.size_bytes;
  bool is_good = true, is_empty = false;
  for (const uint64_t n : info.dims) {
    is_empty = is_empty || n == 0;
    is_good = is_good && !__builtin_mul_overflow(bytes, std::max<uint64_t>(n, 1), &bytes);
  }
  return is_good && bytes <= uint64_t{1} << 62 && info.size_bytes == (is_empty ? 0 : bytes);
}

Status import_one(Arrays& arrays, ArrayReader& reader, size_t index, ArrayOptions options) {
  const FileArray& array = reader.arrays()[index];
  const ArrayInfo& info = array.info;
  if (!is_sized(info)) return overflow(info);
  if (options.tiles.size() != info.dims.size()) options.tiles.clear();
  options.order = info.order;
  options.may_replace = true;  // whether that is allowed was checked before
  std::string bytes;
  Dims offsets, dims;
  if (info.size_bytes <= kWholeBytes) {
    ArrayInfo whole = info;
    whole.tiles.clear();
    bytes.resize(std::max<uint64_t>(info.size_bytes, 1));
    if (ArrayPieces(whole).next(&offsets, &dims) && info.size_bytes != 0) {
      if (count_of(dims) * info.type.size_bytes != info.size_bytes) return overflow(info);
      if (Status s = reader.load(index, offsets, dims, bytes.data()); !s)
        return as_fault_of_file(s.error());
    }
    if (Status s = arrays.store_whole(info.name, info.type, info.dims, bytes.data(), options); !s)
      return s;
    return store_attributes(arrays, info.name, array.attributes);
  }
  if (Status s = arrays.alloc(info.name, info.type, info.dims, options); !s) return s;
  const auto made = arrays.info(info.name);
  if (!made) return made.status();
  ArrayPieces pieces = pieces_between(array, made.value());
  while (pieces.next(&offsets, &dims)) {
    if (Status s = check_interrupt(); !s) return s;
    bytes.resize(count_of(dims) * info.type.size_bytes);
    if (Status s = reader.load(index, offsets, dims, bytes.data()); !s)
      return as_fault_of_file(s.error());
    if (Status s = arrays.store_box(info.name, info.type, bytes.data(), offsets, dims); !s)
      return s;
  }
  return store_attributes(arrays, info.name, array.attributes);
}

// Checked before anything is written. The container need not exist yet.
Status check_container(const ArraysCopy& copy, const ArrayReader& reader,
                       const std::vector<size_t>& wanted, bool* is_new) {
  const auto there = open_container(copy.uri);
  *is_new = there.code() == ENOENT;
  if (*is_new) return {};
  if (!there) return there.error();
  for (const size_t index : wanted) {
    if (copy.may_replace) break;
    const std::string& name = reader.arrays()[index].info.name;
    const auto info = there->info(name);
    if (info.ok()) return Error{EEXIST, "'" + name + "' is in " + there->uri() + ": add --replace"};
    if (info.code() != ENOENT)  // it may be in a container to which arrays were drained
      return Error{info.code(), info.message() + "; or add --replace"};
  }
  return {};
}

Status import_all(const ArraysCopy& copy, Arrays& arrays, ArrayReader& reader,
                  const std::vector<size_t>& wanted, const ArrayOptions& options) {
  for (const size_t index : wanted)
    if (Status s = import_one(arrays, reader, index, options); !s) return s;
  if (Status s = check_interrupt(); !s) return s;
  return copy.names.empty() ? store_attributes(arrays, "", reader.attributes()) : Status();
}

}  // namespace

Status import_arrays(const ArraysCopy& copy) {
  if (Status s = check_compress(copy.compress); !s) return s;
  const auto format = array_format_of(copy.file);
  if (!format) return format.error();
  const auto reader = open_file(*format.value(), copy.file);
  if (!reader) return reader.error();
  const auto wanted = chosen(copy, *reader.value());
  if (!wanted) return wanted.error();
  std::error_code error;
  if (fs::equivalent(copy.file, copy.uri, error))
    return Error{EINVAL, copy.uri + " is the file itself: name a container"};
  auto tiles = tiles_of(copy, *reader.value(), wanted.value());
  if (!tiles) return tiles.error();
  ArrayOptions options;
  options.tiles = std::move(tiles).value();
  options.compress = copy.compress;
  catch_interrupts();
  bool is_new = false;
  if (Status s = check_container(copy, *reader.value(), wanted.value(), &is_new); !s) return s;
  auto arrays = open_container(copy.uri, ArraysMode::kUpdate);
  if (!arrays) return arrays.error();
  Status s = import_all(copy, arrays.value(), *reader.value(), wanted.value(), options);
  if (s.ok()) {
    s = arrays->close();
  } else {
    arrays->abort();
  }
  // A file that was created for this is removed, unless somebody else has stored something in it.
  if (!s.ok() && is_new && arrays->uri().find("://") == std::string::npos && exists(copy.uri)) {
    const auto there = open_container(copy.uri, ArraysMode::kUpdate);
    if (there.ok() && there->list().empty()) ::unlink(copy.uri.c_str());
  }
  return s;
}

}  // namespace outcore::cli
