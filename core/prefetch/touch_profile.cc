#include "core/prefetch/touch_profile.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iterator>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/base/assert.h"
#include "core/prefetch/touches.h"

namespace outcore::prefetch {
namespace {

// As they lie in the file: little-endian, as all machines that this runs on.
struct ProfileHeader {
  char magic[4] = {'O', 'C', 'L', 'N'};
  uint32_t version = 1;
  uint32_t file_count = 0;
  uint32_t payload_bytes = 0;
  uint64_t sum = 0;  // XXH3 of the whole profile, with zeros here
};
static_assert(std::string_view(ProfileHeader().magic, 4) == TouchProfile::kMagic);
static_assert(sizeof(ProfileHeader) == 24);

struct FileHeader {
  uint64_t size_bytes = 0;
  int64_t modified_ns = 0;
  uint32_t path_bytes = 0;
  uint32_t touches_bytes = 0;
};
static_assert(sizeof(FileHeader) == 24);

template <typename T>
void write_header(std::string* into, size_t at, const T& header) {
  OC_CHECK(at <= into->size() && into->size() - at >= sizeof header);
  std::memcpy(into->data() + at, &header, sizeof header);
}

// False: there are not as many bytes.
template <typename T>
bool read_header(std::string_view* from, T* header) {
  if (from->size() < sizeof *header) return false;
  std::memcpy(header, from->data(), sizeof *header);
  from->remove_prefix(sizeof *header);
  return true;
}

uint64_t sum_of(std::string profile) {
  const uint64_t nothing = 0;
  write_header(&profile, offsetof(ProfileHeader, sum), nothing);
  return XXH3_64bits(profile.data(), profile.size());
}

Error damaged(const std::string& why) {
  return {EINVAL, "it is a damaged profile (" + why + "): remove it, and the next run learns anew"};
}

Result<LearntFile> read_file(std::string_view* from) {
  FileHeader header;
  if (!read_header(from, &header)) return damaged("it ends within a file");
  if (header.path_bytes == 0 || header.path_bytes > TouchProfile::kPathBytesMax ||
      header.path_bytes > from->size() || header.touches_bytes > from->size() - header.path_bytes)
    return damaged("it ends within a path, or within touches");
  LearntFile file;
  file.path = from->substr(0, header.path_bytes);
  file.size_bytes = header.size_bytes;
  file.modified_ns = header.modified_ns;
  file.touches = from->substr(header.path_bytes, header.touches_bytes);
  from->remove_prefix(header.path_bytes + header.touches_bytes);
  if (file.path.front() != '/' || file.path.find('\0') != std::string::npos)
    return damaged("a path is not valid");
  if (!are_touches(file.touches)) return damaged("the touches of a file are not valid");
  return file;
}

}  // namespace

Result<TouchProfile> TouchProfile::decode(std::string_view bytes) {
  TouchProfile profile;
  if (bytes.empty()) return profile;
  std::string_view rest = bytes;
  ProfileHeader header;
  const ProfileHeader ours;
  if (!read_header(&rest, &header) || std::memcmp(header.magic, ours.magic, sizeof ours.magic) != 0)
    return Error{EINVAL, "it is not a profile of learnt starts: name another file"};
  if (header.version != ours.version)
    return Error{EINVAL, "it has version " + std::to_string(header.version) +
                             ", this Outcore knows " + std::to_string(ours.version) +
                             ": use the Outcore that wrote it, or name another file"};
  if (bytes.size() > kBytesMax) return damaged("it has more than 1 MiB");
  if (header.payload_bytes != rest.size()) return damaged("it has too few bytes, or too many");
  if (header.file_count > kFilesMax) return damaged("it names too many files");
  if (header.sum != sum_of(std::string(bytes))) return damaged("its checksum is another");
  for (uint32_t i = 0; i < header.file_count; ++i) {
    Result<LearntFile> file = read_file(&rest);
    if (!file) return file.error();
    profile.files_.push_back(std::move(file).value());
  }
  if (!rest.empty()) return damaged("bytes follow the last file");
  return profile;
}

std::string TouchProfile::encode() const {
  std::string bytes(sizeof(ProfileHeader), '\0');
  ProfileHeader header;
  for (const LearntFile& file : files_) {
    OC_CHECK(!file.path.empty() && file.path.size() <= kPathBytesMax);
    const size_t fixed_bytes = sizeof(FileHeader) + file.path.size();
    if (fixed_bytes > kBytesMax - bytes.size()) continue;
    const std::string_view touches =
        cut_touches(file.touches, kBytesMax - bytes.size() - fixed_bytes);
    if (touches.empty()) continue;
    const FileHeader about{file.size_bytes, file.modified_ns,
                           static_cast<uint32_t>(file.path.size()),
                           static_cast<uint32_t>(touches.size())};
    const size_t at = bytes.size();
    bytes.resize(at + sizeof about);
    write_header(&bytes, at, about);
    bytes += file.path;
    bytes += touches;
    if (++header.file_count == kFilesMax) break;
  }
  OC_CHECK(bytes.size() <= kBytesMax);
  header.payload_bytes = static_cast<uint32_t>(bytes.size() - sizeof header);
  write_header(&bytes, 0, header);
  header.sum = sum_of(bytes);
  write_header(&bytes, 0, header);
  return bytes;
}

const LearntFile* TouchProfile::find(std::string_view path) const {
  const auto found = std::find_if(files_.begin(), files_.end(),
                                  [path](const LearntFile& file) { return file.path == path; });
  return found == files_.end() ? nullptr : &*found;
}

void TouchProfile::add(std::vector<LearntFile> newer) {
  for (LearntFile& file : newer) {
    OC_CHECK(are_touches(file.touches));
    if (const LearntFile* older = find(file.path); older != nullptr)
      file.touches = encode_touches(join_touches(decode_touches(file.touches), older->touches));
    std::erase_if(files_, [&](const LearntFile& other) { return other.path == file.path; });
  }
  // If not all fits, a large one is cut, rather than small ones left out behind it.
  std::stable_sort(newer.begin(), newer.end(), [](const LearntFile& a, const LearntFile& b) {
    return a.touches.size() < b.touches.size();
  });
  files_.insert(files_.begin(), std::make_move_iterator(newer.begin()),
                std::make_move_iterator(newer.end()));
  if (files_.size() > kFilesMax) files_.resize(kFilesMax);
}

}  // namespace outcore::prefetch
