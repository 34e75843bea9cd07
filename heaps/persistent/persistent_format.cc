#include "heaps/persistent/persistent_format.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "heaps/persistent/persistent_sizes.h"

namespace outcore::heap::persistent {

static_assert(std::endian::native == std::endian::little);

uint64_t checksum_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

namespace {

uint64_t checksum_of(const Header& header) {
  return persistent::checksum_of(
      {reinterpret_cast<const std::byte*>(&header), offsetof(Header, checksum)});
}

}  // namespace

std::vector<std::byte> encode(Header header) {
  header.checksum = checksum_of(header);
  std::vector<std::byte> bytes(kHeadersBytes);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + kHeaderStride, &header, sizeof header);
  return bytes;
}

Result<Headers> decode_headers(std::span<const std::byte> bytes, const std::string& what) {
  Headers found;
  bool has_magic = false;
  uint32_t newer = 0;
  for (unsigned copy = 0; copy < 2; ++copy) {
    Header h{};
    const bool is_there = bytes.size() >= copy * kHeaderStride + sizeof h;
    if (is_there) std::memcpy(&h, bytes.data() + copy * kHeaderStride, sizeof h);
    const bool is_named = is_there && std::memcmp(h.magic, kHeaderMagic, sizeof h.magic) == 0;
    has_magic = has_magic || is_named;
    const std::string which = std::string("copy ") + (copy == 0 ? "1" : "2") + " of the header ";
    // A damaged copy can say any format.
    if (!is_named || h.checksum != checksum_of(h)) {
      found.findings.push_back(which + "is damaged");
    } else if (h.format > kFormat) {
      newer = h.format;
    } else if (h.format != kFormat || h.tile_bytes != kTileBytes || h.state < 1 || h.state > 2) {
      found.findings.push_back(which + "says what format 1 does not know");
    } else {
      found.intact.push_back(h);
    }
  }
  if (found.intact.empty() && newer != 0)
    return Error{ENOTSUP, what + ": it has format " + std::to_string(newer) +
                              ", this Outcore knows formats up to " + std::to_string(kFormat) +
                              ": use a newer Outcore"};
  if (!has_magic)
    return Error{EINVAL, what + ": it is not a persistent heap: name the file of one"};
  if (found.intact.empty())
    return Error{EINVAL, what + ": both copies of its header are damaged: restore it from a copy"};
  if (found.intact.size() == 2) {
    const auto [a, b] = std::pair(found.intact[0], found.intact[1]);
    if (std::memcmp(&a, &b, sizeof a) != 0)
      found.findings.emplace_back("the two copies of the header differ");
    else if (a.state == static_cast<uint32_t>(State::kConsistent))
      found.is_consistent = true;
    if (b.sequence > a.sequence) std::swap(found.intact[0], found.intact[1]);
  } else if (newer == 0 && found.intact[0].state == static_cast<uint32_t>(State::kConsistent)) {
    // Both copies say "open" durably before anything is changed, so this one is of a close.
    found.is_consistent = true;
    found.findings.back() += ": the other copy is used, and nothing is lost";
  }
  return found;
}

}  // namespace outcore::heap::persistent
