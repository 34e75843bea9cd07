// Chunks: the values of one store on its servers, read and written in parts.
//
// The requests of a batch travel together: those for one server are sent in one go, and all servers
// work at the same time. What a server that died or moved does not answer is asked again elsewhere,
// until the timeout of the store. Any thread; kRead may be used on the fault path (without TLS).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/packing/packer.h"
#include "far/redis/batch_runner.h"
#include "far/redis/chunk_commands.h"
#include "far/redis/chunk_keys.h"
#include "far/redis/chunk_request.h"
#include "far/redis/combined_reads.h"
#include "far/redis/fence_check.h"
#include "far/redis/group_exchange.h"
#include "far/redis/packed_values.h"
#include "far/redis/reply_reader.h"
#include "far/redis/servers.h"
#include "far/redis/staged_writes.h"
#include "far/redis/store_state.h"

namespace outcore::redis {

class Chunks {
 public:
  static constexpr size_t kBatchMax = ChunkRequest::kBatchMax;
  static constexpr size_t kReadBatchMax = 32;  // on the stack of the thread that faulted
  static constexpr uint64_t kGraceNs = GroupExchange::kGraceNs;

  // `member`: of a shared lease (redis/shared_lease.h), which member this is. REQUIRES: to read or
  // write packed chunks, a packer; packed stores have no members.
  Chunks(Servers& servers, Layout layout, uint32_t replicas, uint64_t timeout_ns,
         std::shared_ptr<const packing::Packer> packer = nullptr, const std::string& member = {});

  ~Chunks();

  // Carries out up to kBatchMax requests and sets their results: -ETIMEDOUT (no server, or too few
  // replicas, answered within the timeout; later requests to a server that has been silent for so
  // long are given up within kGraceNs, and changes at once if nobody listens there), -ENOSPC (the
  // memory of a server is full), -ESTALE (another writer has the store), -EIO (the servers lost
  // bytes of the part), -EACCES, -EPROTO.
  void run(std::span<ChunkRequest> batch) { runner_.run(batch); }

  // Asks for the names of the scripts; 0 or -errno. Call it before the first kWrite, kZero or
  // kFence.
  int learn_scripts() { return state_.scripts.learn(state_.servers, state_.timeout_ns); }
  // Writes the token into the fences of all parts: a writer with a smaller token cannot change
  // anything any more. For readers: checks that all fences exist. 0 or -errno, as run().
  // *is_untouched: nothing was ever changed in the store.
  int take_fences(uint64_t token, bool is_new, bool* is_untouched);
  int check_fences();
  // From now on a standby takes over only if it has what was acknowledged of this store. REQUIRES:
  // the servers are this store's alone.
  void check_standby();
  // *sum: of how often each part was changed, if the last writer of all of them has this token;
  // else 0. What has the same sum and token has the same bytes. 0 or -errno, as run().
  int sum_changes(uint64_t token, uint64_t* sum);
  // Deletes all fences, and then all chunks, of a store of so many bytes.
  int remove_all(uint64_t size_bytes);
  // The bytes that the servers hold in whole values.
  Result<uint64_t> stored_bytes();

  const Layout& layout() const { return state_.layout(); }
  // False: there was no memory for unpacking when this was made.
  bool has_spaces() const { return packed_.spaces() == nullptr || packed_.spaces()->is_made(); }
  bool has_lost() const { return state_.fences.has_lost(); }
  // The last network error, for messages: "127.0.0.1:7000: Connection refused".
  std::string trouble() const { return state_.failure.text(); }

 private:
  uint64_t count_all();
  int run_on_parts(Act act, std::vector<uint64_t>* numbers);

  StoreState state_;
  // Each holds references to some of those above it.
  ReplyReader replies_;
  PackedValues packed_;
  StagedWrites staged_;
  ChunkCommands commands_;
  FenceCheck fence_check_;
  GroupExchange exchange_;
  CombinedReads combined_reads_;
  BatchRunner runner_;
  bool is_standby_checked_ = false;
};

}  // namespace outcore::redis
