// Which arrays a container has, their names and attributes, in C. See outcore/arrays_c.h.
#include <algorithm>
#include <iterator>
#include <vector>

#include "arrays/c/arrays_handle.h"
#include "core/c/sized_struct.h"
#include "core/c/texts.h"

using outcore::ArrayInfo;
using outcore::Arrays;
using namespace outcore::c;

struct oc_names {
  std::vector<std::string> names;
};

namespace {

constexpr size_t kInfoBytes = 5 * 8 + 2 * 8 * OC_DIMS_MAX + 32 + 256;  // of release 0.1
static_assert(sizeof(oc_array_info) == kInfoBytes + 32);               // `compress` was added

// REQUIRES: it fits, as all names and types do.
template <size_t n>
void copy(const std::string& text, char (&into)[n]) {
  text.copy(into, n - 1);
}

int give(const ArrayInfo& from, oc_array_info* into) {
  oc_array_info info{};
  if (from.dims.size() > OC_DIMS_MAX)  // no release writes so many
    return fail(EOVERFLOW, "look at '" + from.name + "': it has more than " +
                               std::to_string(OC_DIMS_MAX) + " dimensions");
  info.size_bytes = bytes_of(from);
  info.stored_bytes = from.size_bytes;
  info.element_bytes = from.type.size_bytes;
  info.dim_count = static_cast<uint32_t>(from.dims.size());
  info.order = static_cast<uint32_t>(from.order);
  info.is_tiled = from.tiles.empty() ? 0 : 1;
  std::copy(from.dims.begin(), from.dims.end(), std::begin(info.dims));
  std::copy(from.tiles.begin(), from.tiles.end(), std::begin(info.tiles));
  copy(from.type.name, info.type);
  copy(from.name, info.name);
  copy(from.compress, info.compress);
  give_struct(info, into);
  return 0;
}

std::string text_or_none(const char* text) { return text == nullptr ? "" : text; }

}  // namespace

int oc_arrays_info(const oc_arrays* arrays, const char* name, oc_array_info* info) {
  return on_array("oc_arrays_info", arrays, name, [&](const Arrays& all) {
    if (info == nullptr) return fail_null("oc_arrays_info", "info");
    if (info->struct_bytes < kInfoBytes)
      return fail(EINVAL, "oc_arrays_info: info->struct_bytes is " +
                              std::to_string(info->struct_bytes) +
                              ": start the struct with oc_array_info_init()");
    const auto found = all.info(name);
    return found ? give(found.value(), info) : outcome(found.error());
  });
}

int oc_arrays_has(const oc_arrays* arrays, const char* name) {
  if (arrays == nullptr || name == nullptr || !arrays->arrays.has_value()) return 0;
  bool has = false;
  const int result = guarded("oc_arrays_has", [&] {
    has = arrays->process == ::getpid() && arrays->arrays->has(name);
    return 0;
  });
  return result == 0 && has ? 1 : 0;
}

int oc_arrays_list(const oc_arrays* arrays, oc_names** names) {
  if (names == nullptr) return fail_null("oc_arrays_list", "names");
  *names = nullptr;
  return on_arrays("oc_arrays_list", arrays, [&](const Arrays& all) {
    auto made = std::make_unique<oc_names>();
    for (ArrayInfo& info : all.list()) made->names.push_back(std::move(info.name));
    *names = made.release();
    return 0;
  });
}

size_t oc_names_count(const oc_names* names) { return names == nullptr ? 0 : names->names.size(); }

const char* oc_names_at(const oc_names* names, size_t index) {
  return index < oc_names_count(names) ? names->names[index].c_str() : nullptr;
}

void oc_names_free(oc_names* names) { delete names; }

int oc_arrays_rename(oc_arrays* arrays, const char* from, const char* to) {
  return on_arrays("oc_arrays_rename", arrays, [&](Arrays& all) {
    if (from == nullptr) return fail_null("oc_arrays_rename", "from");
    if (to == nullptr) return fail_null("oc_arrays_rename", "to");
    return outcome(all.rename(from, to));
  });
}

int oc_arrays_remove(oc_arrays* arrays, const char* name) {
  return on_array("oc_arrays_remove", arrays, name,
                  [&](Arrays& all) { return outcome(all.remove(name)); });
}

int oc_arrays_set_attribute(oc_arrays* arrays, const char* name, const char* key,
                            const char* text) {
  return on_arrays("oc_arrays_set_attribute", arrays, [&](Arrays& all) {
    if (key == nullptr) return fail_null("oc_arrays_set_attribute", "key");
    return outcome(all.set_attribute(text_or_none(name), key, text_or_none(text)));
  });
}

int oc_arrays_attribute(const oc_arrays* arrays, const char* name, const char* key, char* buffer,
                        size_t size_bytes, size_t* needed_bytes) {
  return on_arrays("oc_arrays_attribute", arrays, [&](const Arrays& all) {
    if (key == nullptr) return fail_null("oc_arrays_attribute", "key");
    const auto text = all.attribute(text_or_none(name), key);
    if (!text) return outcome(text.error());
    return give_text("oc_arrays_attribute", text.value(), buffer, size_bytes, needed_bytes);
  });
}

int oc_arrays_attributes(const oc_arrays* arrays, const char* name, oc_names** keys) {
  if (keys == nullptr) return fail_null("oc_arrays_attributes", "keys");
  *keys = nullptr;
  return on_arrays("oc_arrays_attributes", arrays, [&](const Arrays& all) {
    auto found = all.attributes(text_or_none(name));
    if (!found) return outcome(found.error());
    *keys = new oc_names{std::move(found).value()};
    return 0;
  });
}
