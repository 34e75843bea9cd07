#include "heaps/persistent/persistent_image.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <set>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "heaps/persistent/persistent_sizes.h"

namespace outcore::heap::persistent {
namespace {

uint64_t record_bytes(const Name& name) {
  return base::round_up(sizeof(NameHead) + name.name.size() + name.type.size(), 8);
}

std::string at_tile(const Run& run) {
  return "run at offset " + std::to_string(run.first_tile * kTileBytes);
}

// The index of the cells of this size; kCellSizes: there are none.
unsigned index_of(uint32_t bytes) {
  if (bytes == 0 || bytes > kCellBytesMax) return kCellSizes;
  const unsigned index = cell_index(bytes);
  return cell_bytes(index) == bytes ? index : kCellSizes;
}

// Why the run cannot be right, or "". Counts the bitmap words that partial slabs use.
std::string why_wrong(const Run& run, uint64_t tiles, std::span<const uint64_t> words,
                      uint64_t* words_used) {
  if (run.tile_count == 0 || run.first_tile == 0 || run.first_tile >= tiles ||
      run.tile_count > tiles - run.first_tile)
    return "is outside the heap";
  const auto kind = static_cast<RunKind>(run.kind);
  if (kind == RunKind::kLarge || kind == RunKind::kMetadata) {
    const uint64_t room = run.tile_count * kTileBytes;
    if (run.cell_bytes != 0 || run.value > room || run.value + kTileBytes <= room)
      return "has a size that does not fit its tiles";
    return {};
  }
  if (kind != RunKind::kFull && kind != RunKind::kPartial) return "is of no kind that there is";
  const unsigned index = index_of(run.cell_bytes);
  if (index == kCellSizes) return "has cells of no size that there is";
  if (kind == RunKind::kFull)
    return run.value == 0 && run.tile_count % slab_tiles(index) == 0 ? "" : "is not a row of slabs";
  if (run.tile_count != slab_tiles(index)) return "is not a slab";
  const uint64_t count = slab_words(index);
  if (run.value != *words_used || count > words.size() - *words_used)
    return "has its bitmap in a wrong place";
  *words_used += count;
  const uint32_t last = slab_cells(index) % 64;
  if (last != 0 && words[run.value + count - 1] >> last != 0)
    return "has cells in use past its end";
  return {};
}

// Why no object of that size can be in use there, or "".
std::string why_no_object(const Image& image, const Name& name) {
  if (name.element_bytes == 0 || name.count > UINT64_MAX / name.element_bytes)
    return "has a size that cannot be";
  if (name.alignment == 0 || !std::has_single_bit(name.alignment) ||
      name.alignment > kAlignmentMax || name.offset % name.alignment != 0)
    return "is not aligned";
  const uint64_t bytes = name.count * name.element_bytes, tile = name.offset / kTileBytes;
  auto run = std::upper_bound(image.runs.begin(), image.runs.end(), tile,
                              [](uint64_t t, const Run& r) { return t < r.first_tile; });
  if (run == image.runs.begin()) return "lies where nothing is in use";
  --run;
  if (tile - run->first_tile >= run->tile_count) return "lies where nothing is in use";
  const uint64_t inside = name.offset - run->first_tile * kTileBytes;
  const auto kind = static_cast<RunKind>(run->kind);
  if (kind == RunKind::kLarge)
    return inside == 0 && bytes <= run->value ? "" : "does not fit its object";
  if (kind == RunKind::kMetadata) return "lies in the metadata";
  const unsigned index = cell_index(run->cell_bytes);
  const uint64_t in_slab = inside % (slab_tiles(index) * kTileBytes);
  const uint64_t cell = in_slab / run->cell_bytes;
  if (in_slab % run->cell_bytes != 0 || cell >= slab_cells(index) || bytes > run->cell_bytes)
    return "does not fit its object";
  if (kind == RunKind::kPartial && (image.words[run->value + cell / 64] >> (cell % 64) & 1) == 0)
    return "lies where nothing is in use";
  return {};
}

bool decode_runs(Image& image, uint64_t size_bytes, Findings* findings) {
  const uint64_t tiles = size_bytes / kTileBytes;
  uint64_t end = 0, words_used = 0;
  bool is_sound = true;
  for (const Run& run : image.runs) {
    std::string why = why_wrong(run, tiles, image.words, &words_used);
    if (why.empty() && run.first_tile < end) why = "overlaps the one before it";
    if (why.empty()) {
      end = run.first_tile + run.tile_count;
      continue;
    }
    findings->add(at_tile(run) + " " + why);
    is_sound = false;
  }
  if (is_sound && words_used != image.words.size()) {
    findings->add("the metadata has bitmaps of no slab");
    is_sound = false;
  }
  return is_sound;
}

void decode_names(Image& image, std::span<const std::byte> bytes, uint64_t count, bool is_sound,
                  Findings* findings) {
  std::set<std::string> seen;
  std::set<uint64_t> offsets;
  for (uint64_t i = 0; i < count; ++i) {
    NameHead head;
    if (bytes.size() < sizeof head)
      return findings->add("the names end at " + std::to_string(i) + " of " +
                           std::to_string(count));
    std::memcpy(&head, bytes.data(), sizeof head);
    const uint64_t needed = sizeof head + uint64_t{head.name_bytes} + head.type_bytes;
    if (head.record_bytes > bytes.size() || head.record_bytes != base::round_up(needed, 8))
      return findings->add("name " + std::to_string(i) + " has a size that cannot be");
    const auto* text = reinterpret_cast<const char*>(bytes.data() + sizeof head);
    Name name{{text, head.name_bytes},
              {text + head.name_bytes, head.type_bytes},
              head.offset,
              head.count,
              head.element_bytes,
              head.alignment,
              head.version};
    bytes = bytes.subspan(head.record_bytes);
    const std::string why = is_sound ? why_no_object(image, name) : "";
    if (!why.empty()) findings->add("object '" + name.name + "' " + why);
    if (!seen.insert(name.name).second)
      findings->add("object '" + name.name + "' is there twice");
    else if (!offsets.insert(name.offset).second)
      findings->add("object '" + name.name + "' lies where another one lies");
    image.names.push_back(std::move(name));
  }
  if (!bytes.empty()) findings->add("bytes are left after the last name");
}

}  // namespace

uint64_t Image::encoded_bytes() const {
  uint64_t bytes = sizeof(MetadataHead) + runs.size() * sizeof(Run) + words.size() * 8;
  for (const Name& name : names) bytes += record_bytes(name);
  return bytes;
}

std::vector<std::byte> Image::encode() const {
  std::vector<std::byte> bytes(encoded_bytes());
  MetadataHead head{};
  std::memcpy(head.magic, kMetadataMagic, sizeof head.magic);
  head.total_bytes = bytes.size();
  head.run_count = runs.size();
  head.word_count = words.size();
  head.name_count = names.size();
  head.name_bytes = bytes.size() - sizeof head - runs.size() * sizeof(Run) - words.size() * 8;
  std::byte* at = bytes.data();
  const auto put = [&at](const void* from, size_t size) {
    if (size != 0) std::memcpy(at, from, size);
    at += size;
  };
  put(&head, sizeof head);
  put(runs.data(), runs.size() * sizeof(Run));
  put(words.data(), words.size() * 8);
  for (const Name& name : names) {
    NameHead record{};
    record.record_bytes = static_cast<uint32_t>(record_bytes(name));
    record.name_bytes = static_cast<uint32_t>(name.name.size());
    record.type_bytes = static_cast<uint32_t>(name.type.size());
    record.alignment = name.alignment;
    record.offset = name.offset;
    record.count = name.count;
    record.element_bytes = name.element_bytes;
    record.version = name.version;
    std::byte* const start = at;
    put(&record, sizeof record);
    put(name.name.data(), name.name.size());
    put(name.type.data(), name.type.size());
    at = start + record.record_bytes;
  }
  OC_CHECK(at == bytes.data() + bytes.size());
  return bytes;
}

Image decode_image(std::span<const std::byte> bytes, uint64_t size_bytes, Findings* findings) {
  Image image;
  MetadataHead head;
  if (bytes.size() < sizeof head) {
    findings->add("the metadata is too short");
    return image;
  }
  std::memcpy(&head, bytes.data(), sizeof head);
  const uint64_t room = bytes.size() - sizeof head;
  if (std::memcmp(head.magic, kMetadataMagic, sizeof head.magic) != 0 ||
      head.total_bytes != bytes.size() || head.run_count > room / sizeof(Run) ||
      head.word_count > room / 8 || head.name_bytes > room ||
      head.run_count * sizeof(Run) + head.word_count * 8 + head.name_bytes != room) {
    findings->add("the metadata's counts do not fit its size");
    return image;
  }
  const std::byte* at = bytes.data() + sizeof head;
  image.runs.resize(head.run_count);
  if (head.run_count != 0) std::memcpy(image.runs.data(), at, head.run_count * sizeof(Run));
  at += head.run_count * sizeof(Run);
  image.words.resize(head.word_count);
  if (head.word_count != 0) std::memcpy(image.words.data(), at, head.word_count * 8);
  at += head.word_count * 8;
  const bool is_sound = decode_runs(image, size_bytes, findings);
  decode_names(image, {at, head.name_bytes}, head.name_count, is_sound, findings);
  return image;
}

namespace {

// The metadata must contain its own run, and no other run of metadata: otherwise its tiles would be
// given to objects.
void check_own_run(const Header& header, const Image& image, Findings* findings) {
  bool is_found = false;
  for (const Run& run : image.runs) {
    if (static_cast<RunKind>(run.kind) != RunKind::kMetadata) continue;
    if (run.value == header.metadata_bytes && run.first_tile * kTileBytes == header.metadata_offset)
      is_found = true;
    else
      findings->add(at_tile(run) + " is metadata of no header");
  }
  if (!is_found) findings->add("the metadata does not say where it lies itself");
}

}  // namespace

Result<Image> read_image(Store& store, const Header& header, Findings* findings) {
  if (header.size_bytes > store.size_bytes() || header.size_bytes < kTileBytes ||
      header.size_bytes % kTileBytes != 0) {
    findings->add("the heap has " + std::to_string(header.size_bytes) + " bytes, its store " +
                  std::to_string(store.size_bytes()) + ": it was cut short");
    return Image{};
  }
  if (header.metadata_bytes == 0) return Image{};
  if (header.metadata_offset < kTileBytes || header.metadata_offset % kTileBytes != 0 ||
      header.metadata_offset >= header.size_bytes ||
      header.metadata_bytes > header.size_bytes - header.metadata_offset) {
    findings->add("the metadata is outside the heap");
    return Image{};
  }
  std::vector<std::byte> bytes;
  try {
    bytes.resize(header.metadata_bytes);
    const int error = store.read(header.metadata_offset, bytes);
    if (error != 0) return base::system_error(error, "read the metadata of " + store.uri());
    if (checksum_of(bytes) != header.metadata_checksum) {
      findings->add("the metadata is damaged: its checksum is wrong");
      return Image{};
    }
    Image image = decode_image(bytes, header.size_bytes, findings);
    if (findings->is_empty()) check_own_run(header, image, findings);
    return image;
  } catch (const std::bad_alloc&) {
    return Error{ENOMEM, "read the metadata of " + store.uri() + ": " +
                             base::format_bytes(header.metadata_bytes) +
                             " of memory are not available: free some"};
  }
}

}  // namespace outcore::heap::persistent
