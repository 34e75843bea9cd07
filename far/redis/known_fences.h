// KnownFences: what this process knows of the fences of a store's parts: whether they must exist,
// the changes that replicas have acknowledged, and which parts are lost.
//
// Any thread; the fault path.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "far/redis/chunk_request.h"
#include "far/redis/servers.h"

namespace outcore::redis {

class KnownFences {
 public:
  KnownFences(const Servers& servers, uint32_t part_count, uint64_t timeout_ns);

  // Whether all fences exist, as far as the servers have lost none.
  bool must_exist() const { return must_exist_.load(std::memory_order_acquire); }
  void note_exist() { must_exist_.store(true, std::memory_order_release); }
  void note_removal() { must_exist_.store(false); }
  // The seq of the part, or the number of the member's changes, that replicas have acknowledged.
  uint64_t seen(uint32_t part) const { return seen_[part].load(); }
  void set_seen(uint32_t part, uint64_t seq) { seen_[part].store(seq); }
  void note_seen(uint32_t part, uint64_t seq);  // unless more was seen already
  bool is_lost(uint32_t part) const { return is_lost_[part].load(std::memory_order_relaxed); }
  bool has_lost() const { return has_lost_.load(std::memory_order_relaxed); }
  void lose(uint32_t part);
  // Judges what a server says about a part, of which at least `least` was acknowledged. 0; -EIO:
  // the part is lost; -EAGAIN: the server cannot say yet. In a cluster the server may have been
  // replaced without knowing it yet, so it is asked again for a while.
  int judge(uint32_t server, uint32_t part, const ChunkRequest& answer, uint64_t least);

 private:
  const Servers& servers_;
  const uint32_t part_count_;
  const uint64_t timeout_ns_;
  std::atomic<bool> must_exist_{false}, has_lost_{false};
  // By part.
  std::unique_ptr<std::atomic<uint64_t>[]> seen_;
  std::unique_ptr<std::atomic<bool>[]> is_lost_;
  std::unique_ptr<std::atomic<uint64_t>[]> suspect_since_ns_;  // 0: it is not suspect
};

}  // namespace outcore::redis
