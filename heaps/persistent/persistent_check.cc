// Examines a persistent heap without opening it: whether it is consistent, what it contains, what
// is wrong.
#include <algorithm>
#include <bit>
#include <cerrno>

#include "heaps/persistent/persistent_core_impl.h"
#include "heaps/persistent/persistent_sizes.h"

namespace outcore {

using heap::persistent::Findings;
using heap::persistent::Header;
using heap::persistent::Headers;
using heap::persistent::Image;
using heap::persistent::Name;
using heap::persistent::Place;
using heap::persistent::Run;
using heap::persistent::RunKind;

namespace heap::persistent {

PersistentHeapInfo describe(const Headers& headers, const Header& header, const Image& image) {
  PersistentHeapInfo info;
  info.format = header.format;
  info.is_consistent = headers.is_consistent;
  info.version = header.version;
  info.size_bytes = header.size_bytes;
  info.metadata_bytes = header.metadata_bytes;
  for (const Run& run : image.runs) {
    const auto kind = static_cast<RunKind>(run.kind);
    if (kind == RunKind::kLarge) info.in_use_bytes += run.value;
    if (kind != RunKind::kFull && kind != RunKind::kPartial) continue;
    const unsigned index = cell_index(run.cell_bytes);
    uint64_t cells = run.tile_count / slab_tiles(index) * slab_cells(index);
    if (kind == RunKind::kPartial) {
      cells = 0;
      for (uint64_t i = 0; i < slab_words(index); ++i)
        cells += static_cast<uint64_t>(std::popcount(image.words[run.value + i]));
    }
    info.in_use_bytes += cells * run.cell_bytes;
  }
  for (const Name& n : image.names)
    info.objects.push_back(
        {n.name, n.type, n.offset, n.count, n.element_bytes, n.alignment, n.version});
  std::sort(info.objects.begin(), info.objects.end(),
            [](const PersistentObject& a, const PersistentObject& b) { return a.name < b.name; });
  return info;
}

}  // namespace heap::persistent

Result<bool> persistent_heap_is_consistent(const std::string& uri) {
  Result<std::shared_ptr<Store>> store = open_store(uri);
  if (!store) return store.error();
  Result<Headers> headers = heap::persistent::read_headers(**store, "look at the heap " + uri);
  if (!headers) return headers.error();
  return headers->is_consistent &&
         headers->intact.front().size_bytes <= store.value()->size_bytes();
}

Result<PersistentHeapInfo> persistent_heap_info(const std::string& uri) {
  Result<std::shared_ptr<Store>> store = open_store(uri);
  if (!store) return store.error();
  const std::string what = "look at the heap " + uri;
  Result<Headers> headers = heap::persistent::read_headers(**store, what);
  if (!headers) return headers.error();
  const Header& header = headers->intact.front();
  Findings findings;
  Result<Image> image = heap::persistent::read_image(**store, header, &findings);
  if (!image) return image.error();
  if (!findings.is_empty())
    return Error{EUCLEAN, what + ": " + findings.lines().front() + ": check it for more"};
  return describe(headers.value(), header, image.value());
}

Result<std::vector<std::string>> persistent_heap_check(const std::string& uri) {
  Result<Place> place = heap::persistent::open_place(PersistentCore::Mode::kOpenReadOnly, uri);
  if (!place) return place.error();
  Store& store = *place->store;
  Result<Headers> headers = heap::persistent::read_headers(store, "check the heap " + uri);
  if (!headers) return headers.error();
  Findings findings;
  for (const std::string& line : headers->findings) findings.add(line);
  const Header& header = headers->intact.front();
  if (!headers->is_consistent)
    findings.add("the heap was not closed: its objects may hold anything");
  Findings of_image;
  Result<Image> image = heap::persistent::read_image(store, header, &of_image);
  if (!image) return image.error();
  for (const std::string& line : of_image.lines()) findings.add(line);
  return findings.lines();
}

}  // namespace outcore
