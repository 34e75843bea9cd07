// ExportTarget: a file or folder that is written beside the one that it will be.
#pragma once

#include <string>

#include "outcore/result.h"

namespace outcore::cli {

bool exists(const std::string& path);  // links count, whatever they name

// What is not finished goes with the object.
class ExportTarget {
 public:
  explicit ExportTarget(std::string path);
  ~ExportTarget();
  ExportTarget(const ExportTarget&) = delete;
  ExportTarget& operator=(const ExportTarget&) = delete;
  const std::string& temporary() const { return temporary_; }

  // Why it could not be written: libraries of formats tell a full disk in many ways, or as
  // something else. REQUIRES: what was written is still there.
  Error explain(const Error& error) const;

  // Durable, and in its place. EEXIST: something is there that may not be, or must not be,
  // replaced.
  Status finish(bool may_replace);

 private:
  bool is_ours_to_replace() const;
  Status sync() const;

  std::string path_, temporary_;
};

}  // namespace outcore::cli
