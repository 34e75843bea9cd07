#include "python/src/metrics.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "outcore/runtime.h"
#include "python/src/gil.h"

namespace outcore::python {

namespace nb = nanobind;

namespace {

void add_to(nb::dict& dict, const Counters& counters) {
#define OUTCORE_KEY(name, unit, help) dict[#name] = counters.name;
  OUTCORE_COUNTERS(OUTCORE_KEY)
#undef OUTCORE_KEY
}

// Names of files may be any bytes.
nb::object value_of(const std::string& text) { return text_of(text); }
nb::object value_of(uint64_t number) { return nb::int_(number); }
nb::object value_of(bool is_so) { return nb::bool_(is_so); }

}  // namespace

nb::str text_of(const std::string& text) {
  PyObject* const str = PyUnicode_DecodeFSDefaultAndSize(text.data(), text.size());
  if (str == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(str);
}

nb::dict dict_of(const RegionMetrics& metrics) {
  nb::dict dict;
#define OUTCORE_KEY(name) dict[#name] = value_of(metrics.name);
  OUTCORE_REGION_FACTS(OUTCORE_KEY)
#undef OUTCORE_KEY
  dict["fetches"] = metrics.fetches.to_text(metrics.page_bytes);
  add_to(dict, metrics.counters);
  return dict;
}

nb::dict dict_of(const Metrics& metrics) {
  nb::dict dict;
  add_to(dict, metrics.counters);
#define OUTCORE_KEY(name, unit, help) dict[#name] = metrics.gauges.name;
  OUTCORE_GAUGES(OUTCORE_KEY)
#undef OUTCORE_KEY
  dict["fault_p50_ns"] = metrics.fault_latency.percentile_ns(0.5);
  dict["fault_p99_ns"] = metrics.fault_latency.percentile_ns(0.99);
  nb::list regions;
  for (const RegionMetrics& region : metrics.regions) regions.append(dict_of(region));
  dict["regions"] = regions;
  nb::list policies;
  for (const PolicyMetrics& policy : metrics.policies)
    policies.append(policy.candidates.empty() ? policy.policy : policy.to_text());
  dict["policies"] = policies;
  return dict;
}

void add_facts(nb::module_& m) {
  m.def("version", &version);
  m.def("default_budget", [] { return default_budget(); });
  m.def("metric_list", [] {
    nb::list list;
    for (const MetricInfo& info : metric_list())
      list.append(nb::make_tuple(info.name, info.unit, info.help, info.is_counter));
    return list;
  });
  m.def("system_facts", [] {
    std::vector<SystemFact> facts;
    {
      const WithoutGil released;
      facts = system_facts();
    }
    nb::list list;
    for (const SystemFact& fact : facts)
      list.append(nb::make_tuple(fact.name, fact.is_available, fact.detail, fact.remedy));
    return list;
  });
}

}  // namespace outcore::python
