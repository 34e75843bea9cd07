// The methods of outcore._core.Region.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <vector>

#include "python/src/metrics.h"
#include "python/src/options.h"
#include "python/src/region.h"

namespace outcore::python {

namespace nb = nanobind;
using namespace nanobind::literals;

namespace {

nb::bytes read_bytes(RegionHandle& r, uint64_t offset, size_t size_bytes) {
  nb::object into = nb::steal(PyBytes_FromStringAndSize(nullptr, size_bytes));
  if (!into.is_valid()) throw nb::python_error();
  auto* const to = reinterpret_cast<std::byte*>(PyBytes_AS_STRING(into.ptr()));
  const auto read = [=](Region& g) { return g.read(offset, {to, size_bytes}); };
  r.check("read");
  r.is_resident(offset, size_bytes) ? r.run("read", Blame::kStore, read)
                                    : r.run_long("read", Blame::kStore, read, into);
  return nb::borrow<nb::bytes>(into);
}

void write_bytes(RegionHandle& r, uint64_t offset, const nb::bytes& from) {
  const std::span bytes{reinterpret_cast<const std::byte*>(from.data()), from.size()};
  r.run("write", Blame::kStore, [&](Region& g) { return g.write(offset, bytes); });
}

using Offsets = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

using H = RegionHandle;

void add_facts(nb::class_<H>& region) {
  region
      .def_prop_ro("address",
                   [](const H& r) { return reinterpret_cast<uintptr_t>(r.region().data()); })
      .def_prop_ro("size_bytes", [](const H& r) { return r.region().size_bytes(); })
      .def_prop_ro("page_bytes", [](const H& r) { return r.region().page_bytes(); })
      .def_prop_ro("start", &H::start)
      .def_prop_ro("uri", [](const H& r) { return text_of(r.uri()); })
      .def_prop_ro("access", [](const H& r) { return word_of(r.region().access()); })
      .def_prop_ro("delivery", [](const H& r) { return word_of(r.region().delivery()); })
      .def_prop_ro("frames", [](const H& r) { return word_of(r.region().frames()); })
      .def_prop_ro("is_open", &H::is_open)
      .def_prop_ro("is_inherited", &H::is_inherited)
      .def_prop_ro("is_writable", &H::is_writable)
      .def_prop_ro("is_shared", [](const H& r) { return r.region().is_shared(); })
      .def_prop_ro("exports", &H::exports)
      .def_prop_ro("is_mapped", &H::is_mapped)
      .def("residency", &H::residency)
      .def("metrics", [](H& r) {
        RegionMetrics metrics;
        r.run("metrics", Blame::kStore, [&](Region& g) {
          metrics = g.metrics();
          return Status();
        });
        return dict_of(metrics);
      });
}

void add_ranges(nb::class_<H>& region) {
  const auto in_range = [](const char* what, Blame blame,
                           Status (Region::*call)(uint64_t, uint64_t)) {
    return [=](H& r, uint64_t offset, uint64_t size_bytes) {
      r.run_long(what, blame, [=](Region& g) { return (g.*call)(offset, size_bytes); });
    };
  };
  // Not interrupted: whoever goes on after Ctrl-C has to know what is pinned, and that nothing is
  // discarded later that he has written since.
  const auto at_once = [](const char* what, Status (Region::*call)(uint64_t, uint64_t)) {
    return [=](H& r, uint64_t offset, uint64_t size_bytes) {
      r.run(what, Blame::kArgument, [&](Region& g) { return (g.*call)(offset, size_bytes); });
    };
  };
  using Ranged = Status (Region::*)(uint64_t, uint64_t);
  region.def("pin", at_once("pin", &Region::pin))
      .def("unpin", at_once("unpin", &Region::unpin))
      .def("prefault", in_range("prefault", Blame::kStore, &Region::prefault))
      .def("prefetch",
           in_range("prefetch", Blame::kArgument, static_cast<Ranged>(&Region::prefetch)))
      .def("flush", in_range("flush", Blame::kStore, static_cast<Ranged>(&Region::flush)))
      .def("discard", at_once("discard", &Region::discard))
      .def("prefetch_list",
           [](H& r, const Offsets& offsets) {
             const uint64_t page_bytes = r.region().page_bytes(), start = r.start();
             std::vector<uint64_t> pages(offsets.size());
             for (size_t i = 0; i < pages.size(); ++i)
               pages[i] = (start + offsets.data()[i]) / page_bytes - start / page_bytes;
             r.run("prefetch", Blame::kArgument,
                   [&](Region& g) { return g.prefetch(std::span<const uint64_t>(pages)); });
           })
      .def("ensure", &H::ensure)
      .def("bring",
           [](H& r, const Offsets& offsets, unsigned threads) {
             r.bring({offsets.data(), offsets.data() + offsets.size()}, threads);
           })
      .def("advise",
           [](H& r, uint64_t offset, uint64_t size_bytes, const std::string& word) {
             const Advice advice = advice_of(word);
             r.run_long("advise", Blame::kStore,
                        [=](Region& g) { return g.advise(offset, size_bytes, advice); });
           })
      .def("read", &read_bytes)
      .def("write", &write_bytes);
}

void add_calls(nb::class_<H>& region) {
  region.def("check", &H::check, "what"_a)
      .def("sync",
           [](H& r) { r.run_long("sync", Blame::kStore, [](Region& g) { return g.sync(); }); })
      .def("grow",
           [](H& r, uint64_t size_bytes) {
             r.run("grow", Blame::kArgument, [&](Region& g) { return g.grow(size_bytes); });
           })
      .def("retry_failed",
           [](H& r) { r.run("retry", Blame::kStore, [](Region& g) { return g.retry_failed(); }); })
      .def("unmap", &H::unmap, "force"_a = false)
      .def("end_at_exit", &H::end_at_exit)
      .def("close_when_unused", &H::close_when_unused);
}

}  // namespace

void add_region(nb::module_& m) {
  nb::class_<H> region(m, "Region", nb::is_weak_referenceable());
  add_facts(region);
  add_ranges(region);
  add_calls(region);
}

}  // namespace outcore::python
