// The module outcore._core: Runtime, Region, Lease and Memory for the Python code in outcore/.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <utility>

#include "outcore/forks.h"
#include "outcore/runtime.h"
#include "outcore/store_catalog.h"
#include "python/src/arrays_module.h"
#include "python/src/checkpoint_module.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/lease.h"
#include "python/src/metrics.h"
#include "python/src/options.h"
#include "python/src/region.h"
#include "python/src/runtime_handle.h"

namespace nb = nanobind;

namespace outcore::python {
namespace {

// Ends its threads. Taken with the GIL held: to every other thread it is closed from here on.
void give_up(std::shared_ptr<Runtime>& runtime) {
  auto gone = std::move(runtime);
  const WithoutGil released;
  gone.reset();
}

// What work(runtime) returns, without the GIL. Another thread may close the handle meanwhile.
template <class Work>
auto without_gil(const RuntimeHandle& handle, Work work) {
  auto runtime = handle.runtime;
  const WithoutGil released;
  const auto kept = std::move(runtime);  // if it is the last one, it ends without the GIL, too
  return work(*kept);
}

// `parents`: instead of which one it is, in a forked child; or nullptr.
std::unique_ptr<RuntimeHandle> start(const nb::dict& options,
                                     const std::shared_ptr<Runtime> parents) {
  const RuntimeOptions o = runtime_options_of(options);
  auto runtime = [&] {
    const WithoutGil released;
    return parents == nullptr ? Runtime::start(o) : start_after_fork(*parents, o);
  }();
  if (!runtime) raise(runtime.error(), "outcore runtime", Blame::kArgument);
  auto handle = std::make_unique<RuntimeHandle>();
  handle->runtime = std::make_shared<Runtime>(std::move(runtime).value());
  return handle;
}

// A URI comes as bytes: a file's name may be any.
std::unique_ptr<RegionHandle> map(const RuntimeHandle& handle, const nb::bytes& uri_bytes,
                                  const nb::dict& options) {
  const std::string uri(uri_bytes.c_str(), uri_bytes.size());
  handle.check("map");
  const MapOptions o = map_options_of(options);
  const std::shared_ptr<Runtime> runtime = handle.runtime;
  auto region = [&] {
    const WithoutGil released;
    return runtime->map(uri, o);
  }();
  if (!region) raise(region.error(), without_password(uri), Blame::kArgument);
  return std::make_unique<RegionHandle>(runtime, std::move(region).value(), o.offset);
}

nb::bytes shown_of(const nb::bytes& uri) {
  const std::string shown = without_password({uri.c_str(), uri.size()});
  return nb::bytes(shown.data(), shown.size());
}

uint64_t store_size(const nb::bytes& uri_bytes) {
  const std::string uri(uri_bytes.c_str(), uri_bytes.size());
  auto size = [&]() -> Result<uint64_t> {
    const WithoutGil released;
    auto store = open_store(uri);
    if (!store) return store.error();
    return store.value()->size_bytes();
  }();
  if (!size) raise(size.error(), without_password(uri), Blame::kArgument);
  return size.value();
}

Metrics metrics_of(const RuntimeHandle& handle) {
  handle.check("stats");
  return without_gil(handle, [](Runtime& runtime) { return runtime.metrics(); });
}

}  // namespace
}  // namespace outcore::python

NB_MODULE(_core, m) {
  using namespace outcore::python;
  nb::set_leak_warnings(false);  // arrays may outlive the interpreter: they are flushed at exit
  m.doc() = "The compiled part of outcore; use the package outcore.";
  static_cast<void>(fork_count());
  nb::class_<RuntimeHandle>(m, "Runtime", nb::is_weak_referenceable())
      .def("__init__",
           [](RuntimeHandle* self, const nb::dict& options) {
             new (self) RuntimeHandle(*start(options, nullptr));
           })
      .def("start_after_fork", [](const RuntimeHandle& r,
                                  const nb::dict& options) { return start(options, r.runtime); })
      .def("map", &map)
      .def_prop_ro("is_inherited", [](const RuntimeHandle& r) { return r.forks != fork_count(); })
      .def_prop_ro("budget_bytes",
                   [](const RuntimeHandle& r) {
                     r.check("budget");
                     return r.runtime->budget_bytes();
                   })
      .def_prop_ro("is_open", [](const RuntimeHandle& r) { return r.runtime != nullptr; })
      // By a region, a drain, or a call of another thread.
      .def_prop_ro("is_used", [](const RuntimeHandle& r) { return r.runtime.use_count() > 1; })
      .def("resize_budget",
           [](const RuntimeHandle& r, uint64_t bytes) {
             r.check("resize the budget");
             require(without_gil(r, [&](auto& runtime) { return runtime.resize_budget(bytes); }),
                     "budget", Blame::kArgument);
           })
      .def("shorten",
           [](const RuntimeHandle& r, const nb::bytes& uri_bytes, uint64_t bytes) {
             r.check("shorten");
             const std::string uri(uri_bytes.c_str(), uri_bytes.size());
             require(without_gil(r, [&](auto& runtime) { return runtime.shorten(uri, bytes); }),
                     uri, Blame::kStore);
           })
      .def("describe_options",
           [](const RuntimeHandle& r) {
             r.check("options");
             return r.runtime->describe_options();
           })
      .def("start_recording",
           [](const RuntimeHandle& r) {
             r.check("start_recording");
             require(without_gil(r, [](auto& runtime) { return runtime.start_recording(); }),
                     "outcore runtime", Blame::kStore);
           })
      .def("stop_recording",
           [](const RuntimeHandle& r) {
             r.check("stop_recording");
             const auto record =
                 without_gil(r, [](auto& runtime) { return runtime.stop_recording(); });
             if (!record) raise(record.error(), "outcore runtime", Blame::kStore);
             return record.value();
           })
      .def("metrics", [](const RuntimeHandle& r) { return dict_of(metrics_of(r)); })
      .def("to_json", [](const RuntimeHandle& r) { return metrics_of(r).to_json(); })
      .def("to_text", [](const RuntimeHandle& r) { return metrics_of(r).to_text(); })
      .def("end", [](RuntimeHandle& r) { give_up(r.runtime); });
  m.def("store_size", &store_size);
  m.def("without_password", &shown_of);
  m.def("fork_count", &fork_count);
  add_region(m);
  add_lease(m);
  add_facts(m);
  add_checkpoints(m);
  add_arrays(m);
  add_drain(m);
}
