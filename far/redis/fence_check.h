// FenceCheck: asks a server for the fences of parts, whether it still has what was acknowledged.
//
// Any thread; the fault path. The caller holds the connection.
#pragma once

#include <span>

#include "core/base/function_ref.h"
#include "far/redis/chunk_commands.h"
#include "far/redis/copy_check.h"
#include "far/redis/reply_reader.h"
#include "far/redis/store_state.h"

namespace outcore::redis {

class FenceCheck : public CopyCheck {
 public:
  FenceCheck(StoreState& state, ReplyReader& replies, ChunkCommands& commands)
      : state_(state), replies_(replies), commands_(commands) {}

  // A value that is shorter than it should be was never written, or is lost. The fence tells which.
  // 0, or the error of the connection; reads that must be asked again are not done then.
  int judge_short_reads(Connection& stream, uint8_t group, std::span<ChunkRequest> batch);
  // A server to which nobody spoke for a while may have been replaced by one with older data. What
  // it contains of this store must be as new as what was acknowledged. -EAGAIN: it cannot say yet.
  int check_fresh(Line& line, uint32_t server);
  // The standby of a pair has all parts, or is none.
  int check_copy(Connection& stream, uint32_t server) override;

 private:
  int ask_parts(Connection& stream, base::FunctionRef<bool(uint32_t)> is_asked,
                base::FunctionRef<int(const Reply&, ChunkRequest&, uint64_t)> judge);

  StoreState& state_;
  ReplyReader& replies_;
  ChunkCommands& commands_;
};

}  // namespace outcore::redis
