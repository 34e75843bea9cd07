// TransferError: what people are told of a transfer that failed: of a file that others have cut,
// how long it is now. Calls of the program; not the fault path.
#pragma once

#include <cerrno>
#include <string>

#include "core/base/error.h"
#include "core/paging/page_cache.h"
#include "core/store/file_store.h"

namespace outcore::paging {

// As base::system_error().
inline Error transfer_error(const PageCache& cache, int code, const std::string& attempted,
                            const std::string& remedy = {}) {
  const auto* file = code == -EIO || code == EIO
                         ? dynamic_cast<const store::FileStore*>(cache.store.load())
                         : nullptr;
  const std::string cut = file != nullptr ? file->why_cut() : "";
  if (cut.empty()) return base::system_error(code, attempted, remedy);
  return {EIO, attempted + ": " + cut + (remedy.empty() ? "" : "; " + remedy)};
}

}  // namespace outcore::paging
