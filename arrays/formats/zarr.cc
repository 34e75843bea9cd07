// Zarr: folders of chunks, written as format 2, read as 2 and 3. See arrays/commands/array_file.h.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "arrays/commands/array_box.h"
#include "arrays/commands/array_pieces.h"
#include "arrays/commands/npy_header.h"
#include "arrays/formats/zarr_codecs.h"
#include "arrays/formats/zarr_metadata.h"
#include "cli/assert.h"

namespace outcore::cli {
namespace {

namespace fs = std::filesystem;

// Chunks of an array that has no tiles.
constexpr uint64_t kChunkBytes = 16 << 20;
constexpr int kDepthMax = 32;
constexpr off_t kFileBytesMax = off_t{1} << 32;

// Nothing, and errno: there is no such file (ENOENT), it is no regular one (EINVAL), too large
// (EFBIG), or cannot be read.
std::optional<std::string> read_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  struct stat about {};
  int error = ::fstat(fd, &about) != 0 ? errno : 0;
  if (error == 0 && !S_ISREG(about.st_mode)) error = EINVAL;
  if (error == 0 && about.st_size > kFileBytesMax) error = EFBIG;
  std::string text(error == 0 ? static_cast<size_t>(about.st_size) : 0, '\0');
  size_t done = 0;
  while (error == 0 && done < text.size()) {
    const ssize_t n = ::read(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) error = errno;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  ::close(fd);
  text.resize(done);
  errno = error;
  if (error != 0) return std::nullopt;
  return text;
}

Status write_file(const std::string& path, const void* data, size_t size) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  file.close();
  if (file) return {};
  return Error{errno != 0 ? errno : EIO,
               "write " + path + ": " + ::strerrordesc_np(errno != 0 ? errno : EIO)};
}

Status write_json(const std::string& path, const Json& value) {
  const std::string text = value.dump({.indent = 2}) + "\n";
  return write_file(path, text.data(), text.size());
}

Json read_json(const std::string& path) {
  return Json::parse_or_null(read_file(path).value_or(""));
}

bool is_there(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

class ZarrReader final : public ArrayReader {
 public:
  Status open(const std::string& path) {
    path_ = path;
    while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
    if (!is_there(path_)) return Error{ENOENT, path_ + " is not there"};
    if (Status s = look(path_, "", 0); !s) return s;
    if (is_zarr_) return {};
    return Error{EINVAL, path_ +
                             " is not a Zarr folder: it has neither zarr.json nor .zgroup nor "
                             ".zarray"};
  }

 private:
  Status look(const std::string& folder, const std::string& name, int depth) {
    const bool is_array2 = is_there(folder + "/.zarray");
    const bool is_node3 = is_there(folder + "/zarr.json");
    const Json metadata = read_json(folder + (is_node3 ? "/zarr.json" : "/.zarray"));
    const bool is_array = is_array2 || (is_node3 && metadata["node_type"] == "array");
    is_zarr_ = is_zarr_ || is_array || is_node3 || is_there(folder + "/.zgroup");
    if ((is_array2 || is_node3) && !metadata.is_object())
      return Error{EINVAL, folder + ": its metadata are not JSON"};
    if (is_array) return add(folder, name, metadata, is_node3);
    if (depth == 0)
      attributes_ = texts_of(is_node3 ? metadata["attributes"] : read_json(folder + "/.zattrs"));
    if (depth == kDepthMax) return {};
    std::error_code error;
    std::set<std::string> names;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
      if (at->is_directory(error) && !at->is_symlink(error)) names.insert(at->path().filename());
    if (error) return Error{error.value(), "read the folder " + folder + ": " + error.message()};
    for (const std::string& inner : names)
      if (Status s =
              look(folder + "/" + inner, name.empty() ? inner : name + "/" + inner, depth + 1);
          !s)
        return s;
    return {};
  }

  Status add(const std::string& folder, const std::string& name, const Json& metadata,
             bool is_format3) {
    auto zarr =
        is_format3 ? parse_zarr3(metadata) : parse_zarr2(metadata, read_json(folder + "/.zattrs"));
    if (!zarr) return Error{EINVAL, folder + ": " + zarr.message()};
    zarr->folder = folder;
    zarr->array.info.name = name.empty() ? fs::path(path_).stem().string() : name;
    const size_t index = arrays_.size();
    arrays_.push_back(zarr->array);
    // A column-ordered array is one in row order with its dimensions the other way round.
    zarrs_.push_back(std::move(zarr).value());
    if (zarrs_[index].unicode_chars == 0 || !arrays_[index].refusal.empty()) return {};
    std::u32string letters(zarrs_[index].unicode_chars, U'\0');
    if (Status s = load_piece(index, {}, {}, letters.data()); !s) return s;
    if (zarrs_[index].is_swapped) swap_bytes({"<u4", 4}, letters.data(), letters.size());
    auto text = utf8_of(letters);
    if (!text) return Error{EINVAL, folder + ": " + text.message()};
    set_text(index, std::move(text).value());
    return {};
  }

  // Each chunk that the box touches.
  Status load_piece(size_t index, const Dims& offsets, const Dims& dims, void* into) override {
    CLI_CHECK(index < zarrs_.size());
    const ZarrArray& zarr = zarrs_[index];
    const size_t rank = offsets.size();
    CLI_CHECK(dims.size() == rank && zarr.array.info.tiles.size() == rank);
    const Dims& chunk = zarr.array.info.tiles;
    const bool is_column = zarr.array.info.order == Order::kColumn;
    const auto in_order = [is_column](Dims d) { return is_column ? reversed(d) : d; };
    Dims first(rank), last(rank);
    for (size_t d = 0; d < rank; ++d) {
      first[d] = offsets[d] / chunk[d];
      last[d] = (offsets[d] + dims[d] - 1) / chunk[d];
    }
    Dims number = first;
    for (;;) {
      if (Status s = load_chunk(zarr, zarr.chunk_path(number)); !s) return s;
      Dims from(rank), to(rank), box(rank);
      for (size_t d = 0; d < rank; ++d) {
        const uint64_t begin = std::max(number[d] * chunk[d], offsets[d]);
        const uint64_t end = std::min((number[d] + 1) * chunk[d], offsets[d] + dims[d]);
        from[d] = begin - number[d] * chunk[d];
        to[d] = begin - offsets[d];
        CLI_CHECK(begin < end);
        box[d] = end - begin;
      }
      copy_box(zarr.array.info.type.size_bytes, chunk_.data(), {in_order(chunk), in_order(from)},
               into, {in_order(dims), in_order(to)}, in_order(box));
      size_t d = rank;
      while (d-- > 0) {
        if (++number[d] <= last[d]) break;
        number[d] = first[d];
      }
      if (d >= rank) break;
    }
    if (zarr.is_swapped) swap_bytes(zarr.array.info.type, into, count_of(dims));
    return {};
  }

  // Into chunk_. The last one is kept: a chunk that is larger than a piece is read once.
  Status load_chunk(const ZarrArray& zarr, const std::string& path) {
    if (chunk_path_ == path) return {};
    chunk_path_.clear();
    auto bytes = read_file(path);
    if (!bytes) {
      if (const int why = errno; why != ENOENT)
        return Error{why, "read " + path + ": " + ::strerrordesc_np(why)};
      chunk_.clear();
      std::string fill = zarr.fill;
      if (zarr.is_swapped) swap_bytes(zarr.array.info.type, fill.data(), 1);
      CLI_CHECK(!fill.empty());
      while (chunk_.size() < zarr.chunk_bytes) chunk_ += fill;
    } else {
      chunk_ = std::move(*bytes);
      uint64_t sums = static_cast<uint64_t>(
          std::count(zarr.codecs.begin(), zarr.codecs.end(), std::string("crc32c")));
      for (const std::string& codec : zarr.codecs) {
        if (codec == "crc32c") --sums;
        std::string unpacked;  // with the checksums that lie within
        const uint64_t size_bytes = zarr.chunk_bytes + sums * kChecksumBytes;
        if (Status s = unpack(codec, chunk_, size_bytes, &unpacked); !s)
          return Error{EINVAL, "read " + path + ": " + s.message()};
        chunk_ = std::move(unpacked);
      }
      if (chunk_.size() != zarr.chunk_bytes)
        return Error{EINVAL, "read " + path + ": it has " + std::to_string(chunk_.size()) +
                                 " bytes, and a chunk " + std::to_string(zarr.chunk_bytes)};
    }
    chunk_path_ = path;
    return {};
  }

  std::string path_, chunk_, chunk_path_;
  bool is_zarr_ = false;
  std::vector<ZarrArray> zarrs_;
};

class ZarrWriter final : public ArrayWriter {
 public:
  Status open(const std::string& path) {
    path_ = path;
    return make_group(path);
  }

  // A name is a folder below the target, and no other.
  Status check(const FileArray& array) const override {
    const std::string& name = array.info.name;
    for (const fs::path& part : fs::path(name)) {
      const std::string text = part.string();
      if (text.empty() || text[0] == '.' || text == "/" || text == "zarr.json")
        return Error{EINVAL, "Zarr does not allow its name: rename it"};
    }
    return check_zarr(array);
  }

  Status set_attributes(const Texts& attributes) override {
    return attributes.empty() ? Status() : write_json(path_ + "/.zattrs", Json(attributes));
  }

  Status add(const FileArray& given, const LoadBox& load) override {
    FileArray array = given;
    std::u32string letters;
    if (is_text(array.info)) {
      auto all = load_letters(array.info, load);
      if (!all) return all.error();
      letters = std::move(all).value();
      array.info.type = {"<U" + std::to_string(letters.size()),
                         static_cast<uint32_t>(letters.size() * 4)};
      array.info.dims.clear();
      array.info.compress.clear();
    }
    const std::string folder = path_ + "/" + array.info.name;
    if (Status s = make_folder(array.info.name); !s) return s;
    const Dims chunks = chunks_of(array.info);
    if (Status s = write_json(folder + "/.zarray", zarr2_of(array, chunks)); !s) return s;
    Json attributes = array.attributes;
    attributes.erase(kDimsNote);
    attributes[kZarrDims] = dimension_names(array);  // as xarray wants it
    if (Status s = write_json(folder + "/.zattrs", attributes); !s) return s;
    if (!letters.empty())
      return write_file(folder + "/0", letters.data(), letters.size() * sizeof(char32_t));
    return write_chunks(array.info, chunks, folder, load);
  }

  Status finish() override { return {}; }

 private:
  static Status make_group(const std::string& folder) {
    std::error_code error;
    if (!fs::create_directory(folder, error) || error)
      return Error{error ? error.value() : EEXIST,
                   "make the folder " + folder + ": " + (error ? error.message() : "it is there")};
    return write_json(folder + "/.zgroup", {{"zarr_format", 2}});
  }

  // The folder of an array, and groups around it.
  Status make_folder(const std::string& name) {
    for (size_t slash = name.find('/'); slash != std::string::npos;
         slash = name.find('/', slash + 1))
      if (const std::string folder = path_ + "/" + name.substr(0, slash); !is_there(folder))
        if (Status s = make_group(folder); !s)
          return s;
        else
          continue;
      else if (is_there(folder + "/.zarray"))
        return Error{EINVAL, "'" + name + "' lies within another array in Zarr: rename it"};
    std::error_code error;
    if (fs::create_directory(path_ + "/" + name, error)) return {};
    return Error{error ? error.value() : EEXIST,
                 "make '" + name + "' in " + path_ + ": it has to be a folder, and is there"};
  }

  static Dims chunks_of(const ArrayInfo& info) {
    const uint64_t size = info.type.size_bytes;
    if (!info.tiles.empty() && count_of(info.tiles) * size <= kPieceBytes) return info.tiles;
    ArrayInfo plain = info;
    plain.tiles.clear();
    Dims offsets, chunks;
    if (ArrayPieces(plain, kChunkBytes).next(&offsets, &chunks)) return chunks;
    return Dims(info.dims.size(), 1);  // it has no elements
  }

  // At the edges chunks are whole, too, with zeros behind.
  Status write_chunks(const ArrayInfo& info, const Dims& chunks, const std::string& folder,
                      const LoadBox& load) const {
    ZarrArray zarr;
    zarr.folder = folder;
    const uint64_t size = info.type.size_bytes;
    const size_t rank = info.dims.size();
    const bool is_column = info.order == Order::kColumn;
    const auto in_order = [is_column](Dims d) { return is_column ? reversed(d) : d; };
    if (count_of(info.dims) == 0) return {};
    std::string whole(count_of(chunks) * size, '\0'), part, packed;
    Dims number(rank, 0);
    for (;;) {
      Dims offsets(rank), dims(rank);
      for (size_t d = 0; d < rank; ++d) {
        offsets[d] = number[d] * chunks[d];
        dims[d] = std::min(chunks[d], info.dims[d] - offsets[d]);
      }
      if (dims == chunks) {
        if (Status s = load(offsets, dims, whole.data()); !s) return s;
      } else {
        part.resize(count_of(dims) * size);
        if (Status s = load(offsets, dims, part.data()); !s) return s;
        std::fill(whole.begin(), whole.end(), '\0');
        const Place from{in_order(dims), Dims(rank, 0)}, to{in_order(chunks), Dims(rank, 0)};
        copy_box(size, part.data(), from, whole.data(), to, in_order(dims));
      }
      if (!info.compress.empty())
        if (Status s = pack(whole, size, &packed); !s) return s;
      const std::string& bytes = info.compress.empty() ? whole : packed;
      if (Status s = write_file(zarr.chunk_path(number), bytes.data(), bytes.size()); !s) return s;
      size_t d = rank;
      while (d-- > 0) {
        if (++number[d] * chunks[d] < info.dims[d]) break;
        number[d] = 0;
      }
      if (d >= rank) return {};
    }
  }

  std::string path_;
};

}  // namespace
}  // namespace outcore::cli

extern "C" const outcore::cli::ArrayFormat* outcore_array_format() {
  static constexpr auto kZarr =
      outcore::cli::format_of<outcore::cli::ZarrReader, outcore::cli::ZarrWriter>("Zarr", true,
                                                                                  true, true);
  return &kZarr;
}
