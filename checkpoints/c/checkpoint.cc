// Checkpoints, in C. See outcore.h.
#include "outcore/checkpoint.h"

#include <string>
#include <vector>

#include "core/c/handles.h"
#include "core/c/outcome.h"
#include "core/c/sized_struct.h"
#include "outcore/outcore.h"

using outcore::CheckpointOptions;
using outcore::CheckpointPart;
using outcore::Error;
using outcore::Status;
using namespace outcore::c;

namespace {

constexpr size_t kOptionsBytes = 56;  // of release 0.1
static_assert(sizeof(oc_checkpoint_options) == kOptionsBytes);

Status take_options(const oc_checkpoint_options* from, CheckpointOptions* into) {
  oc_checkpoint_options taken;
  if (Status s = take_struct(from, kOptionsBytes, "oc_checkpoint_options", &taken); !s) return s;
  if ((taken.quiesce == nullptr) != (taken.resume == nullptr))
    return Error{EINVAL, "oc_checkpoint: give both quiesce and resume, or neither"};
  if (taken.leaves_threads > 1 || taken.unused != 0)
    return Error{EINVAL, "oc_checkpoint_options: leaves_threads is 0 or 1, unused is 0"};
  if (taken.pool != nullptr) into->pool = taken.pool;
  if (taken.comment != nullptr) into->comment = taken.comment;
  into->may_stop_threads = taken.leaves_threads == 0;
  if (taken.quiesce == nullptr) return {};
  into->quiesce = [quiesce = taken.quiesce, context = taken.context]() -> Status {
    const int result = quiesce(context);
    if (result == 0) return {};
    return Error{result < 0 ? -result : EIO, "the quiesce function refused"};
  };
  into->resume = [resume = taken.resume, context = taken.context] { resume(context); };
  return {};
}

int make(const char* name, const oc_checkpoint_part* parts, size_t count,
         const oc_checkpoint_options* options, uint64_t* pause_ns) {
  CheckpointOptions taken;
  if (Status s = take_options(options, &taken); !s) return outcome(s);
  std::vector<CheckpointPart> all;
  all.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const oc_checkpoint_part& part = parts[i];
    const std::string object = part.name == nullptr ? "" : part.name;
    if (part.region != nullptr && part.memory != nullptr)
      return fail(EINVAL, "oc_checkpoint: a part is a region or memory, not both");
    if (part.region == nullptr && part.memory == nullptr)
      return fail(EINVAL, "oc_checkpoint: a part has neither a region nor memory");
    if (part.region != nullptr)
      all.emplace_back(part.region->region, object);
    else
      all.emplace_back(object, part.memory, part.size_bytes);
  }
  const auto made = outcore::checkpoint(name, all, taken);
  if (!made) return outcome(made.error());
  if (pause_ns != nullptr) *pause_ns = made->pause_ns;
  return 0;
}

}  // namespace

int oc_checkpoint(const char* name, const oc_checkpoint_part* parts, size_t count,
                  const oc_checkpoint_options* options, uint64_t* pause_ns) {
  if (pause_ns != nullptr) *pause_ns = 0;
  if (name == nullptr) return fail_null("oc_checkpoint", "name");
  if (parts == nullptr && count != 0) return fail_null("oc_checkpoint", "parts");
  return guarded("oc_checkpoint", [&] { return make(name, parts, count, options, pause_ns); });
}

int oc_restart(const char* pool, const char* name, oc_restarted** last) {
  if (last == nullptr) return fail_null("oc_restart", "last");
  *last = nullptr;
  if (pool == nullptr) return fail_null("oc_restart", "pool");
  return guarded("oc_restart", [&] {
    auto found = outcore::restart(pool, name == nullptr ? "" : name);
    if (!found) return outcome(found.error());
    *last = new oc_restarted{std::move(found).value()};
    return 0;
  });
}

void oc_restarted_free(oc_restarted* last) { delete last; }

const char* oc_restarted_name(const oc_restarted* last) {
  return last == nullptr ? "" : last->last.checkpoint().name.c_str();
}

int oc_restarted_size(const oc_restarted* last, const char* object, uint64_t* size_bytes) {
  if (last == nullptr) return fail_null("oc_restarted_size", "last");
  if (object == nullptr) return fail_null("oc_restarted_size", "object");
  if (size_bytes == nullptr) return fail_null("oc_restarted_size", "size_bytes");
  return guarded("oc_restarted_size", [&] {
    const auto size = last->last.size_of(object);
    if (!size) return outcome(size.error());
    *size_bytes = size.value();
    return 0;
  });
}

int oc_restarted_read(const oc_restarted* last, const char* object, void* into, size_t size_bytes) {
  if (last == nullptr) return fail_null("oc_restarted_read", "last");
  if (object == nullptr) return fail_null("oc_restarted_read", "object");
  if (into == nullptr) return fail_null("oc_restarted_read", "into");
  return guarded("oc_restarted_read", [&] {
    return outcome(last->last.read(object, {static_cast<std::byte*>(into), size_bytes}));
  });
}
