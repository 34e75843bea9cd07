#include "core/runtime/last_writer.h"

#include <algorithm>

#include "core/os/wait.h"
#include "core/paging/engine.h"
#include "core/store/committing.h"

namespace outcore::runtime {
namespace {

store::Committing* committing(const Region::Impl& region) {
  if (region.access != Access::kReadWrite) return nullptr;
  return dynamic_cast<store::Committing*>(region.cache->store.load());
}

bool has_other_writer(const Runtime::Impl& runtime, const Region::Impl& region) {
  return std::any_of(runtime.regions.begin(), runtime.regions.end(), [&](const Region::Impl* r) {
    return r != &region && r->cache == region.cache && r->access == Access::kReadWrite;
  });
}

}  // namespace

void begin_writing(const Runtime::Impl& runtime, const Region::Impl& region) {
  store::Committing* const store = committing(region);
  if (store != nullptr && !has_other_writer(runtime, region)) store->begin_writing();
}

Status store_before_unmap(const Runtime::Impl& runtime, const Region::Impl& region,
                          bool is_forced) {
  if (region.access != Access::kReadWrite) return {};
  Status first;
  {
    const os::SignalBlock block;
    first = runtime.engine->flush(*region.cache, region.view->first_page(), region.view->end_page(),
                                  is_forced ? paging::OnTimeout::kGoOn : paging::OnTimeout::kStop);
  }
  if (!first.ok() && !is_forced) return first;
  store::Committing* const store = committing(region);
  if (store == nullptr) return first;
  Status s =
      has_other_writer(runtime, region) ? store->can_commit() : store->end_writing(is_forced);
  if (s.ok() || !first.ok()) return first;
  return Error{s.code(), "unmap " + region.uri + ": " + s.message()};
}

Status check_committable(const Region::Impl& region) {
  const store::Committing* const store = committing(region);
  return store == nullptr ? Status() : store->can_commit();
}

}  // namespace outcore::runtime
