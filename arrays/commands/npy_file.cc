// .npy: one array, as NumPy keeps it. See array_file.h.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "arrays/commands/array_box.h"
#include "arrays/commands/array_file.h"
#include "arrays/commands/array_pieces.h"
#include "arrays/commands/npy_header.h"
#include "cli/text.h"

namespace outcore::cli {
namespace {

class File {
 public:
  File() = default;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  Status open(const char* verb, const std::string& path, int flags) {
    path_ = path;
    fd_ = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    return fd_ >= 0 ? Status() : failure(errno, verb + path);
  }
  int fd() const { return fd_; }
  const std::string& path() const { return path_; }

  // Reads as much as there is: less than `size` only at the end.
  Result<size_t> read(uint64_t at, void* into, size_t size) const {
    size_t done = 0;
    while (done < size) {
      const ssize_t n =
          ::pread(fd_, static_cast<char*>(into) + done, size - done, static_cast<off_t>(at + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failure(errno, "read " + path_);
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }
  Status write(const void* data, size_t size) const {
    for (size_t done = 0; done < size;) {
      const ssize_t n = ::write(fd_, static_cast<const char*>(data) + done, size - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return failure(n < 0 ? errno : EIO, "write " + path_);
      done += static_cast<size_t>(n);
    }
    return {};
  }

 private:
  std::string path_;
  int fd_ = -1;
};

std::string stem_of(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.rfind('.'));
}

class NpyReader final : public ArrayReader {
 public:
  Status open(const std::string& path) {
    if (Status s = file_.open("open ", path, O_RDONLY); !s) return s;
    struct stat facts {};
    if (::fstat(file_.fd(), &facts) != 0) return failure(errno, "look at " + file_.path());
    if (!S_ISREG(facts.st_mode)) return Error{EINVAL, file_.path() + " is not a regular file"};
    std::string bytes(kNpyPrefixBytes, '\0');
    auto n = file_.read(0, bytes.data(), bytes.size());
    if (!n) return n.error();
    bytes.resize(n.value());
    const auto size = npy_header_bytes(bytes);
    if (!size) return damaged(size.message());
    bytes.resize(size.value());
    n = file_.read(0, bytes.data(), bytes.size());
    if (!n) return n.error();
    bytes.resize(n.value());
    auto header = parse_npy_header(bytes);
    if (!header) return damaged(header.message());
    header_ = std::move(header).value();
    arrays_.push_back(array_of(header_, stem_of(file_.path())));
    const uint64_t there = static_cast<uint64_t>(facts.st_size) - header_.size_bytes;
    if (arrays_[0].refusal.empty() && there < header_.data_bytes)
      return Error{EINVAL, file_.path() + " is truncated: it has " + std::to_string(there) +
                               " bytes of data, and its shape needs " +
                               std::to_string(header_.data_bytes)};
    return arrays_[0].refusal.empty() && header_.dims.empty() && header_.type.unicode_chars != 0
               ? read_text()
               : Status();
  }

 private:
  Error damaged(const std::string& why) const {
    return {EINVAL, file_.path() + ": " + why + ": name another file, or copy it anew"};
  }
  Status read_text() {
    std::u32string letters(header_.type.unicode_chars, U'\0');
    if (Status s = load_piece(0, {}, {}, letters.data()); !s) return s;
    if (header_.type.is_swapped) swap_bytes({"<u4", 4}, letters.data(), letters.size());
    auto text = utf8_of(letters);
    if (!text) return Error{EINVAL, file_.path() + ": " + text.message()};
    set_text(0, std::move(text).value());
    return {};
  }

  Status load_piece(size_t, const Dims& offsets, const Dims& dims, void* into) override {
    const uint64_t size = header_.type.type.size_bytes;
    auto* to = static_cast<char*>(into);
    const auto read = [&](uint64_t at, uint64_t count) -> Status {
      const auto n = file_.read(header_.size_bytes + at * size, to, count * size);
      if (!n) return n.error();
      if (n.value() != count * size) return Error{EIO, file_.path() + " became shorter meanwhile"};
      to += count * size;
      return {};
    };
    if (Status s = for_each_run(header_.dims, header_.order, offsets, dims, read); !s) return s;
    if (header_.type.is_swapped) swap_bytes(header_.type.type, into, count_of(dims));
    return {};
  }

  File file_;
  NpyHeader header_;
};

class NpyWriter final : public ArrayWriter {
 public:
  Status open(const std::string& path) {
    return file_.open("create ", path, O_WRONLY | O_CREAT | O_EXCL);
  }

  Status check(const FileArray& array) const override { return check_npy(array); }
  Status set_attributes(const Texts&) override { return {}; }

  Status add(const FileArray& array, const LoadBox& load) override {
    if (is_text(array.info)) return add_text(array, load);
    const std::string header = npy_header_of(array, 0);
    if (Status s = file_.write(header.data(), header.size()); !s) return s;
    ArrayInfo info = array.info;
    info.tiles.clear();
    ArrayPieces pieces(info);
    std::string bytes;
    for (Dims offsets, dims; pieces.next(&offsets, &dims);) {
      bytes.resize(count_of(dims) * info.type.size_bytes);
      if (Status s = load(offsets, dims, bytes.data()); !s) return s;
      if (Status s = file_.write(bytes.data(), bytes.size()); !s) return s;
    }
    return {};
  }

  Status finish() override {
    return ::fsync(file_.fd()) == 0 ? Status() : failure(errno, "sync " + file_.path());
  }

 private:
  Status add_text(const FileArray& array, const LoadBox& load) {
    const auto letters = load_letters(array.info, load);
    if (!letters) return letters.error();
    const std::string header = npy_header_of(array, letters->size());
    if (Status s = file_.write(header.data(), header.size()); !s) return s;
    return file_.write(letters->data(), letters->size() * sizeof(char32_t));
  }

  File file_;
};

}  // namespace

const ArrayFormat& npy_format() {
  static constexpr auto kNpy = format_of<NpyReader, NpyWriter>(".npy", false, false, false);
  return kNpy;
}

}  // namespace outcore::cli
