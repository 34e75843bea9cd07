// LastWriter: what a store must learn of the regions that write it before the last of them ends.
//
// Under the mapping lock, except check_committable().
#pragma once

#include "core/runtime/runtime_impl.h"

namespace outcore::runtime {

// The region is one of the runtime's. Nothing happens unless it is the first that writes its store.
void begin_writing(const Runtime::Impl& runtime, const Region::Impl& region);
// Writes the region's bytes back and, if no other region writes its store, lets it commit. After an
// error the region is as it was, unless `is_forced`.
Status store_before_unmap(const Runtime::Impl& runtime, const Region::Impl& region, bool is_forced);
// Why nothing of the region's store can become durable any more.
Status check_committable(const Region::Impl& region);

}  // namespace outcore::runtime
