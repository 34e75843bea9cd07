#include "far/redis/known_fences.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/clock.h"

namespace outcore::redis {

KnownFences::KnownFences(const Servers& servers, uint32_t part_count, uint64_t timeout_ns)
    : servers_(servers),
      part_count_(part_count),
      timeout_ns_(timeout_ns),
      seen_(new std::atomic<uint64_t>[part_count]()),
      is_lost_(new std::atomic<bool>[part_count]()),
      suspect_since_ns_(new std::atomic<uint64_t>[part_count]()) {}

void KnownFences::note_seen(uint32_t part, uint64_t seq) {
  std::atomic<uint64_t>& seen = seen_[part];
  uint64_t known = seen.load();
  while (known < seq && !seen.compare_exchange_weak(known, seq)) {
  }
}

void KnownFences::lose(uint32_t part) {
  OC_CHECK(part < part_count_);
  is_lost_[part].store(true);
  has_lost_.store(true);
}

int KnownFences::judge(uint32_t server, uint32_t part, const ChunkRequest& answer, uint64_t least) {
  OC_ASSERT(part < part_count_ && answer.act == Act::kSeq);
  constexpr uint64_t kDoubtNs = 5'000'000'000;
  std::atomic<uint64_t>& since_ns = suspect_since_ns_[part];
  if (answer.result == 0 && answer.number >= least) {
    since_ns.store(0, std::memory_order_relaxed);
    return 0;
  }
  if (servers_.is_retired(server)) return -EAGAIN;
  const uint64_t now_ns = base::now_ns();
  uint64_t since = since_ns.load();
  if (since == 0 && since_ns.compare_exchange_strong(since, now_ns)) since = now_ns;
  if (servers_.is_cluster() && now_ns < since + std::min(kDoubtNs, timeout_ns_ / 2)) return -EAGAIN;
  lose(part);
  return -EIO;
}

}  // namespace outcore::redis
