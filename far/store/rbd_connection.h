// RbdConnection: a client of one pool of a Ceph cluster: how the cluster is found, who the client
// is, and how much fits into the pool.
//
// Any thread but the fault path. Every call ends within about `timeout_s`, whatever has failed.
// librados has threads of its own, so a forked child must not use it (RbdStore sees to that).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "far/store/rbd_library.h"

namespace outcore::store {

struct RbdAccess {
  std::string conf;     // empty: CEPH_CONF, /etc/ceph/ceph.conf or ~/.ceph/config; with `mon`: none
  std::string mon;      // HOST[:PORT],…; empty: from the configuration
  std::string keyring;  // a file with a section [client.ID]; empty: from the configuration
  std::string keyfile;  // a file that contains only the key
  std::string id = "admin";
  unsigned timeout_s = 60;
};

// How many bytes fit into the pool, and what limits them. `bytes` is empty if that is unknown.
struct PoolSpace {
  std::optional<uint64_t> bytes;
  std::string reason;  // "its quota", "the free space of the cluster"
};

// From what the monitors answer to `df` and `osd pool ls detail`, in JSON: the smaller of the free
// space and what the quota leaves.
PoolSpace pool_space(std::string_view df, std::string_view pools, const std::string& pool);

class RbdConnection {
 public:
  // `what` begins every message. Errors: ETIMEDOUT (no monitor answers), EACCES (the key), ENOENT
  // (no configuration, keyring or pool), EINVAL.
  static Result<std::unique_ptr<RbdConnection>> open(const RbdLibrary& library,
                                                     const RbdAccess& access,
                                                     const std::string& pool,
                                                     const std::string& name_space,
                                                     const std::string& what);
  ~RbdConnection();
  RbdConnection(const RbdConnection&) = delete;
  RbdConnection& operator=(const RbdConnection&) = delete;

  const RbdLibrary& library() const { return library_; }
  rados_ioctx_t pool() const { return pool_; }
  const std::string& pool_name() const { return pool_name_; }
  // "FSID/POOL NUMBER/NAMESPACE".
  const std::string& identity() const { return identity_; }
  // The identity of an image, or of its snapshot: no two stores have the same.
  std::string identity_of(const std::string& image_id, const std::string& snapshot = {}) const {
    return "rbd:" + identity_ + "/" + image_id + "@" + snapshot;
  }
  // Unknown is not an error: a cluster without a manager has no statistics.
  PoolSpace space() const;

 private:
  explicit RbdConnection(const RbdLibrary& library) : library_(library) {}
  Status configure(const RbdAccess& access, const std::string& what);
  Status set(const char* option, const std::string& value, const std::string& what);
  Status connect(const RbdAccess& access, const std::string& what);
  Status find_pool(const std::string& name_space, const std::string& what);
  std::string ask(const std::string& command) const;

  const RbdLibrary& library_;
  rados_t cluster_ = nullptr;
  rados_ioctx_t pool_ = nullptr;
  bool is_connected_ = false;
  std::string pool_name_;
  std::string identity_;
};

}  // namespace outcore::store
