#include "checkpoints/pool/format.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>

#include "core/base/assert.h"

namespace outcore::versioned {

static_assert(std::endian::native == std::endian::little);

uint64_t checksum_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

namespace {

uint64_t sum_of(const RecordHeader& header) {
  return XXH3_64bits(&header, offsetof(RecordHeader, header_sum));
}

}  // namespace

RecordHeader sealed(RecordHeader header) {
  OC_ASSERT(header.magic == kRecordMagic && header.format == kFormat);
  header.header_sum = sum_of(header);
  return header;
}

bool is_whole(const RecordHeader& header) {
  return header.magic == kRecordMagic && header.header_sum == sum_of(header);
}

void Encoder::put(std::string_view text) {
  OC_CHECK(text.size() <= UINT16_MAX);
  put(static_cast<uint16_t>(text.size()));
  const auto bytes = std::as_bytes(std::span(text));
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void Encoder::put(const Change& change) {
  const size_t at = bytes_.size();
  bytes_.resize(at + kChangeBytes);
  std::memcpy(bytes_.data() + at, &change.chunk, 4);
  std::memcpy(bytes_.data() + at + 4, &change.block, 4);
  std::memcpy(bytes_.data() + at + 8, &change.birth, 4);
  std::memcpy(bytes_.data() + at + 12, &change.sum, 8);
}

void Encoder::put(const Grave& grave) {
  put(grave.block);
  put(grave.birth);
  put(grave.death);
}

void Encoder::put(const Checkpoint& checkpoint) {
  put(checkpoint.number);
  put(checkpoint.time_ns);
  put(checkpoint.size_bytes);
  put(std::string_view(checkpoint.name));
  put(std::string_view(checkpoint.comment));
}

std::string Decoder::get_text(size_t bytes_max) {
  const size_t size = get<uint16_t>();
  if (size > left() || size > bytes_max) {
    is_intact_ = false;
    at_ = bytes_.size();
    return {};
  }
  std::string text(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
  at_ += size;
  return text;
}

Change Decoder::get_change() {
  Change change;
  change.chunk = get<uint32_t>();
  change.block = get<uint32_t>();
  change.birth = get<uint32_t>();
  change.sum = get<uint64_t>();
  return change;
}

Grave Decoder::get_grave() {
  Grave grave;
  grave.block = get<uint32_t>();
  grave.birth = get<uint32_t>();
  grave.death = get<uint32_t>();
  return grave;
}

Checkpoint Decoder::get_checkpoint() {
  Checkpoint checkpoint;
  checkpoint.number = get<uint32_t>();
  checkpoint.time_ns = get<uint64_t>();
  checkpoint.size_bytes = get<uint64_t>();
  checkpoint.name = get_text(kNameBytesMax);
  checkpoint.comment = get_text(kCommentBytesMax);
  return checkpoint;
}

}  // namespace outcore::versioned
