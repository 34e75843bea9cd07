#include "far/store/redis_options.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "core/base/units.h"
#include "far/redis/record.h"
#include "far/redis/servers.h"

namespace outcore::store {
namespace {

using redis::kChunkBytesMax;
using redis::kChunkBytesMin;

constexpr size_t kNameBytesMax = 200;
constexpr uint64_t kReplicasMax = 16;

Status read_authority(const Uri& uri, HostNames names, RedisOptions* options) {
  std::string hosts = uri.authority;
  if (const size_t at = hosts.rfind('@'); at != std::string::npos) {
    const std::string login = hosts.substr(0, at);
    hosts.erase(0, at + 1);
    const size_t colon = login.find(':');
    // Some clients write redis://password@host; the form of Redis itself has a colon.
    if (!decode_percents(login.substr(0, colon), options->user) ||
        (colon != std::string::npos &&
         !decode_percents(login.substr(colon + 1), options->password)))
      return refuse(uri, "bad escape in the user or password: write %25 for a percent sign");
    if (options->password.empty())
      return refuse(uri, "a user without a password: write user:password@, or :password@");
  } else if (const char* password = std::getenv("REDISCLI_AUTH"); password != nullptr) {
    options->password = password;
  }
  if (hosts.empty()) return refuse(uri, "no server: write redis://HOST:PORT/NAME");
  const auto refuse_hosts = [&](const Error& why) {
    return Error{why.code, "store '" + uri.text + "': " + why.message};
  };
  if (names == HostNames::kAsTheyAre) {
    const Status are_right = redis::check_hosts(hosts);
    return are_right ? Status() : refuse_hosts(are_right.error());
  }
  auto servers = redis::resolve_all(hosts);
  if (!servers) return refuse_hosts(servers.error());
  options->servers = std::move(servers.value());
  return {};
}

Status read_name(const Uri& uri, RedisOptions* options) {
  options->name = uri.path.empty() ? "" : uri.path.substr(1);
  if (options->name.size() > kNameBytesMax)
    return refuse(uri, "the name is longer than " + std::to_string(kNameBytesMax) + " bytes");
  const bool is_bad = std::any_of(options->name.begin(), options->name.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == '{' || c == '}';
  });
  if (is_bad) return refuse(uri, "a name has no braces and no control characters");
  return {};
}

Status read_tls(const Uri& uri, RedisOptions* options) {
  const auto text = [&](const char* key) {
    const std::string* value = uri.find(key);
    return value == nullptr ? std::string() : *value;
  };
  const std::string tls = text("tls");
  if (!tls.empty() && tls != "0" && tls != "1")
    return refuse(uri, "tls=" + tls + " is unknown: write 0 or 1");
  options->is_tls = tls == "1";
  options->tls_files = {text("tls_ca"), text("tls_cert"), text("tls_key")};
  const bool has_file = !options->tls_files.authorities.empty() ||
                        !options->tls_files.certificate.empty() || !options->tls_files.key.empty();
  if (has_file && !options->is_tls) return refuse(uri, "files for TLS without tls=1: add it");
  return {};
}

// "timeout=1ms is not possible: write …"
Error refuse_value(const Uri& uri, const char* key, const std::string& allowed) {
  return refuse(uri,
                std::string(key) + "=" + *uri.find(key) + " is not possible: write " + allowed);
}

Status read_counts(const Uri& uri, RedisOptions* options) {
  if (const std::string* replicas = uri.find("replicas")) {
    options->is_strict = replicas->ends_with('!');
    const std::string count = replicas->substr(0, replicas->size() - (options->is_strict ? 1 : 0));
    const auto number = redis::read_count(count, kReplicasMax);
    if (!number || (options->is_strict && *number == 0))
      return refuse_value(uri, "replicas", "0 … 16, or 1! … 16! to write nothing without them");
    options->replicas = static_cast<unsigned>(*number);
  }
  if (const std::string* lines = uri.find("lines")) {
    const auto number = redis::read_count(*lines, redis::Servers::kLinesMax);
    if (!number || *number == 0)
      return refuse_value(uri, "lines", "1 … " + std::to_string(redis::Servers::kLinesMax));
    options->lines = static_cast<unsigned>(*number);
  }
  return {};
}

Status read_chunks(const Uri& uri, RedisOptions* options) {
  const auto chunk = uri.bytes_of("chunk", 0);
  if (!chunk) return chunk.error();
  options->chunk_bytes = chunk.value();
  if (options->chunk_bytes != 0 &&
      (options->chunk_bytes < kChunkBytesMin || options->chunk_bytes > kChunkBytesMax ||
       !base::is_power_of_two(options->chunk_bytes)))
    return refuse_value(uri, "chunk", "a power of two, 4k … 1M");
  const std::string* const compress = uri.find("compress");
  if (compress == nullptr) return {};
  const auto packing = packing::Packing::parse(*compress);
  if (!packing) return refuse(uri, packing.message());
  options->packing = packing.value();
  return {};
}

Status read_times(const Uri& uri, RedisOptions* options) {
  const auto timeout = uri.milliseconds_of("timeout", 30'000);
  if (!timeout) return timeout.error();
  options->timeout_ms = timeout.value();
  if (options->timeout_ms < 100 || options->timeout_ms > 86'400'000)
    return refuse_value(uri, "timeout", "100ms … 1d");
  const auto lifetime = uri.milliseconds_of("lifetime", 0);
  if (!lifetime) return lifetime.error();
  if (uri.find("lifetime") != nullptr)
    options->lifetime_ms =
        static_cast<int64_t>(std::min<uint64_t>(lifetime.value(), INT64_MAX / 2));
  return {};
}

}  // namespace

Result<RedisOptions> read_redis_options(const Uri& uri, HostNames names) {
  RedisOptions options;
  options.uri = uri.text;
  if (Status s = read_authority(uri, names, &options); !s) return s.error();
  if (Status s = read_name(uri, &options); !s) return s.error();
  if (Status s = read_tls(uri, &options); !s) return s.error();
  if (Status s = read_counts(uri, &options); !s) return s.error();
  if (Status s = read_chunks(uri, &options); !s) return s.error();
  if (Status s = read_times(uri, &options); !s) return s.error();
  return options;
}

Status check_redis(const Uri& uri) {
  return read_redis_options(uri, HostNames::kAsTheyAre).status();
}

}  // namespace outcore::store
