#include "far/store/rbd_connection.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/store/uri.h"

namespace outcore::store {
namespace {

using base::Json;

void consider(PoolSpace& space, uint64_t bytes, const char* reason) {
  if (space.bytes.has_value() && *space.bytes <= bytes) return;
  space.bytes = bytes;
  space.reason = reason;
}

// Formats HOST:PORT,… for librados. At a port that is not the standard one of either protocol it
// tries both, and then a refused key looks like silence. So the new protocol is required everywhere
// but at port 6789.
std::string addresses(const std::string& monitors) {
  std::string all;
  for (size_t at = 0; at <= monitors.size();) {
    const size_t end = std::min(monitors.find(',', at), monitors.size());
    const std::string one = monitors.substr(at, end - at);
    const size_t colon = one.find(':');
    const bool is_plain = one.find_first_not_of("0123456789.:") == std::string::npos &&
                          colon != std::string::npos &&
                          one.find(':', colon + 1) == std::string::npos;
    if (!all.empty()) all += ",";
    all += (is_plain && one.substr(colon) != ":6789" ? "v2:" : "") + one;
    at = end + 1;
  }
  return all;
}

std::string address_of(const RbdAccess& access) {
  return access.mon.empty() ? "of the configuration" : access.mon;
}

}  // namespace

PoolSpace pool_space(std::string_view df, std::string_view pools, const std::string& pool) {
  PoolSpace space;
  uint64_t used = 0;
  const Json all = Json::parse_or_null(df);
  for (const Json& one : all["pools"]) {
    if (one["name"] != pool) continue;
    const Json& stats = one["stats"];
    used = stats.value("stored", uint64_t{0});
    if (stats["max_avail"].as<double>())  // what is no size is none
      consider(space, stats.value("max_avail", uint64_t{0}), "the free space of the cluster");
  }
  const Json told = Json::parse_or_null(pools);
  for (const Json& one : told) {
    if (one["pool_name"] != pool) continue;
    const uint64_t most = one.value("quota_max_bytes", uint64_t{0});
    if (most != 0) consider(space, most - std::min(most, used), "its quota");
  }
  return space;
}

Result<std::unique_ptr<RbdConnection>> RbdConnection::open(const RbdLibrary& library,
                                                           const RbdAccess& access,
                                                           const std::string& pool,
                                                           const std::string& name_space,
                                                           const std::string& what) {
  std::unique_ptr<RbdConnection> made(new RbdConnection(library));
  made->pool_name_ = pool;
  if (Status s = made->configure(access, what); !s) return s.error();
  if (Status s = made->connect(access, what); !s) return s.error();
  if (Status s = made->find_pool(name_space, what); !s) return s.error();
  return made;
}

RbdConnection::~RbdConnection() {
  if (pool_ != nullptr) library_.rados_ioctx_destroy(pool_);
  // Also if it never connected: this frees what rados_create2 made.
  if (cluster_ != nullptr) library_.rados_shutdown(cluster_);
}

Status RbdConnection::set(const char* option, const std::string& value, const std::string& what) {
  const int error = library_.rados_conf_set(cluster_, option, value.c_str());
  if (error == 0) return {};
  return base::system_error(error, what + ": set " + option + " to '" + value + "'");
}

// The options of the URI are set last, so they win.
Status RbdConnection::configure(const RbdAccess& access, const std::string& what) {
  const std::string name = "client." + access.id;
  int error = library_.rados_create2(&cluster_, "ceph", name.c_str(), 0);
  if (error != 0) return base::system_error(error, what + ": make a client " + name);
  if (access.mon.empty() || !access.conf.empty()) {
    error = library_.rados_conf_read_file(cluster_,
                                          access.conf.empty() ? nullptr : access.conf.c_str());
    if (error != 0)
      return base::system_error(
          error, what + ": read " + (access.conf.empty() ? "ceph.conf" : access.conf),
          "name it with conf=FILE or CEPH_CONF, or give mon=HOST and keyring=FILE");
  }
  error = library_.rados_conf_parse_env(cluster_, nullptr);
  if (error != 0) return base::system_error(error, what + ": read CEPH_ARGS");
  const std::string seconds = std::to_string(access.timeout_s);
  std::vector<std::pair<const char*, std::string>> settings = {
      {"client_mount_timeout", seconds},
      {"rados_mon_op_timeout", seconds},
      {"rados_osd_op_timeout", seconds},
      {"rbd_cache", "false"},  // a write that succeeded is in the cluster
      {"rbd_blocklist_on_break_lock", "true"},
  };
  if (!access.mon.empty()) settings.emplace_back("mon_host", addresses(access.mon));
  if (!access.keyring.empty()) settings.emplace_back("keyring", access.keyring);
  if (!access.keyfile.empty()) settings.emplace_back("keyfile", access.keyfile);
  for (const auto& [option, value] : settings)
    if (Status s = set(option, value, what); !s) return s;
  for (const std::string& file : {access.keyring, access.keyfile})
    if (!file.empty() && ::access(file.c_str(), R_OK) != 0)
      return base::system_error(errno, what + ": read the key in " + file);
  return {};
}

Status RbdConnection::connect(const RbdAccess& access, const std::string& what) {
  const int error = library_.rados_connect(cluster_);
  if (error == 0) {
    char fsid[64] = {};
    if (library_.rados_cluster_fsid(cluster_, fsid, sizeof fsid) > 0) identity_ = fsid;
    is_connected_ = true;
    return {};
  }
  const std::string who = "client." + access.id;
  const std::string monitors = "the monitors " + address_of(access);
  if (error == -ETIMEDOUT)
    return Error{ETIMEDOUT, what + ": " + monitors + " did not answer within " +
                                std::to_string(access.timeout_s) +
                                " s: check the address and the network, or raise timeout="};
  if (error == -EACCES || error == -EPERM)
    return Error{EACCES, what + ": " + monitors + " do not accept the key of " + who +
                             ": check keyring= and id="};
  if (error == -ENOENT)
    return Error{ENOENT, what + ": no monitor's address, or no key of " + who +
                             ", was found: give mon=HOST, keyring=FILE and id=NAME, or a ceph.conf "
                             "that says them"};
  return base::system_error(error, what + ": connect to " + monitors + " as " + who);
}

Status RbdConnection::find_pool(const std::string& name_space, const std::string& what) {
  const int error = library_.rados_ioctx_create(cluster_, pool_name_.c_str(), &pool_);
  if (error == -ENOENT) {
    std::string names(64 << 10, '\0');
    const int needed = library_.rados_pool_list(cluster_, names.data(), names.size());
    std::vector<std::string_view> pools;
    if (needed >= 0 && static_cast<size_t>(needed) <= names.size())
      for (const char* name = names.c_str(); *name != '\0'; name += pools.back().size() + 1)
        pools.emplace_back(name);
    return Error{ENOENT, what + ": there is no pool '" + pool_name_ + "'" +
                             did_you_mean(pool_name_, pools) +
                             ": make it with ceph osd pool create"};
  }
  if (error != 0) return base::system_error(error, what + ": open the pool '" + pool_name_ + "'");
  if (!name_space.empty()) library_.rados_ioctx_set_namespace(pool_, name_space.c_str());
  identity_ += "/" + std::to_string(library_.rados_ioctx_get_id(pool_)) + "/" + name_space;
  return {};
}

std::string RbdConnection::ask(const std::string& command) const {
  const char* commands[] = {command.c_str()};
  char *answer = nullptr, *remark = nullptr;
  size_t answer_bytes = 0, remark_bytes = 0;
  const int error = library_.rados_mon_command(cluster_, commands, 1, "", 0, &answer, &answer_bytes,
                                               &remark, &remark_bytes);
  const std::string text = error == 0 ? std::string(answer, answer_bytes) : std::string();
  if (answer != nullptr) library_.rados_buffer_free(answer);
  if (remark != nullptr) library_.rados_buffer_free(remark);
  return text;
}

PoolSpace RbdConnection::space() const {
  return pool_space(ask(R"({"prefix":"df","format":"json"})"),
                    ask(R"({"prefix":"osd pool ls","detail":"detail","format":"json"})"),
                    pool_name_);
}

}  // namespace outcore::store
