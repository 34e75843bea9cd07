// Drains of containers of arrays, in C. See outcore/arrays_drain_c.h.
#include "outcore/arrays_drain.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/c/lent_runtime.h"
#include "core/c/outcome.h"
#include "core/c/sized_struct.h"
#include "outcore/arrays_drain_c.h"

using outcore::ArraysDrain;
using outcore::DrainOptions;
using outcore::DrainProgress;
using outcore::Error;
using outcore::Status;
using namespace outcore::c;

struct oc_arrays_drain {
  std::shared_ptr<oc_runtime> lent;  // destroyed after the drain
  ArraysDrain drain;
  std::string from;
  std::mutex waiting;  // C++'s wait() is for one thread
  const pid_t process = ::getpid();
};

namespace {

// The sizes of the structs in release 0.1: programs built with it must still work.
constexpr size_t kOptionsBytes = 48, kProgressBytes = 304;
static_assert(sizeof(oc_drain_options) == kOptionsBytes);
static_assert(sizeof(oc_drain_progress) == kProgressBytes);

constexpr uint64_t kWaitMsMax = uint64_t{1} << 40;  // 34 years: clocks cannot count 2^64 ms

Status take_options(const oc_drain_options& taken, DrainOptions* into) {
  const std::string attempted = "oc_arrays_drain_start: ";
  if ((taken.names == nullptr) != (taken.name_count == 0))
    return Error{EINVAL, attempted + "give names and how many they are, or neither for all arrays"};
  if (taken.may_remove > 1 || taken.unused != 0)
    return Error{EINVAL, attempted + "may_remove = " + std::to_string(taken.may_remove) +
                             ": 0 or 1 will do; unused is 0"};
  for (size_t i = 0; i < taken.name_count; ++i) {
    if (taken.names[i] == nullptr)
      return Error{EINVAL, attempted + "names[" + std::to_string(i) + "] is NULL"};
    into->names.emplace_back(taken.names[i]);
  }
  into->bytes_per_second = taken.bytes_per_second;
  into->may_remove = taken.may_remove == 1;
  if (taken.runtime != nullptr) into->runtime = &taken.runtime->runtime;
  return {};
}

int start(const char* from, const char* to, const oc_drain_options* options,
          oc_arrays_drain** drain) {
  oc_drain_options taken;
  if (Status s = take_struct(options, kOptionsBytes, "oc_drain_options", &taken); !s)
    return outcome(s);
  DrainOptions how;
  if (Status s = take_options(taken, &how); !s) return outcome(s);
  std::shared_ptr<oc_runtime> lent = lend(taken.runtime);
  auto started = ArraysDrain::start(from, to, how);
  if (!started) return outcome(started.error());
  *drain = new oc_arrays_drain{std::move(lent), std::move(started).value(), from, {}};
  return 0;
}

// Calls call(), unless the handle is NULL or a forked child's. The child's copy of the drain's
// mutex may be locked for ever, so it is not touched.
template <typename Call>
int on_drain(const char* function, const oc_arrays_drain* drain, const Call& call) {
  if (drain == nullptr) return fail_null(function, "drain");
  return guarded(function, [&] {
    if (drain->process != ::getpid())
      return fail(EPERM, std::string(function) + ": the drain of " + drain->from +
                             " is of the parent of this process: start one here, when that has "
                             "ended");
    return call();
  });
}

}  // namespace

int oc_arrays_drain_start(const char* from, const char* to, const oc_drain_options* options,
                          oc_arrays_drain** drain) {
  if (drain == nullptr) return fail_null("oc_arrays_drain_start", "drain");
  *drain = nullptr;
  if (from == nullptr) return fail_null("oc_arrays_drain_start", "from");
  if (to == nullptr) return fail_null("oc_arrays_drain_start", "to");
  return guarded("oc_arrays_drain_start", [&] { return start(from, to, options, drain); });
}

int oc_arrays_drain_wait(oc_arrays_drain* drain) {
  return on_drain("oc_arrays_drain_wait", drain, [&] {
    const std::lock_guard<std::mutex> guard(drain->waiting);
    return outcome(drain->drain.wait());
  });
}

int oc_arrays_drain_wait_for(const oc_arrays_drain* drain, uint64_t wait_ms_max) {
  return on_drain("oc_arrays_drain_wait_for", drain,
                  [&] { return drain->drain.wait_for(std::min(wait_ms_max, kWaitMsMax)) ? 1 : 0; });
}

int oc_arrays_drain_progress(const oc_arrays_drain* drain, oc_drain_progress* progress) {
  return on_drain("oc_arrays_drain_progress", drain, [&] {
    if (progress == nullptr) return fail_null("oc_arrays_drain_progress", "progress");
    if (progress->struct_bytes < kProgressBytes)
      return fail(EINVAL, "oc_drain_progress.struct_bytes is " +
                              std::to_string(progress->struct_bytes) +
                              ": start the struct with oc_drain_progress_init()");
    oc_drain_progress told;
    oc_drain_progress_init(&told);
    told.has_ended = drain->drain.wait_for(0) ? 1 : 0;  // first: then the rest is its last
    const DrainProgress now = drain->drain.progress();
    told.arrays = now.arrays;
    told.arrays_done = now.arrays_done;
    told.bytes = now.bytes;
    told.bytes_done = now.bytes_done;
    std::memcpy(told.array, now.array.data(), std::min(now.array.size(), sizeof told.array - 1));
    give_struct(told, progress);
    return 0;
  });
}

int oc_arrays_drain_cancel(oc_arrays_drain* drain) {
  return on_drain("oc_arrays_drain_cancel", drain, [&] {
    drain->drain.cancel();
    return 0;
  });
}

// In a forked child the drain, and all that it keeps, is the parent's.
void oc_arrays_drain_free(oc_arrays_drain* drain) {
  if (drain != nullptr && drain->process == ::getpid()) delete drain;
}
