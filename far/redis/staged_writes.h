// StagedWrites: writes whose bytes are not passed through a script. See scripts.h.
//
// Any thread; the fault path.
#pragma once

#include <atomic>

#include "far/redis/reply_reader.h"
#include "far/redis/store_state.h"

namespace outcore::redis {

// How the bytes of a write travel: through a script; to a key of their own, which then becomes the
// chunk; or into a copy of the chunk, which then does.
enum class WriteWay : uint8_t { kScript, kWhole, kCopied };

class StagedWrites {
 public:
  StagedWrites(StoreState& state, ReplyReader& replies) : state_(state), replies_(replies) {}

  WriteWay way_of(const ChunkRequest& r) const;
  // REQUIRES: the way is not kScript.
  void send(Connection& stream, const ChunkRequest& r, WriteWay way);
  // As ReplyReader::refuse(). Other errors are the connection's.
  int receive(Connection& stream, ChunkRequest& r, WriteWay way);

 private:
  static constexpr uint32_t kStagedMin = 8192;  // below, a script's few calls are cheaper
  static constexpr size_t kStagedKeyMax = ChunkKeys::kKeyMax + 80;

  StoreState& state_;
  ReplyReader& replies_;
  std::atomic<uint64_t> staged_count_{0};
};

}  // namespace outcore::redis
