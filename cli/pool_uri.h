// PoolUri: where checkpoints are kept: a folder may be given instead of a URI.
#pragma once

#include <string>

namespace outcore::cli {

inline std::string pool_uri(const std::string& given) {
  const size_t colon = given.find(':');
  return colon == std::string::npos || given.find('/') < colon ? "versioned:" + given : given;
}

}  // namespace outcore::cli
