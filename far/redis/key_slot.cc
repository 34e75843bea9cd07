#include "far/redis/key_slot.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/base/assert.h"

namespace outcore::redis {
namespace {

constexpr std::array<uint16_t, 256> make_crc_table() {
  std::array<uint16_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1;
    table[byte] = static_cast<uint16_t>(crc);
  }
  return table;
}

constexpr std::array<uint16_t, 256> kCrc = make_crc_table();

uint32_t crc16(std::string_view text) {
  uint16_t crc = 0;
  for (const char c : text)
    crc = static_cast<uint16_t>(crc << 8 ^ kCrc[(crc >> 8 ^ static_cast<uint8_t>(c)) & 255]);
  return crc;
}

}  // namespace

uint32_t slot_of(std::string_view key) {
  const size_t open = key.find('{');
  if (open != std::string_view::npos) {
    const size_t close = key.find('}', open + 1);
    if (close != std::string_view::npos && close != open + 1)
      key = key.substr(open + 1, close - open - 1);
  }
  return crc16(key) % kSlotCount;
}

uint32_t even_tag(uint32_t index, uint32_t count) {
  OC_ASSERT(index < count && count <= 1024);
  OC_ASSERT((count & (count - 1)) == 0);
  const uint32_t stretch = kSlotCount / count;
  for (uint32_t number = 0;; ++number) {
    char text[16];
    const char* const end = std::to_chars(text, text + sizeof text, number).ptr;
    if (slot_of({text, static_cast<size_t>(end - text)}) / stretch == index) return number;
  }
}

size_t write_key(std::span<char> into, uint32_t tag, std::string_view id,
                 std::optional<uint64_t> chunk) {
  char* at = into.data();
  char* const end = at + into.size();
  const auto put = [&](std::string_view text) {
    OC_CHECK(text.size() <= static_cast<size_t>(end - at));  // else the key would be another's
    at = std::copy(text.begin(), text.end(), at);
  };
  const auto put_number = [&](uint64_t number) {
    char digits[20];  // as many as 64 bits can have
    const auto told = std::to_chars(digits, digits + sizeof digits, number);
    put({digits, static_cast<size_t>(told.ptr - digits)});
  };
  put("oc:{");
  put_number(tag);
  put("}:");
  put(id);
  put(":");
  if (chunk)
    put_number(*chunk);
  else
    put("f");
  return static_cast<size_t>(at - into.data());
}

}  // namespace outcore::redis
