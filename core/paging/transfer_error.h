// TransferError: what people are told of a transfer that failed, with what the store knows of it.
// Calls of the program; not the fault path.
#pragma once

#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "core/paging/page_cache.h"

namespace outcore::paging {

// As base::system_error().
inline Error transfer_error(const PageCache& cache, int code, const std::string& attempted,
                            const std::string& remedy = {}) {
  const std::string why = cache.store.load()->why_failed(-std::abs(code));
  if (why.empty()) return base::system_error(code, attempted, remedy);
  return {std::abs(code), attempted + ": " + why + (remedy.empty() ? "" : "; " + remedy)};
}

}  // namespace outcore::paging
