// CopyTarget: the store that a copy is written to. A file, or a folder that is new, is written
// beside its place and moved there when it is complete. What else a failed copy has made is left,
// and reported: another process may have taken it. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/export_target.h"
#include "outcore/store_kind.h"

namespace outcore::cli {

// Whether an error (its number) says that no server answers.
bool is_server_gone(int code);

class CopyTarget {
 public:
  // `uri`: REQUIRES: it can be parsed. `is_there`: it names a store that can be opened.
  CopyTarget(std::string uri, bool is_there);

  // Makes it. Errors: those of open_store().
  Result<std::shared_ptr<Store>> open(uint64_t size_bytes);
  // All is written and durable.
  Status finish(bool may_replace);
  // The copy failed. Takes away what nobody else can have, and returns the error with what is left.
  Error abandon(Error error);

 private:
  Status open_beside(const std::string& path, const StoreKind& kind);
  Status make_file();

  const std::string uri_;
  const bool is_there_;
  std::string path_;                    // where it shall lie
  std::optional<ExportTarget> beside_;  // it is written here first
  std::shared_ptr<Store> store_;
};

}  // namespace outcore::cli
