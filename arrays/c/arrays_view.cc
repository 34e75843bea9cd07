// Arrays as memory, in C. See outcore/arrays_c.h.
#include <memory>

#include "arrays/c/arrays_handle.h"

using outcore::Arrays;
using outcore::ArrayType;
using outcore::Dims;
using namespace outcore::c;

namespace {

// The view that C code sees, and what keeps it alive.
struct View : oc_array_view {
  Dims its_dims, its_strides;
  pid_t process = ::getpid();
  std::shared_ptr<oc_runtime> lent;  // destroyed after the mapping
  std::shared_ptr<outcore::arrays::Mapping> mapping;
};

void describe(const void* data, View* view) {
  view->struct_bytes = sizeof(oc_array_view);
  view->data = data;
  view->dims = view->its_dims.data();
  view->strides = view->its_strides.data();
  view->dim_count = static_cast<uint32_t>(view->its_dims.size());
  view->count = 1;
  view->is_dense = 1;
  for (size_t d = view->its_dims.size(); d-- > 0; view->count *= view->its_dims[d])
    if (view->its_dims[d] != 1 && view->its_strides[d] != view->count) view->is_dense = 0;
}

}  // namespace

int oc_arrays_view(const oc_arrays* arrays, const char* name, const char* type, uint32_t dim_count,
                   const uint64_t* offsets, const uint64_t* dims, const oc_array_view** view) {
  if (view == nullptr) return fail_null("oc_arrays_view", "view");
  *view = nullptr;
  return on_array("oc_arrays_view", arrays, name, [&](const Arrays& all) {
    const std::string attempted = "oc_arrays_view '" + std::string(name) + "': ";
    if (type == nullptr) return fail_null("oc_arrays_view", "type");
    if (dim_count > OC_DIMS_MAX)
      return fail(EINVAL, attempted + std::to_string(dim_count) + " dimensions: at most " +
                              std::to_string(OC_DIMS_MAX) + " will do");
    if (dim_count > 0 && offsets == nullptr) return fail_null("oc_arrays_view", "offsets");
    if (dim_count > 0 && dims == nullptr) return fail_null("oc_arrays_view", "dims");
    const auto parsed = ArrayType::parse(type);
    if (!parsed) return fail(EINVAL, attempted + parsed.message());
    auto made = std::make_unique<View>();
    made->lent = arrays->lent;
    const void* data = nullptr;
    if (outcore::Status s = all.view_box(name, parsed.value(), Dims(offsets, offsets + dim_count),
                                         Dims(dims, dims + dim_count), &made->its_dims,
                                         &made->its_strides, &data, &made->mapping);
        !s)
      return outcome(s);
    describe(data, made.get());
    *view = made.release();
    return 0;
  });
}

// In a forked child the view, and all that it keeps, is the parent's.
void oc_array_view_free(const oc_array_view* view) {
  const auto* const made = static_cast<const View*>(view);
  if (made != nullptr && made->process == ::getpid()) delete made;
}
