#include "far/store/kinds.h"

#include "core/store/registry.h"
#include "far/store/far_store.h"
#include "far/store/rbd_open.h"
#include "far/store/redis_catalog.h"
#include "far/store/redis_store.h"
#include "far/store/redis_writers.h"

namespace outcore::store {
namespace {

using Opened = Result<std::shared_ptr<Store>>;

Opened open_rbd_image(const Uri& uri, const OpenOptions& options, const StoreLimits& limits) {
  return open_rbd(uri, options, limits.read_concurrency, limits.write_concurrency);
}

Opened open_redis(const Uri& uri, const OpenOptions& options, const StoreLimits& limits) {
  auto redis = read_redis_options(uri);
  if (!redis) return redis.error();
  return RedisStore::open(redis.value(), options, limits);
}

}  // namespace

void add_far_kinds() {
  StoreKind rbd;
  rbd.scheme = "rbd";
  rbd.syntax = "rbd://POOL/IMAGE?size=1T&lifetime=2h";
  rbd.summary = "an image on the disks of a Ceph cluster";
  rbd.parameters = {"size",    "order",   "thick", "timeout",     "conf",    "mon",
                    "keyring", "keyfile", "id",    "interrupted", "lifetime"};
  rbd.open = open_rbd_image;
  rbd.check = check_rbd;
  rbd.has_authority = true;
  rbd.checkpoints = StoreKind::Checkpoints::kBySnapshots;
  rbd.list = list_rbd;
  rbd.remove = remove_rbd;
  add_kind(rbd);

  StoreKind redis;
  redis.scheme = "redis";
  redis.syntax =
      "redis://[[USER]:PASSWORD@]HOST:PORT[,HOST:PORT…]/NAME?replicas=1&chunk=64k"
      "&compress=lz4|zstd|zstd:LEVEL&timeout=30s&lifetime=2h&lines=4&tls=1&tls_ca=FILE&tls_cert="
      "FILE&tls_key=FILE";
  redis.summary = "memory of Redis or Valkey servers";
  redis.parameters = {"replicas", "chunk", "compress", "timeout",  "lifetime",
                      "lines",    "tls",   "tls_ca",   "tls_cert", "tls_key"};
  redis.open = open_redis;
  redis.check = check_redis;
  redis.has_authority = true;
  redis.list = list_redis;
  redis.stored_bytes = stored_in_redis;
  redis.note_checksum = note_checksum_in_redis;
  redis.remove = remove_from_redis;
  redis.open_shared = open_redis_shared;
  add_kind(redis);

  StoreKind far;
  far.scheme = "far";
  far.syntax =
      "far://[[USER]:PASSWORD@]HOST:PORT[+HOST:PORT][,HOST:PORT…]?replicas=0&chunk=64k"
      "&compress=lz4|zstd|zstd:LEVEL&timeout=30s&reserve=yes|no";
  far.summary = "unnamed space in the memory of Redis or Valkey servers that dies with the process";
  far.parameters = {"replicas", "chunk", "compress", "timeout",  "lines",
                    "reserve",  "tls",   "tls_ca",   "tls_cert", "tls_key"};
  far.open = open_far;
  far.check = check_far;
  far.has_authority = true;
  far.dies_with_process = true;
  add_kind(far);
}

}  // namespace outcore::store
