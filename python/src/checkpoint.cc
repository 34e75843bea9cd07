#include "outcore/checkpoint.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "outcore/store_kind.h"
#include "python/src/bytes.h"
#include "python/src/checkpoint_module.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/metrics.h"
#include "python/src/region.h"

namespace outcore::python {

namespace nb = nanobind;

namespace {

// Python's functions, called from threads that do not have the GIL. What quiesce raised is kept.
class Functions {
 public:
  Functions(nb::object quiesce, nb::object resume)
      : quiesce_(std::move(quiesce)), resume_(std::move(resume)) {}

  void set(CheckpointOptions& options) {
    if (quiesce_.is_none()) return;
    options.quiesce = [this]() -> Status {
      const WithGil held;
      try {
        or_wait_for_the_end([this] { quiesce_(); });
      } catch (nb::python_error& raised) {
        raised_ = std::make_unique<nb::python_error>(std::move(raised));
        return Error{ECANCELED, "quiesce raised"};
      }
      return {};
    };
    options.resume = [this] {
      const WithGil held;
      try {
        or_wait_for_the_end([this] { resume_(); });
      } catch (nb::python_error& raised) {
        raised.discard_as_unraisable("outcore: resume() of a checkpoint");
      }
    };
  }
  void raise_again() {
    if (raised_ == nullptr) return;
    nb::python_error raised = std::move(*raised_);
    raised_.reset();
    throw raised;
  }

 private:
  const nb::object quiesce_, resume_;
  std::unique_ptr<nb::python_error> raised_;
};

nb::dict make(const std::string& name, const nb::list& parts, const std::string& pool,
              const std::string& comment, nb::object quiesce, nb::object resume) {
  std::vector<std::unique_ptr<Bytes>> held;
  std::vector<std::unique_ptr<RegionHandle::Call>> calls;
  std::vector<CheckpointPart> all;
  std::string where = pool;
  for (const nb::handle entry : parts) {
    const auto part = nb::cast<nb::tuple>(entry);
    const std::string object = nb::cast<std::string>(part[0]);
    RegionHandle* region = nullptr;
    if (nb::try_cast(part[1], region) && region != nullptr) {
      region->check("checkpoint");
      calls.push_back(std::make_unique<RegionHandle::Call>(*region));
      if (where.empty()) where = region->uri();
      all.emplace_back(region->region(), object);
    } else {
      held.push_back(std::make_unique<Bytes>(part[1], PyBUF_SIMPLE));
      all.emplace_back(object, held.back()->data(), held.back()->size_bytes());
    }
  }
  Functions functions(std::move(quiesce), std::move(resume));
  CheckpointOptions options;
  options.pool = pool;
  options.comment = comment;
  functions.set(options);
  auto made = [&] {
    const WithoutGil released;
    return checkpoint(name, all, options);
  }();
  functions.raise_again();
  if (!made) raise(made.error(), where, Blame::kArgument);
  nb::dict report;
  report["number"] = made->number;
  report["pause_ns"] = made->pause_ns;
  report["seconds_ns"] = made->seconds_ns;
  report["precopied_bytes"] = made->precopied_bytes;
  report["frozen_bytes"] = made->frozen_bytes;
  report["copied_bytes"] = made->copied_bytes;
  report["stopped_threads"] = made->stopped_threads;
  return report;
}

template <typename Call>
auto without_gil(const std::string& pool, const Call& call) {
  auto result = [&] {
    const WithoutGil released;
    return call();
  }();
  if (!result.ok()) raise(result.error(), pool, Blame::kArgument);
  return result;
}

nb::tuple tuple_of(const CheckpointInfo& info) {
  return nb::make_tuple(text_of(info.name), info.number, info.time_s, text_of(info.comment),
                        info.size_bytes, info.only_bytes);
}

// The bytes of an object, straight into the one that Python made for them.
nb::bytes read(const Restart& last, const std::string& object) {
  const auto size = without_gil(object, [&] { return last.size_of(object); });
  PyObject* const made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size.value()));
  if (made == nullptr) throw nb::python_error();
  const auto bytes = nb::steal<nb::bytes>(made);
  auto* const first = reinterpret_cast<std::byte*>(PyBytes_AS_STRING(made));
  static_cast<void>(without_gil(object, [&] { return last.read(object, {first, size.value()}); }));
  return bytes;
}

}  // namespace

void add_checkpoints(nb::module_& m) {
  nb::class_<Restart>(m, "Restart")
      .def_prop_ro("info", [](const Restart& last) { return tuple_of(last.checkpoint()); })
      .def("uri_of", &Restart::uri_of)
      .def("read", &read);
  m.def("checkpoint", &make, nb::arg("name"), nb::arg("parts"), nb::arg("pool"), nb::arg("comment"),
        nb::arg("quiesce").none(), nb::arg("resume").none());
  m.def("restart", [](const std::string& pool, const std::string& name) {
    return without_gil(pool, [&] { return restart(pool, name); }).value();
  });
  // "pool", "snapshots" or "": what keeps the checkpoints of this URL's stores.
  m.def("checkpoints_of", [](const nb::bytes& url) {
    using Checkpoints = StoreKind::Checkpoints;
    const StoreKind* const kind = kind_of_scheme(std::string(url.c_str(), url.size()));
    const Checkpoints kept = kind == nullptr ? Checkpoints::kNone : kind->checkpoints;
    return kept == Checkpoints::kInPool ? "pool" : kept == Checkpoints::kNone ? "" : "snapshots";
  });
  m.def("list_checkpoints", [](const std::string& pool) {
    nb::list all;
    const auto infos = without_gil(pool, [&] { return list_checkpoints(pool); });
    for (const CheckpointInfo& info : infos.value()) all.append(tuple_of(info));
    return all;
  });
  m.def("list_objects", [](const std::string& pool, const std::string& name) {
    nb::dict sizes;
    const auto objects = without_gil(pool, [&] { return list_objects(pool, name); });
    for (const CheckpointObject& object : objects.value())
      sizes[text_of(object.name)] = object.size_bytes;
    return sizes;
  });
  m.def("remove_checkpoints", [](const std::string& pool, const std::vector<std::string>& names) {
    static_cast<void>(without_gil(pool, [&] { return remove_checkpoints(pool, names); }));
  });
}

}  // namespace outcore::python
