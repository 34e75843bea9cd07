#include "arrays/formats/crc32c.h"

#include <array>

namespace outcore::cli {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // its bits reversed
constexpr int kSlices = 8;                    // bytes at a time, each with a table of its own

// tables[k][b]: what byte b becomes with k zero bytes behind it.
using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t sum = b;
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ ((sum & 1) != 0 ? kPolynomial : 0);
    tables[0][b] = sum;
  }
  for (int k = 1; k < kSlices; ++k)
    for (uint32_t b = 0; b < 256; ++b)
      tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xff];
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t sum = ~0u;
  size_t at = 0;
  const auto byte = [&](size_t i) { return uint32_t{static_cast<uint8_t>(bytes[i])}; };
  for (; bytes.size() - at >= kSlices; at += kSlices) {
    sum ^= byte(at) | byte(at + 1) << 8 | byte(at + 2) << 16 | byte(at + 3) << 24;
    sum = kTables[7][sum & 0xff] ^ kTables[6][sum >> 8 & 0xff] ^ kTables[5][sum >> 16 & 0xff] ^
          kTables[4][sum >> 24] ^ kTables[3][byte(at + 4)] ^ kTables[2][byte(at + 5)] ^
          kTables[1][byte(at + 6)] ^ kTables[0][byte(at + 7)];
  }
  for (; at < bytes.size(); ++at) sum = sum >> 8 ^ kTables[0][(sum ^ byte(at)) & 0xff];
  return ~sum;
}

}  // namespace outcore::cli
