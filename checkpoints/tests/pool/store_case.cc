// The kinds of versioned: stores that the conformance suite of core/tests/store is run on here.
#include "core/tests/store/store_case.h"

namespace outcore::store_test {

std::vector<StoreCase> all_cases() {
  return {by_uri("Versioned", "versioned:", "?object=x"),
          by_uri("VersionedOfLargeChunks", "versioned:", "?object=x&chunk=64k")};
}

}  // namespace outcore::store_test
