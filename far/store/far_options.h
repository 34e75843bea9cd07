// FarOptions: what a far:// URI asks for: unnamed space in the memory of single servers, in the
// given order, or of one cluster.
#pragma once

#include <string>
#include <vector>

#include "far/store/redis_options.h"

namespace outcore::store {

struct FarOptions {
  std::string uri;                    // without the password
  std::vector<RedisOptions> members;  // in the order in which they are filled
  bool is_reserved = true;            // space for the whole size is reserved
};

// Errors: EINVAL, EHOSTUNREACH (an unknown host).
Result<FarOptions> read_far_options(const Uri& uri, HostNames names = HostNames::kLookedUp);
// What is wrong with the text of such a URI. Errors: EINVAL.
Status check_far(const Uri& uri);

}  // namespace outcore::store
