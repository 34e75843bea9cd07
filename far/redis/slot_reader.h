// SlotReader: asks a server who has which slots.
//
// One thread at a time, any; the fault path.
#pragma once

#include <cstdint>

#include "far/redis/copy_watch.h"
#include "far/redis/lines.h"
#include "far/redis/server_table.h"

namespace outcore::redis {

class SlotReader {
 public:
  static constexpr uint64_t kAskNs = 700'000'000;  // silent for so long: the next one is asked

  SlotReader(ServerTable& table, Lines& lines, CopyWatch& copies)
      : table_(table), lines_(lines), copies_(copies) {}

  // Notes what the server says. 0 or -errno. -EAGAIN: it knows nobody who has slots.
  int ask(uint32_t server, uint64_t deadline_ns);

 private:
  int read_slots(Connection& stream, uint32_t asked);
  int read_node(Connection& stream, uint32_t asked, uint32_t* server);

  ServerTable& table_;
  Lines& lines_;
  CopyWatch& copies_;
  uint16_t heard_[kSlotCount];
};

}  // namespace outcore::redis
