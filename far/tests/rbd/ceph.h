// Ceph: a real cluster on this machine, started at the first use, one a test program.
//
// ceph_cluster.sh runs it, detached from us: when this process ends, in whatever way, its pipe
// closes, and the cluster is ended and removed.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace outcore::rbd_test {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;

class Ceph {
 public:
  // Why there can be none here; empty: there can. Then instance() works, or stops the program.
  static std::string why_not();
  static Ceph& instance();

  const std::string& folder() const { return folder_; }
  std::string conf() const { return folder_ + "/ceph.conf"; }
  std::string keyring() const { return folder_ + "/keyring"; }
  // HOST:PORT of the monitor.
  std::string monitor() const;
  // rbd://POOL/IMAGE as the configuration file says; parameters begin with '&'.
  std::string uri(const std::string& image, const std::string& parameters = {}) const;
  // A name that no image has.
  static std::string new_name();

  // Tells ceph_cluster.sh to do something, and waits. Empty, or why it could not.
  std::string tell(const std::string& command);
  // Ends the cluster, and waits until its folder is gone.
  void stop();

 private:
  Ceph();

  std::string folder_;
  int commands_ = -1;
  std::FILE* answers_ = nullptr;
};

}  // namespace outcore::rbd_test

#define OUTCORE_NEEDS_CEPH()                                                      \
  if (const std::string why = ::outcore::rbd_test::Ceph::why_not(); !why.empty()) \
  GTEST_SKIP() << why
