// .npz: .npy files in one zip archive, by libzip. See arrays/commands/array_file.h.
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <deque>

#include "arrays/commands/array_box.h"
#include "arrays/commands/array_file.h"
#include "arrays/commands/array_pieces.h"
#include "arrays/commands/npy_header.h"
#include "cli/assert.h"

namespace outcore::cli {
namespace {

struct CloseFile {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using ZipFile = std::unique_ptr<zip_file_t, CloseFile>;

Result<zip_t*> open_zip(const std::string& path, int flags) {
  int code = 0;
  zip_t* const zip = zip_open(path.c_str(), flags, &code);
  if (zip != nullptr) return zip;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string why = zip_error_strerror(&error);
  zip_error_fini(&error);
  if (code == ZIP_ER_NOZIP || code == ZIP_ER_INCONS)
    return Error{EINVAL, "open " + path +
                             ": it is not an .npz file, or it is damaged or truncated: "
                             "make it anew, or go back to a copy"};
  return Error{code == ZIP_ER_NOENT ? ENOENT : EINVAL, "open " + path + ": " + why};
}

class NpzReader final : public ArrayReader {
 public:
  ~NpzReader() override {
    file_.reset();
    if (zip_ != nullptr) zip_discard(zip_);
  }

  Status open(const std::string& path) {
    path_ = path;
    const auto zip = open_zip(path, ZIP_RDONLY);
    if (!zip) return zip.error();
    zip_ = zip.value();
    const zip_int64_t count = zip_get_num_entries(zip_, 0);
    for (zip_int64_t i = 0; i < count; ++i)
      if (Status s = add_member(static_cast<zip_uint64_t>(i)); !s) return s;
    return {};
  }

 private:
  struct Member {
    zip_uint64_t number = 0;
    NpyHeader header;
  };

  Status add_member(zip_uint64_t number) {
    zip_stat_t facts;
    if (zip_stat_index(zip_, number, 0, &facts) != 0) return failed("look at a member");
    std::string name = facts.name;
    if (!name.ends_with(".npy")) return {};  // no array
    Member member;
    member.number = number;
    if (Status s = read_header(name, &member); !s) return s;
    name.resize(name.size() - 4);
    FileArray array = array_of(member.header, name);
    array.is_read_forward = true;
    if (array.refusal.empty() && facts.size != member.header.size_bytes + member.header.data_bytes)
      return Error{EINVAL, path_ + ": " + name + ".npy is truncated: its shape needs " +
                               std::to_string(member.header.data_bytes) + " bytes"};
    const size_t index = arrays_.size();
    const bool is_one_text = member.header.dims.empty() && member.header.type.unicode_chars != 0;
    const bool is_good = array.refusal.empty();
    arrays_.push_back(std::move(array));
    members_.push_back(std::move(member));
    return is_good && is_one_text ? read_text(index) : Status();
  }

  Status read_header(const std::string& name, Member* member) {
    std::string bytes(kNpyPrefixBytes, '\0');
    if (Status s = start(member->number); !s) return s;
    if (Status s = read(bytes.data(), bytes.size()); !s) return s;
    const auto size = npy_header_bytes(bytes);
    if (!size) return Error{EINVAL, path_ + ": " + name + ": " + size.message()};
    const size_t before = std::min<size_t>(bytes.size(), size.value());
    bytes.resize(size.value());
    if (Status s = read(bytes.data() + before, bytes.size() - before); !s) return s;
    auto header = parse_npy_header(bytes);
    if (!header) return Error{EINVAL, path_ + ": " + name + ": " + header.message()};
    member->header = std::move(header).value();
    return {};
  }

  Status read_text(size_t index) {
    const NumpyType type = members_[index].header.type;
    std::u32string letters(type.unicode_chars, U'\0');
    if (Status s = load_piece(index, {}, {}, letters.data()); !s) return s;
    if (type.is_swapped) swap_bytes({"<u4", 4}, letters.data(), letters.size());
    auto text = utf8_of(letters);
    if (!text) return Error{EINVAL, path_ + ": " + text.message()};
    set_text(index, std::move(text).value());
    return {};
  }

  // A member can be read from its beginning on alone, for it may be compressed.
  Status load_piece(size_t index, const Dims& offsets, const Dims& dims, void* into) override {
    CLI_CHECK(index < members_.size());
    const Member& member = members_[index];
    const NpyHeader& header = member.header;
    const uint64_t size = header.type.type.size_bytes;
    auto* to = static_cast<char*>(into);
    const auto read_run = [&](uint64_t at, uint64_t count) -> Status {
      if (Status s = go_to(member, header.size_bytes + at * size); !s) return s;
      if (Status s = read(to, count * size); !s) return s;
      to += count * size;
      return {};
    };
    if (Status s = for_each_run(header.dims, header.order, offsets, dims, read_run); !s) return s;
    if (at_ == header.size_bytes + header.data_bytes)  // now its checksum is compared
      if (char more = 0; zip_fread(file_.get(), &more, 1) < 0) return failed_member();
    if (header.type.is_swapped) swap_bytes(header.type.type, into, count_of(dims));
    return {};
  }

  Status go_to(const Member& member, uint64_t at) {
    if (file_ == nullptr || number_ != member.number || at_ > at)
      if (Status s = start(member.number); !s) return s;
    CLI_CHECK(file_ != nullptr && at_ <= at);
    if (at_ == at) return {};
    std::string skipped(std::min<uint64_t>(at - at_, 1 << 16), '\0');
    while (at_ < at)
      if (Status s = read(skipped.data(), std::min<uint64_t>(skipped.size(), at - at_)); !s)
        return s;
    return {};
  }

  Status start(zip_uint64_t number) {
    file_.reset(zip_fopen_index(zip_, number, 0));
    number_ = number;
    at_ = 0;
    return file_ != nullptr ? Status() : failed("read a member");
  }

  Status read(void* into, uint64_t size) {
    for (uint64_t done = 0; done < size;) {
      const zip_int64_t n = zip_fread(file_.get(), static_cast<char*>(into) + done, size - done);
      if (n < 0) return failed_member();
      if (n == 0) return Error{EINVAL, path_ + ": a member is truncated"};
      done += static_cast<uint64_t>(n);
    }
    at_ += size;
    return {};
  }

  Error failed(const std::string& what) const {
    return {EIO, path_ + ": " + what + ": " + zip_strerror(zip_)};
  }
  Error failed_member() const {
    return {EIO, path_ + ": read a member: " + zip_file_strerror(file_.get())};
  }

  std::string path_;
  zip_t* zip_ = nullptr;
  ZipFile file_;
  zip_uint64_t number_ = 0;
  uint64_t at_ = 0;
  std::vector<Member> members_;
};

// What libzip reads of a member while it writes the archive: its header, then its pieces.
struct Stream {
  FileArray array;
  LoadBox load;
  std::string header;
  uint64_t size_bytes = 0;
  std::string bytes;  // a piece, of which `used` are read
  size_t used = 0;
  std::unique_ptr<ArrayPieces> pieces;
  Status status;
  zip_error_t error;

  void begin() {
    bytes = header;
    used = 0;
    ArrayInfo info = array.info;
    info.tiles.clear();
    pieces = std::make_unique<ArrayPieces>(info);
  }
  zip_int64_t read(char* into, zip_uint64_t most) {
    if (used == bytes.size()) {
      Dims offsets, dims;
      if (is_text(array.info) || !pieces->next(&offsets, &dims)) return 0;
      bytes.resize(count_of(dims) * array.info.type.size_bytes);
      used = 0;
      status = load(offsets, dims, bytes.data());
      if (!status.ok()) {
        zip_error_set(&error, ZIP_ER_READ, status.code());
        return -1;
      }
    }
    const size_t n = std::min<size_t>(most, bytes.size() - used);
    std::memcpy(into, bytes.data() + used, n);
    used += n;
    return static_cast<zip_int64_t>(n);
  }
};

zip_int64_t tell(void* of, void* data, zip_uint64_t size, zip_source_cmd_t command) {
  auto* const stream = static_cast<Stream*>(of);
  switch (command) {
    case ZIP_SOURCE_OPEN:
      stream->begin();
      return 0;
    case ZIP_SOURCE_READ:
      return stream->read(static_cast<char*>(data), size);
    case ZIP_SOURCE_CLOSE:
      stream->pieces.reset();
      return 0;
    case ZIP_SOURCE_STAT: {
      auto* const facts = static_cast<zip_stat_t*>(data);
      zip_stat_init(facts);
      facts->size = stream->size_bytes;
      facts->mtime = std::time(nullptr);
      facts->valid |= ZIP_STAT_SIZE | ZIP_STAT_MTIME;
      return sizeof *facts;
    }
    case ZIP_SOURCE_ERROR:
      return zip_error_to_data(&stream->error, data, size);
    case ZIP_SOURCE_FREE:
      return 0;
    case ZIP_SOURCE_SUPPORTS:
      return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE,
                                            ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, -1);
    default:
      zip_error_set(&stream->error, ZIP_ER_INVAL, 0);
      return -1;
  }
}

class NpzWriter final : public ArrayWriter {
 public:
  ~NpzWriter() override {
    if (zip_ != nullptr) zip_discard(zip_);
  }
  Status open(const std::string& path) {
    path_ = path;
    const auto zip = open_zip(path, ZIP_CREATE | ZIP_EXCL);
    if (!zip) return zip.error();
    zip_ = zip.value();
    return {};
  }

  Status check(const FileArray& array) const override { return check_npy(array); }
  Status set_attributes(const Texts&) override { return {}; }

  Status add(const FileArray& array, const LoadBox& load) override {
    Stream& stream = streams_.emplace_back();
    stream.array = array;
    stream.load = load;
    zip_error_init(&stream.error);
    if (is_text(array.info)) {
      const auto letters = load_letters(array.info, load);
      if (!letters) return letters.error();
      stream.header = npy_header_of(array, letters->size());
      stream.header.append(reinterpret_cast<const char*>(letters->data()),
                           letters->size() * sizeof(char32_t));
      stream.size_bytes = stream.header.size();
    } else {
      stream.header = npy_header_of(array, 0);
      stream.size_bytes =
          stream.header.size() + count_of(array.info.dims) * array.info.type.size_bytes;
    }
    zip_source_t* const source = zip_source_function(zip_, tell, &stream);
    const zip_int64_t number =
        source == nullptr
            ? -1
            : zip_file_add(zip_, (array.info.name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
    if (number >= 0 &&
        zip_set_file_compression(zip_, static_cast<zip_uint64_t>(number), ZIP_CM_STORE, 0) == 0)
      return {};
    if (source != nullptr && number < 0) zip_source_free(source);
    return Error{EIO, "add '" + array.info.name + "' to " + path_ + ": " + zip_strerror(zip_)};
  }

  Status finish() override {
    const std::string attempted = "write " + path_;
    if (zip_close(zip_) == 0) {
      zip_ = nullptr;
      return {};
    }
    for (const Stream& stream : streams_)
      if (!stream.status.ok()) return stream.status;
    return Error{EIO, attempted + ": " + zip_strerror(zip_)};
  }

 private:
  std::string path_;
  zip_t* zip_ = nullptr;
  std::deque<Stream> streams_;  // where they are
};

}  // namespace
}  // namespace outcore::cli

extern "C" const outcore::cli::ArrayFormat* outcore_array_format() {
  static constexpr auto kNpz =
      outcore::cli::format_of<outcore::cli::NpzReader, outcore::cli::NpzWriter>(".npz", true, false,
                                                                                false);
  return &kNpz;
}
