// The kinds of redis:// stores that the conformance suite of core/tests/store is run on here.
#include "core/tests/store/store_case.h"

#include "far/tests/redis/test_servers.h"

namespace outcore::store_test {
namespace {

// One server for as long as the test's process lives, a store of its own for each test.
StoreCase of_redis(const std::string& name, const std::string& parameters) {
  return {name, [parameters](const Folder&, uint64_t size_bytes) {
            static redis_test::TestServers servers;
            static int count = 0;
            OpenOptions options;
            options.is_writable = options.may_create = true;
            options.size_bytes = size_bytes;
            return open_store(
                servers.uri("store-" + std::to_string(++count), "replicas=0&" + parameters),
                options);
          }};
}

}  // namespace

std::vector<StoreCase> all_cases() {
  if (!redis_test::TestServers::is_installed()) return {};
  return {of_redis("Redis", "chunk=16k"), of_redis("RedisLz4", "compress=lz4"),
          of_redis("RedisZstd", "compress=zstd&chunk=4k")};
}

}  // namespace outcore::store_test
