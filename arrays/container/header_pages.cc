#include "arrays/container/header_pages.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include "core/base/assert.h"

namespace outcore::arrays {
namespace {

constexpr uint32_t kVersion = 1;
constexpr uint64_t kPage = base::kSystemPage;
constexpr uint64_t kMarksAt[] = {2048, 3072};  // in the page
constexpr uint32_t kMarkMagic = 0x4b4d434f;    // "OCMK"

// At the beginning of a header page. Little-endian, like the whole catalog.
struct HeaderBytes {
  char magic[8];
  uint32_t version;
  uint32_t unused;
  uint64_t generation, offset, size_bytes;
  uint64_t sum;  // of the fields before it
};
static_assert(sizeof(HeaderBytes) == 48);

struct MarkBytes {
  uint32_t magic;
  uint32_t is_replaced;
  uint64_t generation, durable_bytes;
  uint64_t sum;  // of the fields before it
};
static_assert(sizeof(MarkBytes) == 32);

template <typename Bytes>
uint64_t sum_of(const Bytes& bytes) {
  return XXH3_64bits(&bytes, offsetof(Bytes, sum));
}

template <typename Bytes>
bool is_zero(const Bytes& bytes) {
  const auto all = std::as_bytes(std::span(&bytes, 1));
  return std::all_of(all.begin(), all.end(), [](std::byte b) { return b == std::byte{0}; });
}

// Zeros, if the storage ends before it.
template <typename Bytes>
Result<Bytes> read_at(ContainerStorage& storage, uint64_t at) {
  Bytes bytes{};
  if (at + sizeof bytes > storage.size_bytes()) return bytes;
  if (Status s = storage.read(at, std::as_writable_bytes(std::span(&bytes, 1))); !s)
    return s.error();
  return bytes;
}

HeaderBytes to_bytes(const JournalHeader& header) {
  HeaderBytes bytes{};
  std::memcpy(bytes.magic, kContainerMagic, sizeof kContainerMagic);
  bytes.version = kVersion;
  bytes.generation = header.generation;
  bytes.offset = header.offset;
  bytes.size_bytes = header.size_bytes;
  bytes.sum = sum_of(bytes);
  return bytes;
}

MarkBytes to_bytes(uint64_t generation, const JournalMark& mark) {
  MarkBytes bytes = {kMarkMagic, mark.is_replaced ? 1u : 0u, generation, mark.durable_bytes, 0};
  bytes.sum = sum_of(bytes);
  return bytes;
}

bool is_ours(const HeaderBytes& bytes) {
  return std::memcmp(bytes.magic, kContainerMagic, sizeof kContainerMagic) == 0;
}
bool is_whole(const MarkBytes& bytes) {
  return bytes.magic == kMarkMagic && bytes.sum == sum_of(bytes);
}

// Each word of it is of generation `before` (0: zeros), or of `next`, as far as that can be told.
bool may_be_torn(const MarkBytes& bytes, uint64_t before, uint64_t next) {
  return (bytes.magic == kMarkMagic || bytes.magic == 0) && bytes.is_replaced <= 1 &&
         (bytes.generation == 0 || bytes.generation == before || bytes.generation == next);
}
// The page that does not count, while the one after `generation` was being written.
bool may_be_torn(const HeaderBytes& bytes, uint64_t generation) {
  if (is_ours(bytes) && bytes.version == kVersion && bytes.generation == generation + 1)
    return true;
  const bool is_old =
      std::all_of(std::begin(bytes.magic), std::end(bytes.magic), [](char c) { return c == 0; });
  return generation == 1 && (is_ours(bytes) || is_old) && bytes.version <= kVersion &&
         bytes.unused == 0 && (bytes.generation == 0 || bytes.generation == 2);
}

uint64_t page_of(uint64_t generation) { return generation % 2 * kPage; }

}  // namespace

Result<JournalHeader> HeaderPages::read() const {
  JournalHeader best;
  bool has_magic = false;
  for (const uint64_t at : {uint64_t{0}, kPage}) {
    const auto page = read_at<HeaderBytes>(storage_, at);
    if (!page) return page.error();
    if (!is_ours(page.value())) continue;
    has_magic = true;
    if (page->sum != sum_of(page.value())) continue;  // torn: the other page is valid
    if (page->version > kVersion)
      return Error{EINVAL, storage_.uri() + " has version " + std::to_string(page->version) +
                               " of the format, newer than this Outcore's " +
                               std::to_string(kVersion) + ": take a newer one"};
    if (page->generation > best.generation)
      best = {page->generation, page->offset, page->size_bytes};
  }
  if (best.generation != 0) return best;
  return Error{has_magic ? EBADMSG : ENODATA, "no header page is whole"};
}

Status HeaderPages::write(const JournalHeader& header, const std::optional<JournalMark>& mark) {
  OC_ASSERT(header.generation != 0 && header.offset % kPage == 0);
  std::vector<std::byte> page(kPage);
  const HeaderBytes head = to_bytes(header);
  std::memcpy(page.data(), &head, sizeof head);
  if (mark) {
    const MarkBytes bytes = to_bytes(header.generation, *mark);
    for (const uint64_t in_page : kMarksAt)
      std::memcpy(page.data() + in_page, &bytes, sizeof bytes);
  }
  return storage_.write(page_of(header.generation), page);
}

Result<bool> HeaderPages::is_later_there(const JournalHeader& header) const {
  std::vector<std::byte> pages(2 * kPage);
  if (Status s = storage_.read_anew(0, pages); !s) return s.error();
  for (const uint64_t at : {uint64_t{0}, kPage}) {
    HeaderBytes page;
    std::memcpy(&page, &pages[at], sizeof page);
    if (is_ours(page) && page.sum == sum_of(page) && page.generation > header.generation)
      return true;
  }
  return false;
}

Result<FoundMark> HeaderPages::read_mark(const JournalHeader& header) const {
  FoundMark found;
  int not_whole = 0;
  for (const uint64_t in_page : kMarksAt) {
    const auto bytes = read_at<MarkBytes>(storage_, page_of(header.generation) + in_page);
    if (!bytes) return bytes.error();
    if (is_zero(bytes.value())) continue;
    if (!is_whole(bytes.value())) {
      ++not_whole;
    } else if (bytes->generation == header.generation &&
               (!found.mark || bytes->durable_bytes >= found.mark->durable_bytes)) {
      const bool is_replaced = bytes->is_replaced != 0 || (found.mark && found.mark->is_replaced);
      found.mark = {bytes->durable_bytes, is_replaced};
    }
  }
  found.has_traces = not_whole != 0;
  found.is_lost = not_whole == std::ssize(kMarksAt);
  return found;
}

Status HeaderPages::write_mark(const JournalHeader& header, const JournalMark& mark) {
  OC_ASSERT(header.generation != 0 && mark.durable_bytes <= header.size_bytes);
  const MarkBytes bytes = to_bytes(header.generation, mark);
  for (const uint64_t in_page : kMarksAt)
    if (Status s = storage_.write(page_of(header.generation) + in_page,
                                  std::as_bytes(std::span(&bytes, 1)));
        !s)
      return s;
  return {};
}

// What a writer leaves that ends while it writes generation g + 1 into the spare page of g, or the
// mark of g - 1: some words are of before (zeros, if g is 1), and others are new.
Result<HeaderPages::Spare> HeaderPages::look_at_spare(const JournalHeader& header) const {
  const uint64_t at = page_of(header.generation + 1);
  const uint64_t before = header.generation - 1, next = header.generation + 1;
  const auto page = read_at<HeaderBytes>(storage_, at);
  if (!page) return page.error();
  int begun = 0, torn = 0;
  for (const uint64_t in_page : kMarksAt) {
    const auto mark = read_at<MarkBytes>(storage_, at + in_page);
    if (!mark) return mark.error();
    if (is_zero(mark.value())) continue;
    if (!may_be_torn(mark.value(), before, next)) return Spare::kDamaged;
    torn += is_whole(mark.value()) ? 0 : 1;
    begun += is_whole(mark.value()) && mark->generation == before ? 0 : 1;
  }
  if (torn == std::ssize(kMarksAt)) return Spare::kDamaged;
  const bool is_expected = before == 0 ? is_zero(page.value())
                                       : is_ours(page.value()) && page->generation == before &&
                                             page->sum == sum_of(page.value());
  if (is_expected) return begun == 0 ? Spare::kWhole : Spare::kBegun;
  return may_be_torn(page.value(), header.generation) ? Spare::kBegun : Spare::kDamaged;
}

Result<std::string> HeaderPages::find_damage(const JournalHeader& header) const {
  const auto spare = look_at_spare(header);
  if (!spare) return spare.error();
  if (spare.value() == Spare::kDamaged)
    return "its spare header page, at " + std::to_string(page_of(header.generation + 1)) +
           ": no array needs it, and opening the container for writing writes it anew";
  const uint64_t at = page_of(header.generation);
  const uint64_t before = header.generation > 2 ? header.generation - 2 : 0;  // in this page
  for (const uint64_t in_page : kMarksAt) {
    const auto mark = read_at<MarkBytes>(storage_, at + in_page);
    if (!mark) return mark.error();
    if (!may_be_torn(mark.value(), before, header.generation))
      return "a mark of its header page, at " + std::to_string(at) +
             ": no array needs it, and storing something in the container writes it anew";
  }
  return std::string();
}

// Also what a writer has begun: a mark of a journal that never counted must not be left for a later
// one of the same generation.
Status HeaderPages::mend(const JournalHeader& header) {
  const auto spare = look_at_spare(header);
  if (!spare || spare.value() == Spare::kWhole) return spare.status();
  if (header.generation == 1) return storage_.write(page_of(2), std::vector<std::byte>(kPage));
  // Where the journal before was is not known. This one's place tells that it is gone: no record
  // of it is of the generation before.
  return write({header.generation - 1, header.offset, header.size_bytes}, JournalMark{0, true});
}

}  // namespace outcore::arrays
