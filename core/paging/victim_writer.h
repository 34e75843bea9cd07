// VictimWriter: writes back what the victims of one turn had written, neighbours joined into one
// transfer.
//
// Their bytes are copied into the shard's write buffer, as pieces of requests, and written when it
// is full or at the end. Held by whoever holds the shard's turn; the fault path.
#pragma once

#include <cstdint>

#include "core/paging/pager.h"
#include "core/paging/victim_batch.h"

namespace outcore::paging {

class VictimWriter {
 public:
  VictimWriter(Pager& pager, Shard& shard, VictimBatch& victims, Caller caller)
      : pager_(pager), shard_(shard), victims_(victims), caller_(caller) {}

  // Before the first victim of the batch. REQUIRES: nothing is queued.
  void begin() {
    OC_CHECK(shard_.request_count == 0);
    finished_ = 0;
  }
  // The runs of shard.written, clipped to the end of the store. REQUIRES: victim i carries
  // kWriting, which is ours; earlier ones were queued before.
  void queue_written(uint32_t i);
  // Carries out the queued transfers, within each store's write concurrency, and finishes the
  // victims before `finish_end`: those that have nothing more to queue.
  void write_until(uint32_t finish_end);

  uint32_t finished() const { return finished_; }  // victims before this have no write under way
  int first_error() const { return first_error_; }

 private:
  void queue_run(uint32_t i, uint64_t offset, uint64_t size_bytes);
  void copy_shared();
  void store_by_pages(const StoreRequest& request, uint32_t first_victim, uint32_t last_victim);
  void fail_request(const StoreRequest& request, uint32_t first_victim, uint32_t last_victim,
                    PageCache& cache);
  void finish_write(Victim& victim);

  Pager& pager_;
  Shard& shard_;
  VictimBatch& victims_;
  const Caller caller_;
  uint32_t finished_ = 0;
  int first_error_ = 0;
};

}  // namespace outcore::paging
