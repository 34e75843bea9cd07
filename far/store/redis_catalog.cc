#include "far/store/redis_catalog.h"

#include <algorithm>
#include <cerrno>

#include "core/os/wait.h"
#include "far/store/redis_servers.h"

namespace outcore::store {
namespace {

struct Connected {
  RedisOptions options;
  std::unique_ptr<RedisServers> servers;
  std::vector<redis::Record> records;
};

Result<Connected> connect(const Uri& uri, bool needs_name) {
  const os::SignalBlock block;
  auto options = read_redis_options(uri);
  if (!options) return options.error();
  Connected made{std::move(options.value()), nullptr, {}};
  if (needs_name && made.options.name.empty())
    return refuse_redis(made.options, EINVAL, "no name: write redis://HOST:PORT/NAME");
  auto servers = RedisServers::connect(made.options);
  if (!servers) return servers.error();
  made.servers = std::move(servers.value());
  auto records = made.servers->catalog->list();
  if (!records) return refuse_redis(made.options, records.code(), records.message());
  made.records = std::move(records.value());
  return made;
}

}  // namespace

Result<std::vector<StoreInfo>> list_redis(const Uri& uri) {
  const auto connected = connect(uri, false);
  if (!connected) return connected.error();
  std::vector<StoreInfo> stores;
  for (const redis::Record& record : connected.value().records) {
    const std::string owner = record.lease_ms > 0 ? record.owner : "";
    stores.push_back({record.name, record.size_bytes, record.booked_bytes, owner,
                      record.lifetime_ms, record.is_expired(), record.checksum, record.damage,
                      record.is_incomplete || record.is_abandoned()});
  }
  return stores;
}

Result<uint64_t> stored_in_redis(const Uri& uri) {
  auto connected = connect(uri, true);
  if (!connected) return connected.error();
  const auto& [options, servers, records] = connected.value();
  const auto record = std::find_if(records.begin(), records.end(), [&](const redis::Record& r) {
    return r.name == connected.value().options.name;
  });
  if (record == records.end())
    return refuse_redis(options, ENOENT, "there is no store of that name");
  if (!record->damage.empty())
    return refuse_redis(options, EIO, redis::explain_damage(record->name, record->damage));
  return servers->stored_bytes(options, *record);
}

Status note_checksum_in_redis(const Uri& uri, const std::string& checksum) {
  auto connected = connect(uri, true);
  if (!connected) return connected.error();
  const auto& [options, servers, records] = connected.value();
  for (const redis::Record& record : records)
    if (record.name == options.name)
      return servers->catalog->note_checksum(record.name, record.token, checksum);
  return refuse_redis(options, ENOENT, "there is no store of that name");
}

Status remove_from_redis(const Uri& uri, bool is_expired_only) {
  auto connected = connect(uri, true);
  if (!connected) return connected.error();
  return connected.value().servers->remove(connected.value().options, is_expired_only);
}

}  // namespace outcore::store
