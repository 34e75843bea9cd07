// Named arrays in C: open and close, store and load. See outcore/arrays_c.h.
#include "outcore/arrays.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "arrays/c/arrays_handle.h"
#include "core/c/lent_runtime.h"
#include "core/c/sized_struct.h"
#include "core/c/texts.h"

using outcore::ArrayDamage;
using outcore::ArrayOptions;
using outcore::Arrays;
using outcore::ArraysMode;
using outcore::ArraysOptions;
using outcore::ArrayType;
using outcore::Communicator;
using outcore::Dims;
using outcore::Error;
using outcore::Order;
using outcore::Result;
using outcore::Status;
using namespace outcore::c;

namespace {

// The sizes of the structs in release 0.1: programs built with it must still work.
constexpr size_t kCommunicatorBytes = 32, kArraysOptionsBytes = 16, kArrayOptionsBytes = 24;
static_assert(sizeof(oc_communicator) == kCommunicatorBytes);
static_assert(sizeof(oc_arrays_options) == kArraysOptionsBytes);
static_assert(sizeof(oc_array_options) == kArrayOptionsBytes + 8);  // `compress` was added
static_assert(OC_ARRAYS_UPDATE == static_cast<int>(ArraysMode::kUpdate));
static_assert(OC_ORDER_COLUMN == static_cast<int>(Order::kColumn));

// So many closed handles are remembered, so that a call on one of them gets a clear error.
constexpr size_t kClosedMax = 1024;
std::array<std::atomic<oc_arrays*>, kClosedMax> closed;
std::atomic<size_t> closed_count{0};

void keep_closed(oc_arrays* handle) { delete closed[closed_count++ % kClosedMax].exchange(handle); }

Status take_communicator(const oc_communicator* from, Communicator* into) {
  if (from == nullptr) return {};
  oc_communicator taken;
  if (Status s = take_struct(from, kCommunicatorBytes, "oc_communicator", &taken); !s) return s;
  into->rank = taken.rank;
  into->size = taken.size;
  if (taken.any != nullptr)
    into->any = [any = taken.any, context = taken.context](bool has_failed) {
      return any(context, has_failed ? 1 : 0) != 0;
    };
  return {};
}

Status take_options(const oc_array_options* from, uint32_t dim_count, ArrayOptions* into) {
  oc_array_options taken;
  if (Status s = take_struct(from, kArrayOptionsBytes, "oc_array_options", &taken); !s) return s;
  if (taken.order > OC_ORDER_COLUMN)
    return Error{EINVAL, "oc_array_options: order = " + std::to_string(taken.order) +
                             ": OC_ORDER_ROW (0) or OC_ORDER_COLUMN (1) will do"};
  if (taken.may_replace > 1)
    return Error{EINVAL, "oc_array_options: may_replace = " + std::to_string(taken.may_replace) +
                             ": 0 or 1 will do"};
  into->order = static_cast<Order>(taken.order);
  if (taken.tiles != nullptr) into->tiles.assign(taken.tiles, taken.tiles + dim_count);
  into->may_replace = taken.may_replace == 1;
  if (taken.compress != nullptr) into->compress = taken.compress;
  return {};
}

int open(const char* uri, uint32_t mode, const oc_communicator* together,
         const oc_arrays_options* options, oc_arrays** arrays) {
  if (mode > OC_ARRAYS_UPDATE)
    return fail(EINVAL, "oc_arrays_open: mode = " + std::to_string(mode) +
                            ": OC_ARRAYS_READ (0), OC_ARRAYS_WRITE (1) or OC_ARRAYS_UPDATE (2) "
                            "will do");
  Communicator all;
  if (Status s = take_communicator(together, &all); !s) return outcome(s);
  oc_arrays_options taken;
  if (Status s = take_struct(options, kArraysOptionsBytes, "oc_arrays_options", &taken); !s)
    return outcome(s);
  auto handle = std::make_unique<oc_arrays>();
  handle->lent = lend(taken.runtime);
  ArraysOptions how;
  if (taken.runtime != nullptr) how.runtime = &taken.runtime->runtime;
  auto opened = Arrays::open(uri, static_cast<ArraysMode>(mode), all, how);
  if (!opened) return outcome(opened.error());
  handle->arrays.emplace(std::move(opened).value());
  handle->uri = handle->arrays->uri();
  *arrays = handle.release();
  return 0;
}

// Closes the handle by `end`, whatever `end` returns.
template <typename End>
int end_by(const char* function, oc_arrays* arrays, const End& end) {
  bool is_ended = false;
  const int result = on_arrays(function, arrays, [&](Arrays& all) {
    is_ended = true;
    return end(all);
  });
  if (!is_ended) return result;
  arrays->arrays.reset();
  arrays->lent.reset();
  keep_closed(arrays);
  return result;
}

bool has_elements(uint32_t dim_count, const uint64_t* dims) {
  return std::find(dims, dims + dim_count, uint64_t{0}) == dims + dim_count;
}

// Checks the arguments of a call that transfers elements, except the array itself. 0: they are
// valid.
int check(const char* function, const char* type, uint32_t dim_count, const uint64_t* dims) {
  if (type == nullptr) return fail_null(function, "type");
  if (dim_count > OC_DIMS_MAX)
    return fail(EINVAL, std::string(function) + ": " + std::to_string(dim_count) +
                            " dimensions: at most " + std::to_string(OC_DIMS_MAX) + " will do");
  return dims == nullptr && dim_count > 0 ? fail_null(function, "dims") : 0;
}

Result<ArrayType> parse(const char* function, const char* name, const char* type) {
  auto parsed = ArrayType::parse(type);
  if (parsed) return parsed;
  return Error{EINVAL, std::string(function) + " '" + name + "': " + parsed.message()};
}

// Calls move(Arrays&, type, offsets, dims) for a box in the program's memory.
template <typename Handle, typename Move>
int on_box(const char* function, Handle* handle, const char* name, const char* type,
           const void* memory, const char* what, uint32_t dim_count, const uint64_t* offsets,
           const uint64_t* dims, const Move& move) {
  return on_array(function, handle, name, [&](auto& arrays) {
    if (const int refused = check(function, type, dim_count, dims); refused != 0) return refused;
    if (offsets == nullptr && dim_count > 0) return fail_null(function, "offsets");
    if (memory == nullptr && has_elements(dim_count, dims)) return fail_null(function, what);
    const auto parsed = parse(function, name, type);
    if (!parsed) return outcome(parsed.error());
    return outcome(move(arrays, parsed.value(), Dims(offsets, offsets + dim_count),
                        Dims(dims, dims + dim_count)));
  });
}

}  // namespace

int oc_arrays_open(const char* uri, uint32_t mode, const oc_communicator* together,
                   const oc_arrays_options* options, oc_arrays** arrays) {
  if (arrays == nullptr) return fail_null("oc_arrays_open", "arrays");
  *arrays = nullptr;
  if (uri == nullptr) return fail_null("oc_arrays_open", "uri");
  return guarded("oc_arrays_open", [&] { return open(uri, mode, together, options, arrays); });
}

int oc_arrays_verify(const oc_arrays* arrays, const char* name, uint64_t* damages) {
  return on_arrays("oc_arrays_verify", arrays, [&](const Arrays& all) {
    std::string first;
    const auto found = all.verify(name == nullptr ? "" : name, [&](const ArrayDamage& damage) {
      const std::string what = damage.array.empty() ? all.uri() : "'" + damage.array + "'";
      if (first.empty()) first = what + " is damaged: " + damage.where;
    });
    if (!found) return fail(found.code(), "oc_arrays_verify: " + found.message());
    if (damages != nullptr) *damages = found->damages;
    if (found->damages == 0) return 0;
    return fail(EIO, "oc_arrays_verify: " + first + ": go back to a copy of it");
  });
}
int oc_arrays_flush(oc_arrays* arrays) {
  return on_arrays("oc_arrays_flush", arrays, [](Arrays& all) { return outcome(all.flush()); });
}

int oc_arrays_close(oc_arrays* arrays) {
  return end_by("oc_arrays_close", arrays, [](Arrays& all) { return outcome(all.close()); });
}

int oc_arrays_abort(oc_arrays* arrays) {
  return end_by("oc_arrays_abort", arrays, [](Arrays& all) {
    all.abort();
    return 0;
  });
}

const char* oc_arrays_uri(const oc_arrays* arrays) {
  return arrays == nullptr || !arrays->arrays.has_value() ? "" : arrays->uri.c_str();
}

int oc_arrays_describe(const oc_arrays* arrays, char* buffer, size_t size_bytes,
                       size_t* needed_bytes) {
  return on_arrays("oc_arrays_describe", arrays, [&](const Arrays& all) {
    return give_text("oc_arrays_describe", all.describe(), buffer, size_bytes, needed_bytes);
  });
}

int oc_arrays_alloc(oc_arrays* arrays, const char* name, const char* type, uint32_t dim_count,
                    const uint64_t* dims, const oc_array_options* options) {
  return on_array("oc_arrays_alloc", arrays, name, [&](Arrays& all) {
    if (const int refused = check("oc_arrays_alloc", type, dim_count, dims); refused != 0)
      return refused;
    ArrayOptions how;
    if (Status s = take_options(options, dim_count, &how); !s) return outcome(s);
    const auto parsed = parse("oc_arrays_alloc", name, type);
    if (!parsed) return outcome(parsed.error());
    return outcome(all.alloc(name, parsed.value(), Dims(dims, dims + dim_count), how));
  });
}

int oc_arrays_store(oc_arrays* arrays, const char* name, const char* type, const void* data,
                    uint32_t dim_count, const uint64_t* offsets, const uint64_t* dims) {
  return on_box("oc_arrays_store", arrays, name, type, data, "data", dim_count, offsets, dims,
                [&](Arrays& all, const ArrayType& of, const Dims& at, const Dims& box) {
                  return all.store_box(name, of, data, at, box);
                });
}

int oc_arrays_store_whole(oc_arrays* arrays, const char* name, const char* type, const void* data,
                          uint32_t dim_count, const uint64_t* dims,
                          const oc_array_options* options) {
  return on_box("oc_arrays_store_whole", arrays, name, type, data, "data", dim_count, dims, dims,
                [&](Arrays& all, const ArrayType& of, const Dims&, const Dims& shape) {
                  ArrayOptions how;
                  const Status s = take_options(options, dim_count, &how);
                  return s.ok() ? all.store_whole(name, of, shape, data, how) : s;
                });
}

int oc_arrays_store_text(oc_arrays* arrays, const char* name, const char* text) {
  return on_array("oc_arrays_store_text", arrays, name, [&](Arrays& all) {
    if (text == nullptr) return fail_null("oc_arrays_store_text", "text");
    return outcome(all.store(name, text));
  });
}

int oc_arrays_load(const oc_arrays* arrays, const char* name, const char* type, void* into,
                   uint32_t dim_count, const uint64_t* offsets, const uint64_t* dims) {
  return on_box("oc_arrays_load", arrays, name, type, into, "into", dim_count, offsets, dims,
                [&](const Arrays& all, const ArrayType& of, const Dims& at, const Dims& box) {
                  return all.load_box(name, of, into, at, box);
                });
}

int oc_arrays_load_whole(const oc_arrays* arrays, const char* name, const char* type, void* into,
                         uint64_t size_bytes) {
  return on_array("oc_arrays_load_whole", arrays, name, [&](const Arrays& all) {
    if (const int refused = check("oc_arrays_load_whole", type, 0, nullptr); refused != 0)
      return refused;
    if (into == nullptr && size_bytes > 0) return fail_null("oc_arrays_load_whole", "into");
    const auto parsed = parse("oc_arrays_load_whole", name, type);
    if (!parsed) return outcome(parsed.error());
    const auto room = [&](const outcore::ArrayInfo& info) -> outcore::Result<void*> {
      const uint64_t has_bytes = bytes_of(info);
      if (has_bytes == size_bytes) return into;
      return outcore::Error{EINVAL, "load '" + std::string(name) + "': it has " +
                                        std::to_string(has_bytes) + " bytes, not " +
                                        std::to_string(size_bytes)};
    };
    return outcome(all.load_whole(name, parsed.value(), room));
  });
}

int oc_arrays_load_text(const oc_arrays* arrays, const char* name, char* buffer, size_t size_bytes,
                        size_t* needed_bytes) {
  return on_array("oc_arrays_load_text", arrays, name, [&](const Arrays& all) {
    const auto text = all.load<std::string>(name);
    if (!text) return outcome(text.error());
    return give_text("oc_arrays_load_text", text.value(), buffer, size_bytes, needed_bytes);
  });
}
