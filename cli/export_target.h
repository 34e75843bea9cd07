// ExportTarget: a file or folder that is written under another name first, and then moved to its
// place: what is found there is complete. Any thread.
#pragma once

#include <string>

#include "outcore/result.h"

namespace outcore::cli {

bool exists(const std::string& path);  // also true for a link that leads nowhere

// The destructor removes what is not finished.
class ExportTarget {
 public:
  explicit ExportTarget(std::string path);
  ~ExportTarget();
  ExportTarget(const ExportTarget&) = delete;
  ExportTarget& operator=(const ExportTarget&) = delete;
  // Nothing has that name; whoever makes it, makes it anew (O_EXCL).
  const std::string& temporary() const { return temporary_; }

  // Whether a file can be made there. ENOENT, EACCES and others, with the remedy.
  Status check_folder() const;
  // Explains why it could not be written: libraries of formats report a full disk in many ways, or
  // as another error. The file has the user's name for it. REQUIRES: what was written still exists.
  Error explain(const Error& error) const;

  // Makes it durable and moves it to its place, whose name is then durable, too. EEXIST: something
  // is there that must not be replaced.
  Status finish(bool may_replace);

 private:
  bool is_ours_to_replace() const;
  Status sync() const;
  Status move_there(bool may_replace);
  Status sync_name() const;

  std::string folder() const;  // with the last '/'; "." for the one in which we are

  std::string path_, temporary_;
};

}  // namespace outcore::cli
