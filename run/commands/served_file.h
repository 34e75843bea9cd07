// ServedFile: a file whose pages `outcore serve` keeps in a buffer. It is watched by a read lease:
// whoever opens it for writing waits until it is given back; afterwards it is taken again, as the
// file that it then is. One thread.
#pragma once

#include <optional>
#include <string>

#include "outcore/buffers.h"
#include "outcore/result.h"

namespace outcore::cli {

class ServedFile {
 public:
  explicit ServedFile(std::string path) : path_(std::move(path)) {}
  ~ServedFile() { give_back(); }
  ServedFile(const ServedFile&) = delete;
  ServedFile& operator=(const ServedFile&) = delete;

  const std::string& path() const { return path_; }
  bool is_held() const { return held_.has_value(); }

  // Gives it back if a process wants to write it, or it has become another file; takes it if
  // possible. OK, or why it is not held: EAGAIN and EBUSY may pass (somebody writes it, or it has
  // changed just now); EACCES (a lease needs the owner), ENOENT and what open() says, EINVAL (no
  // regular file, empty, or a filesystem without leases). No wait.
  Status look_after(const HeldBuffer& buffer);

 private:
  bool is_to_be_given_back() const;
  void give_back();
  Status take(const HeldBuffer& buffer);

  const std::string path_;
  int fd_ = -1;  // with the lease
  std::optional<HeldFile> held_;
};

}  // namespace outcore::cli
