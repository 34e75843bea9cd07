// GroupExchange: sends the requests of a batch that go to one server, and reads the replies. What
// must be asked again, maybe elsewhere, is not done then.
//
// Any thread; the fault path for reads.
#pragma once

#include <span>

#include "far/redis/chunk_commands.h"
#include "far/redis/fence_check.h"
#include "far/redis/packed_values.h"
#include "far/redis/store_state.h"

namespace outcore::redis {

// The requests of a batch that go to one server over one connection: changes, or all others.
struct Group {
  uint32_t server = 0;
  bool is_write = false;
  Line* line = nullptr;
  uint32_t replicas = 0;               // how many must acknowledge
  bool is_probe = false;               // none must acknowledge; it asks whether they would
  bool was_returning = false;          // Servers::is_returning() when it was sent
  const ChunkRequest* last = nullptr;  // the last one that was sent

  Use use() const { return is_write ? Use::kWrite : Use::kRead; }
};

class GroupExchange {
 public:
  static constexpr uint64_t kGraceNs = 250'000'000;  // for a server that is silent

  GroupExchange(StoreState& state, PackedValues& packed, ChunkCommands& commands,
                FenceCheck& fence_check)
      : state_(state), packed_(packed), commands_(commands), fence_check_(fence_check) {}

  // Acquires a connection for the group, whose server has been checked. 0 or -errno; then there is
  // no connection. Who got one releases it after conclude().
  int open(Group& group, uint64_t deadline_ns);
  // Sends a request as one of group `number`; of a part that is lost it fails instead.
  void send(Group& group, uint8_t number, ChunkRequest& r);
  // Sends WAIT after the writes of a group.
  void send_wait(Group& group, uint64_t deadline_ns);
  // Reads the replies, and notes what became of the requests.
  void conclude(Group& group, uint8_t number, std::span<ChunkRequest> batch);

 private:
  static void forget_redirections(std::span<ChunkRequest> batch, uint8_t group);
  int finish(Group& group, uint8_t number, std::span<ChunkRequest> batch);
  int wait_for_replicas(Group& group);

  StoreState& state_;
  PackedValues& packed_;
  ChunkCommands& commands_;
  FenceCheck& fence_check_;
};

}  // namespace outcore::redis
