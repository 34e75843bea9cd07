// RedisOpening: the steps by which a store on servers is opened: its record and lease from the
// catalog, then its fences.
//
// One thread, with signals blocked. What was claimed is given back if a later step fails.
#pragma once

#include <memory>

#include "core/store/written_map.h"
#include "far/redis/chunks.h"
#include "far/redis/part_writer.h"
#include "far/store/redis_lease.h"
#include "far/store/redis_options.h"
#include "far/store/redis_servers.h"
#include "outcore/store.h"

namespace outcore::store {

// What an open store consists of.
struct OpenedRedis {
  RedisOptions options;
  std::unique_ptr<RedisServers> servers;
  redis::Record record;
  std::shared_ptr<const packing::Packer> packer;  // if its chunks are packed
  // Covers a store that this process created, and nothing of another: ranges never written need no
  // fill.
  std::unique_ptr<WrittenMap> written = std::make_unique<WrittenMap>();
  std::unique_ptr<redis::Chunks> chunks;
  std::unique_ptr<redis::PartWriter> parts;  // of the writer of packed chunks
  std::unique_ptr<RedisLease> lease;         // of a writer

  // See Catalog::begin_rewrite().
  Status begin_rewrite() const;
};

class RedisOpening {
 public:
  explicit RedisOpening(const RedisOptions& options) : opened_{.options = options} {}

  // Call it once. Errors: see RedisStore::open().
  Result<OpenedRedis> run(const OpenOptions& how, bool is_shared);

 private:
  Status claim(const OpenOptions& how, int64_t capacity_bytes, bool is_shared);
  Status choose_packer();
  Status take_over(bool is_rewritten);

  OpenedRedis opened_;
};

}  // namespace outcore::store
