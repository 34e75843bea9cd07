#include "far/store/redis_servers.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "core/base/clock.h"
#include "core/os/wait.h"
#include "far/redis/call.h"
#include "far/redis/chunks.h"

namespace outcore::store {
namespace {

constexpr uint64_t kConnectNs = 5'000'000'000;
constexpr uint64_t kAloneNs = 2'000'000'000;
constexpr uint64_t kLookAgainNs = 50'000'000;

}  // namespace

Error refuse_redis(const RedisOptions& options, int code, const std::string& why) {
  return {code, "store '" + options.uri + "': " + why};
}

namespace {

Error explain_refused(const redis::Servers& servers, const RedisOptions& options, int error) {
  for (uint32_t server = 0; server < servers.count(); ++server)
    if (const std::string said = servers.refusal(server).text(); !said.empty())
      return refuse_redis(
          options, -error,
          std::string("server ") + servers.address(server).text + " refuses: " + said);
  return refuse_redis(options, -error, "its server refuses to serve");
}

}  // namespace

Result<std::unique_ptr<RedisServers>> RedisServers::connect(const RedisOptions& options) {
  std::unique_ptr<RedisServers> made(new RedisServers);
  redis::Servers::Options servers;
  servers.access.user = options.user;
  servers.access.password = options.password;
  servers.seeds = options.servers;
  servers.read_lines = options.lines;
  servers.has_standby = options.has_standby;
  servers.replicas = options.replicas;
  if (!options.is_strict)
    servers.alone_after_ns = std::min(kAloneNs, options.timeout_ms * 1'000'000 / 4);
  if (options.is_tls) {
    auto tls = redis::Tls::make(options.tls_files);
    if (!tls) return refuse_redis(options, tls.code(), tls.message());
    made->tls = std::move(tls.value());
    servers.access.tls = made->tls.get();
  }
  made->servers = std::make_unique<redis::Servers>(std::move(servers));
  const uint64_t timeout_ns = options.timeout_ms * 1'000'000;
  made->catalog = std::make_unique<redis::Catalog>(*made->servers, options.replicas, timeout_ns);
  const uint64_t deadline_ns = base::now_ns() + std::min(timeout_ns, kConnectNs);
  const int result = made->servers->refresh(deadline_ns);
  if (result == -EACCES)
    return refuse_redis(
        options, EACCES,
        "the server refuses the user or password: write redis://user:password@host, or "
        "set REDISCLI_AUTH");
  if (redis::Connection::is_refusal(result))
    return explain_refused(*made->servers, options, result);
  if (result == -EPROTO && options.is_tls)
    return refuse_redis(options, EPROTO,
                        "no TLS with the server: check its certificate against tls_ca, and that it "
                        "speaks TLS on this port");
  if (result == -EPROTO)
    return refuse_redis(options, EPROTO,
                        std::string("what answers at ") + options.servers.front().text +
                            " is not a Redis server, or wants TLS: check host and port, or add "
                            "tls=1 and tls_ca=FILE");
  if (result != 0)
    return refuse_redis(options, -result,
                        std::string("none of its servers answers (") +
                            options.servers.front().text + ": " + ::strerrordesc_np(-result) +
                            "): check host and port, and that it runs");
  if (!made->servers->is_cluster() && options.servers.size() > 1 && !options.has_standby)
    return refuse_redis(
        options, EINVAL,
        "several servers that are not a cluster: name one, or a cluster's; far: takes "
        "several for space that dies with the process");
  if (made->servers->is_cluster() && options.has_standby)
    return refuse_redis(options, EINVAL,
                        "A+B is for single servers: a cluster knows its replicas itself");
  return made;
}

// Counts the replicas of each server, up to the number that was asked for; UINT32_MAX if it has no
// slots.
Result<std::vector<uint32_t>> RedisServers::count_replicas(const RedisOptions& options) {
  std::vector<uint32_t> replicas(servers->count(), UINT32_MAX);
  for (uint32_t slot = 0; slot < redis::kSlotCount; ++slot)
    if (const uint32_t server = servers->server_of(slot); server != redis::Servers::kNobody)
      replicas[server] = servers->is_cluster() ? servers->replicas_of(server) : 0;
  for (uint32_t server = 0; server < replicas.size(); ++server) {
    // A cluster does not list replicas that have not received anything yet, not even a ping: for
    // some 10 s.
    if (replicas[server] >= options.replicas) continue;
    const redis::Command command{{"INFO", "replication"}, 0, 0};
    auto info = redis::call_server(*servers, server, command, base::now_ns() + kConnectNs);
    if (!info) return refuse_redis(options, info.code(), info.message());
    constexpr std::string_view kField = "connected_slaves:";
    const std::string& text = info.value().text;
    const size_t at = text.find(kField);
    if (at != std::string::npos)
      std::from_chars(text.data() + at + kField.size(), text.data() + text.size(),
                      replicas[server]);
  }
  return replicas;
}

// Checks that every master has the replicas that must acknowledge a write.
Status RedisServers::check_replicas(const RedisOptions& options) {
  const uint64_t deadline_ns = base::now_ns() + options.timeout_ms * 1'000'000;
  auto counted = count_replicas(options);
  while (!counted && counted.code() != EACCES && base::now_ns() < deadline_ns) {
    std::atomic<uint32_t> nobody{0};
    os::wait(&nobody, 0, kLookAgainNs);
    servers->refresh(deadline_ns);
    counted = count_replicas(options);
  }
  if (!counted) return counted.error();
  const std::vector<uint32_t>& replicas = counted.value();
  for (uint32_t server = 0; server < replicas.size(); ++server)
    if (replicas[server] < options.replicas)
      return refuse_redis(
          options, EINVAL,
          std::string("server ") + servers->address(server).text + " has " +
              std::to_string(replicas[server]) + " replicas, " + std::to_string(options.replicas) +
              " must acknowledge what is written: add replicas, or write replicas=" +
              std::to_string(replicas[server]) +
              (replicas[server] == 0 ? " and lose what a server holds if it fails" : ""));
  return {};
}

Status RedisServers::remove(const RedisOptions& options, bool is_expired_only) {
  const os::SignalBlock block;
  redis::Claim claim;
  claim.name = options.name;
  claim.is_writer = claim.is_removal = true;
  claim.is_expired_only = is_expired_only;
  claim.set_owner();
  const auto counted = count_replicas(options);
  if (!counted) return counted.error();
  const uint32_t replicas =
      std::min(options.replicas, *std::min_element(counted.value().begin(), counted.value().end()));
  redis::Catalog there(*servers, replicas, options.timeout_ms * 1'000'000);
  auto record = there.open(claim);
  if (!record) return refuse_redis(options, record.code(), record.message());
  const redis::Record& it = record.value();
  redis::Chunks chunks(*servers, {it.id, it.part_count, it.chunk_bytes, !it.packing.empty()},
                       replicas, options.timeout_ms * 1'000'000);
  if (const int result = chunks.remove_all(it.size_bytes); result != 0)
    return refuse_redis(
        options, -result,
        std::string("remove it: ") + ::strerrordesc_np(-result) + ": " + chunks.trouble());
  if (Status s = there.drop(options.name, it.token); !s)
    return refuse_redis(options, s.code(), s.message());
  return {};
}

Result<uint64_t> RedisServers::stored_bytes(const RedisOptions& options,
                                            const redis::Record& record) {
  const os::SignalBlock block;
  redis::Chunks chunks(*servers,
                       {record.id, record.part_count, record.chunk_bytes, !record.packing.empty()},
                       0, options.timeout_ms * 1'000'000);
  return chunks.stored_bytes();
}

Status RedisServers::reclaim_expired(const RedisOptions& options) {
  auto records = catalog->list();
  if (!records) return refuse_redis(options, records.code(), records.message());
  for (const redis::Record& record : records.value()) {
    const bool is_retired = record.damage.empty() && record.owner.empty() &&
                            record.lifetime_ms == kRetiredMs && record.left_ms > 0;
    if (record.name == options.name || !(record.is_expired() || is_retired)) continue;
    if (is_retired) {
      std::atomic<uint32_t> nobody{0};
      const uint64_t left_ms = std::min(kRetiredMs, static_cast<uint64_t>(record.left_ms)) + 1;
      os::wait(&nobody, 0, left_ms * 1'000'000);
    }
    RedisOptions others = options;
    others.name = record.name;
    if (Status s = remove(others, true); !s && s.code() != EBUSY && s.code() != ENOENT) return s;
  }
  return {};
}

}  // namespace outcore::store
