#include "core/published/layout.h"

namespace outcore::published {

void StoreSlot::clear() {
  for (std::atomic<uint32_t>* const flag : {&is_described, &is_writable, &is_shared, &is_degraded})
    flag->store(0, std::memory_order_relaxed);
  for (std::atomic<uint64_t>* const bytes : {&store_bytes, &page_bytes, &resident_bytes})
    bytes->store(0, std::memory_order_relaxed);
  for (uint32_t i = 0; i < kPlaces; ++i) remove_place(i);
  places_left_out = 0;
  delivery.set("");
  frames.set("");
  uri.set("");
  fetches.clear();
  counters.clear();
}

void StoreSlot::add_place(uint32_t number, uint64_t start, uint64_t size_bytes) {
  OC_ASSERT(start != 0);
  if (number >= kPlaces) {
    places_left_out.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  places[number].start.store(start, std::memory_order_relaxed);
  places[number].end.store(start + size_bytes, std::memory_order_relaxed);
}

void StoreSlot::remove_place(uint32_t number) {
  if (number >= kPlaces) {
    places_left_out.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  places[number].end.store(0, std::memory_order_relaxed);
  places[number].start.store(0, std::memory_order_relaxed);
}

void Layout::end(StoreSlot& slot) {
  moves.fetch_add(1);
  ended.add_all_of(slot.counters);
  slot.is_over.store(true);
  moves.fetch_add(1);
}

void Layout::add_left_file(std::string_view path, uint64_t size_bytes, std::string_view reason) {
  const uint32_t at = left_files_used.load(std::memory_order_relaxed);
  if (at >= kLeftFiles) return;
  left_files[at].size_bytes.store(size_bytes, std::memory_order_relaxed);
  left_files[at].path.set(path);
  left_files[at].reason.set(reason);
  left_files_used.store(at + 1, std::memory_order_release);
}

uint32_t format_of_this_library() {
  // FNV-1a, of everything that gives a number its place and its meaning.
  uint32_t hash = 2166136261u;
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  };
  for (const MetricInfo& metric : metric_list())
    if (metric.is_counter) add(metric.name);
  add(std::to_string(sizeof(Layout)) + " " + std::to_string(sizeof(StoreSlot)) + " 1");
  return hash;
}

}  // namespace outcore::published
