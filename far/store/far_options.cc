#include "far/store/far_options.h"

#include <algorithm>
#include <cerrno>

namespace outcore::store {
namespace {

constexpr size_t kMembersMax = 1024;
// How long the space is kept after the lease of a process that died; then others may have it.
constexpr int64_t kLifetimeMs = 300'000;

}  // namespace

Result<FarOptions> read_far_options(const Uri& uri, HostNames names) {
  FarOptions options;
  options.uri = uri.text;
  if (!uri.path.empty() && uri.path != "/")
    return refuse(uri, "this space has no name: leave out " + uri.path +
                           ", or write redis:// for a store that stays");
  const auto is_reserved = is_yes(uri, "reserve", true);
  if (!is_reserved) return is_reserved.error();
  options.is_reserved = is_reserved.value();
  const size_t at = uri.authority.rfind('@');
  const std::string login = at == std::string::npos ? "" : uri.authority.substr(0, at + 1);
  const std::string hosts = uri.authority.substr(login.size());
  if (hosts.empty()) return refuse(uri, "no server: write far://HOST:PORT,HOST:PORT");
  for (size_t from = 0; from <= hosts.size();) {
    const size_t comma = std::min(hosts.find(',', from), hosts.size());
    std::string pair = hosts.substr(from, comma - from);
    from = comma + 1;
    const bool has_standby = std::count(pair.begin(), pair.end(), '+') == 1;
    if (const size_t plus = pair.find('+'); has_standby) pair[plus] = ',';
    Uri one = uri;
    one.authority = login + pair;
    one.path.clear();
    if (uri.find("replicas") == nullptr)
      one.parameters.emplace_back("replicas", has_standby ? "1" : "0");
    auto member = read_redis_options(one, names);
    if (!member) return member.error();
    member.value().has_standby = has_standby;
    member.value().lifetime_ms = kLifetimeMs;
    if (has_standby && member.value().replicas > 1)
      return refuse(uri, "replicas=" + *uri.find("replicas") +
                             " is not possible: write 0 or 1 where HOST+HOST names one standby");
    options.members.push_back(std::move(member.value()));
  }
  if (options.members.size() > kMembersMax)
    return refuse(uri, "more than " + std::to_string(kMembersMax) + " servers");
  return options;
}

Status check_far(const Uri& uri) { return read_far_options(uri, HostNames::kAsTheyAre).status(); }

}  // namespace outcore::store
