// The runtime and its reservations in the C API. See outcore.h.
#include <string>

#include "core/c/handles.h"
#include "core/c/options.h"
#include "core/c/outcome.h"
#include "outcore/outcore.h"

using outcore::Reservation;
using outcore::Result;
using outcore::Runtime;
using outcore::RuntimeOptions;
using outcore::Status;
using namespace outcore::c;

const char* oc_version(void) { return outcore::version(); }

int oc_start(const oc_options* options, oc_runtime** runtime) {
  if (runtime == nullptr) return fail_null("oc_start", "runtime");
  *runtime = nullptr;
  return guarded("oc_start", [&] {
    RuntimeOptions taken;
    if (const Status status = take_options(options, &taken); !status) return outcome(status);
    Result<Runtime> started = Runtime::start(taken);
    if (!started) return outcome(started.error());
    *runtime = new oc_runtime(std::move(started).value());
    return 0;
  });
}

int oc_stop(oc_runtime* runtime) {
  if (runtime == nullptr) return fail_null("oc_stop", "runtime");
  return guarded("oc_stop", [&] {
    {
      const outcore::os::Locked locked(runtime->mutex);
      const size_t regions = runtime->regions.size(), reservations = runtime->reservation_count;
      if (regions + reservations != 0)
        return fail(EBUSY, "oc_stop: the runtime still has " + std::to_string(regions) +
                               " region(s) and " + std::to_string(reservations) +
                               " reservation(s): oc_unmap and oc_release them first");
      if (runtime->heap_count != 0)
        return fail(EBUSY, "oc_stop: the runtime still has " + std::to_string(runtime->heap_count) +
                               " heap(s): oc_heap_destroy them first");
      if (runtime->container_count != 0)
        return fail(EBUSY, "oc_stop: " + std::to_string(runtime->container_count) +
                               " container(s) of arrays, views or drains of them still have "
                               "the runtime: oc_arrays_drain_free, oc_arrays_close, "
                               "oc_array_view_free them first");
    }
    delete runtime;
    return 0;
  });
}

int oc_resize_budget(oc_runtime* runtime, uint64_t bytes) {
  if (runtime == nullptr) return fail_null("oc_resize_budget", "runtime");
  return guarded("oc_resize_budget",
                 [&] { return outcome(runtime->runtime.resize_budget(bytes)); });
}

uint64_t oc_budget(const oc_runtime* runtime) {
  return runtime == nullptr ? 0 : runtime->runtime.budget_bytes();
}

int oc_reserve(oc_runtime* runtime, uint64_t size_bytes, oc_reservation** reservation) {
  if (reservation == nullptr) return fail_null("oc_reserve", "reservation");
  *reservation = nullptr;
  if (runtime == nullptr) return fail_null("oc_reserve", "runtime");
  return guarded("oc_reserve", [&] {
    auto handle = std::make_unique<oc_reservation>();
    Result<Reservation> reserved = runtime->runtime.reserve(size_bytes);
    if (!reserved) return outcome(reserved.error());
    handle->owner = runtime;
    handle->reservation = std::move(reserved).value();
    const outcore::os::Locked locked(runtime->mutex);
    ++runtime->reservation_count;
    *reservation = handle.release();
    return 0;
  });
}

void* oc_reservation_data(const oc_reservation* reservation) {
  return reservation == nullptr ? nullptr : reservation->reservation.data();
}

uint64_t oc_reservation_size(const oc_reservation* reservation) {
  return reservation == nullptr ? 0 : reservation->reservation.size_bytes();
}

int oc_release(oc_reservation* reservation) {
  if (reservation == nullptr) return fail_null("oc_release", "reservation");
  return guarded("oc_release", [&] {
    {
      const outcore::os::Locked locked(reservation->owner->mutex);
      const auto first = reinterpret_cast<uintptr_t>(reservation->reservation.data());
      for (const oc_region* region : reservation->owner->regions)
        if (region->address - first < reservation->reservation.size_bytes())
          return fail(EBUSY, "oc_release: the region of " + region->region.uri() +
                                 " is inside the reservation: oc_unmap it first");
      --reservation->owner->reservation_count;
    }
    delete reservation;
    return 0;
  });
}
