#include "core/c/options.h"

#include "core/c/sized_struct.h"

namespace outcore::c {
namespace {

// Sizes of the structs in release 0.1: programs built with it must still work.
constexpr size_t kOptionsBytes = 112, kMapOptionsBytes = 72;
static_assert(sizeof(oc_options) >= kOptionsBytes && sizeof(oc_map_options) >= kMapOptionsBytes);

// In C, enumerations count from 1 where 0 means "not set", and from 0 where the default is a value.
static_assert(OC_PRIVATE == static_cast<int>(Access::kPrivate));
static_assert(OC_ADVICE_COLD == static_cast<int>(Advice::kCold));
static_assert(OC_DELIVERY_MPROTECT == static_cast<int>(Delivery::kMprotect) + 1);
static_assert(OC_FRAMES_PRIVATE == static_cast<int>(FrameKind::kPrivate) + 1);
static_assert(OC_FETCH_PAGE == static_cast<int>(Fetch::kPage) + 1);
static_assert(OC_ON_ERROR_ABORT == static_cast<int>(OnError::kAbort) + 1);

Status check(uint32_t value, uint32_t value_max, const char* name, const char* values) {
  if (value <= value_max) return {};
  return Error{EINVAL,
               std::string(name) + " = " + std::to_string(value) + ": " + values + " will do"};
}

Status check_flag(uint32_t value, const char* name) { return check(value, 1, name, "0 or 1"); }

template <typename Enum>
void set_enum(uint32_t value, std::optional<Enum>* into) {
  if (value != 0) *into = static_cast<Enum>(value - 1);
}

template <typename Field, typename Value>
void set(Value value, std::optional<Field>* into) {
  if (value != Value{}) *into = value;
}

void set_or_zero(uint64_t value, std::optional<uint64_t>* into) {
  if (value != 0) *into = value == OC_ZERO ? 0 : value;
}

// The three options that both a runtime and a region have.
template <typename From, typename Into>
Status take_mechanism(const From& from, const std::string& name, Into* into) {
  if (Status s = check(from.delivery, OC_DELIVERY_MPROTECT, (name + ".delivery").c_str(),
                       "OC_DELIVERY_AUTO (1) … OC_DELIVERY_MPROTECT (4), or 0 for not set,");
      !s)
    return s;
  if (Status s = check(from.frames, OC_FRAMES_PRIVATE, (name + ".frames").c_str(),
                       "OC_FRAMES_AUTO (1) … OC_FRAMES_PRIVATE (3), or 0 for not set,");
      !s)
    return s;
  if (Status s = check(from.on_error, OC_ON_ERROR_ABORT, (name + ".on_error").c_str(),
                       "OC_ON_ERROR_SIGNAL (1) … OC_ON_ERROR_ABORT (3), or 0 for not set,");
      !s)
    return s;
  set_enum(from.delivery, &into->delivery);
  set_enum(from.frames, &into->frames);
  set_enum(from.on_error, &into->on_error);
  return {};
}

}  // namespace

Status take_options(const oc_options* from, RuntimeOptions* into) {
  oc_options o;
  if (Status s = take_struct(from, kOptionsBytes, "oc_options", &o); !s) return s;
  if (Status s = check_flag(o.ignore_environment, "oc_options.ignore_environment"); !s) return s;
  if (Status s = check_flag(o.adapts_budget, "oc_options.adapts_budget"); !s) return s;
  if (Status s = take_mechanism(o, "oc_options", into); !s) return s;
  if (Status s = check(o.fetch, OC_FETCH_PAGE, "oc_options.fetch",
                       "OC_FETCH_AUTO (1), OC_FETCH_PAGE (2), or 0 for not set,");
      !s)
    return s;
  set_enum(o.fetch, &into->fetch);
  set(o.budget_bytes, &into->budget_bytes);
  set(o.page_bytes, &into->page_bytes);
  set_or_zero(o.readahead_bytes, &into->readahead_bytes);
  set_or_zero(o.wait_ms_max, &into->wait_ms_max);
  set(o.policy, &into->policy);
  set(o.scratch_dir, &into->scratch_dir);
  set(o.metrics_at_exit, &into->metrics_at_exit);
  set(o.kernel, &into->kernel);
  set(o.keepers, &into->keepers);
  set(o.prefetch_threads, &into->prefetch_threads);
  set(o.event_threads, &into->event_threads);
  set(o.event_batch, &into->event_batch);
  set(o.high_watermark, &into->high_watermark);
  set(o.low_watermark, &into->low_watermark);
  set(o.checkpoint_keep, &into->checkpoint_keep);
  set(o.checkpoint_every_ms, &into->checkpoint_every_ms);
  set(o.checkpoint_pool, &into->checkpoint_pool);
  set(o.learn_file, &into->learn_file);
  set(o.buffer, &into->buffer);
  set(o.report_file, &into->report_file);
  set(o.budget_min_bytes, &into->budget_min_bytes);
  set(o.budget_max_bytes, &into->budget_max_bytes);
  into->adapts_budget = o.adapts_budget != 0;
  into->ignore_environment = o.ignore_environment != 0;
  return {};
}

Status take_options(const oc_map_options* from, MapOptions* into) {
  oc_map_options o;
  if (Status s = take_struct(from, kMapOptionsBytes, "oc_map_options", &o); !s) return s;
  if (Status s = check(o.access, OC_PRIVATE, "oc_map_options.access",
                       "OC_READ_ONLY (0), OC_READ_WRITE (1) or OC_PRIVATE (2)");
      !s)
    return s;
  if (Status s = check_flag(o.may_create, "oc_map_options.may_create"); !s) return s;
  if (Status s = take_advice(o.advice, &into->advice); !s)
    return Error{s.code(), "oc_map_options." + s.message()};
  if (Status s = take_mechanism(o, "oc_map_options", into); !s) return s;
  into->access = static_cast<Access>(o.access);
  into->offset = o.offset;
  into->size_bytes = o.size_bytes;
  into->may_create = o.may_create != 0;
  into->page_bytes = o.page_bytes;
  into->reserve_bytes = o.reserve_bytes;
  into->address = o.address;
  return {};
}

Status take_advice(uint32_t value, Advice* into) {
  *into = static_cast<Advice>(value);
  return check(value, OC_ADVICE_COLD, "advice", "OC_ADVICE_NORMAL (0) … OC_ADVICE_COLD (5)");
}

}  // namespace outcore::c
