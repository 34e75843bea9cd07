#include "bench/reuse.h"

#include <cstdint>
#include <utility>

namespace outcore::bench {

cli::Json reuse_in(const cli::Json& record) {
  cli::Json reuse = record["reuse"];
  if (!reuse.is_object()) return {};
  reuse["lost_events"] = record.value("lost_events", uint64_t{0});
  for (const char* const pattern : {"sequential", "strided"}) {
    double faults = 0, such = 0;
    for (const cli::Json& site : record["sites"]) {
      const double here = site.value("faults", 0.0);
      faults += here;
      such += here * site["pattern"].value(pattern, 0.0);
    }
    reuse[pattern] = faults > 0 ? such / faults : 0.0;
  }
  return reuse;
}

}  // namespace outcore::bench
