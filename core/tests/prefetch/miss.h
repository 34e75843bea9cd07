// miss: calls a stream table with one miss, in one line.
#pragma once

#include "core/prefetch/stream_table.h"

namespace outcore::prefetch {

inline StreamTable::Advice miss(StreamTable& table, uint64_t cache, uint64_t page,
                                uint32_t window_max, uint64_t page_end, bool is_sequential,
                                bool is_in_flight, StreamTable::Pages absent = {}) {
  StreamTable::Miss miss;
  miss.cache_id = cache;
  miss.page = page;
  miss.page_end = page_end;
  miss.window_max = window_max;
  miss.is_sequential = is_sequential;
  miss.is_in_flight = is_in_flight;
  miss.absent = absent;
  return table.on_miss(miss);
}

}  // namespace outcore::prefetch
