// FarOptions: what a far:// URI asks for: unnamed space in the memory of single servers, in their
// order, or of one cluster.
#pragma once

#include <string>
#include <vector>

#include "far/store/redis_options.h"

namespace outcore::store {

struct FarOptions {
  std::string uri;                    // without the password
  std::vector<RedisOptions> members;  // in the order in which they are filled
  bool is_reserved = true;            // what the size covers has its space
};

// Errors: EINVAL, EHOSTUNREACH (a host that nobody knows).
Result<FarOptions> read_far_options(const Uri& uri);

}  // namespace outcore::store
