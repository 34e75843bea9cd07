#include "core/runtime/start_checks.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/buffer/member.h"
#include "core/buffer/place.h"
#include "core/paging/pager.h"
#include "core/runtime/profile_file.h"
#include "core/runtime/runtime_impl.h"
#include "core/store/scratch_store.h"

namespace outcore::runtime {
namespace {

Status at(const ResolvedOptions& options, const std::string& name, const Status& status) {
  if (status) return status;
  return Error{status.code(), name + " (" + options.source_of(name) + "): " + status.message()};
}

// Whether one of them is set for this start: what a config file says for every program is no reason
// to refuse one.
bool is_asked(const ResolvedOptions& options, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) {
    const OptionPlace place = options.places.at(name);
    return place == OptionPlace::kEnvironment || place == OptionPlace::kProgram;
  });
}

// One that is in a buffer already may be of any size.
Status check_budget(const ResolvedOptions& options) {
  if (!options.has_sized_budget || !is_asked(options, {"budget", "page", "keepers", "buffer"}))
    return {};
  if (options.buffer != "none")
    return at(options, "budget", buffer::Member::check_limit(options.buffer, options.budget_bytes));
  paging::PagerOptions pager;
  pager.budget_bytes = base::round_down(options.budget_bytes, base::kSystemPage);
  pager.keepers = options.keepers;
  pager.prefetch_threads = options.prefetch_threads;
  return at(options, "budget", paging::Pager::check_budget(pager, options.page_bytes));
}

Status check_scratch(const ResolvedOptions& options) {
  if (!is_asked(options, {"scratch_dir"})) return {};
  std::string folder = options.scratch_dir;
  const int file = store::open_scratch_file(&folder);
  if (file < 0)
    return at(options, "scratch_dir",
              base::system_error(file, "make a scratch file in " + folder,
                                 "name a folder that you may write to"));
  ::close(file);
  return {};
}

Status check_pool(const ResolvedOptions& options) {
  if (options.checkpoint_every_ms == 0 || options.checkpoint_pool == "none" ||
      !is_asked(options, {"checkpoint", "checkpoint_pool"}))
    return {};
  return at(options, "checkpoint_pool", open_pool_once(options.checkpoint_pool));
}

}  // namespace

Status check_start(const ResolvedOptions& options) {
  if (options.buffer != "none" && is_asked(options, {"buffer"}))
    if (Status s = buffer::check_folder(); !s) return at(options, "buffer", s);
  if (Status s = check_budget(options); !s) return s;
  if (Status s = check_scratch(options); !s) return s;
  if (options.learn_file != "none" && is_asked(options, {"learn"}))
    if (Status s = check_place_of_profile(options.learn_file); !s) return at(options, "learn", s);
  return check_pool(options);  // last, as it may make the pool
}

}  // namespace outcore::runtime
