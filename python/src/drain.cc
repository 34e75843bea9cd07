#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "outcore/arrays_drain.h"
#include "python/src/arrays_module.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/metrics.h"
#include "python/src/runtime_handle.h"

namespace outcore::python {

namespace nb = nanobind;

namespace {

constexpr uint64_t kSliceMs = 50;  // between two looks at signals

class DrainHandle {
 public:
  DrainHandle(const nb::bytes& from, const nb::bytes& to, const std::vector<std::string>& names,
              uint64_t bytes_per_second, bool may_remove, const RuntimeHandle* runtime)
      : from_(from.c_str(), from.size()), to_(to.c_str(), to.size()) {
    DrainOptions options;
    options.names = names;
    options.bytes_per_second = bytes_per_second;
    options.may_remove = may_remove;
    if (runtime != nullptr) {
      runtime->check("start a drain");
      runtime_ = runtime->runtime;
      options.runtime = runtime_.get();
    }
    auto started = [&] {
      const WithoutGil released;
      return ArraysDrain::start(from_, to_, options);
    }();
    if (!started) raise_of(started.error());
    drain_ = std::make_shared<ArraysDrain>(std::move(started).value());
  }
  DrainHandle(const DrainHandle&) = delete;
  DrainHandle& operator=(const DrainHandle&) = delete;
  ~DrainHandle() { end(); }

  // False: it goes on after so many seconds. Signals are handled meanwhile.
  bool wait(double seconds) {
    const std::shared_ptr<ArraysDrain> drain = usable();
    double left_ms = seconds * 1e3;
    for (;;) {
      const auto slice =
          static_cast<uint64_t>(std::clamp(std::ceil(left_ms), 0.0, static_cast<double>(kSliceMs)));
      bool has_ended = false;
      {
        const WithoutGil released;
        has_ended = drain->wait_for(slice);
      }
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (has_ended) break;
      left_ms -= static_cast<double>(slice);
      if (left_ms <= 0) return false;
    }
    const Status s = join(*drain);
    if (!s.ok()) raise_of(s.error());
    return true;
  }
  nb::tuple progress() const {
    const std::shared_ptr<ArraysDrain> drain = usable();
    const DrainProgress now = drain->progress();
    return nb::make_tuple(now.arrays, now.arrays_done, now.bytes, now.bytes_done,
                          text_of(now.array));
  }
  bool has_ended() const { return usable()->wait_for(0); }
  void cancel() const { usable()->cancel(); }
  // Cancels, unless it has ended, and waits. The handle can be used after that.
  void end() {
    if (drain_ == nullptr || forks_ != fork_count()) return;
    drain_->cancel();
    static_cast<void>(join(*drain_));
  }

 private:
  // A child's copy of the drain's mutex may be locked for ever: it is not touched.
  const std::shared_ptr<ArraysDrain>& usable() const {
    if (forks_ != fork_count())
      raise_of({EPERM, "the drain of " + from_ +
                           " is of the parent of this process: start one here, when that has "
                           "ended"});
    return drain_;
  }
  Status join(ArraysDrain& drain) {  // C++'s wait() is of one thread
    const WithoutGil released;
    const std::lock_guard<std::mutex> guard(joining_);
    return drain.wait();
  }
  // The file it is about is the one that its text names.
  [[noreturn]] void raise_of(const Error& error) const {
    const bool is_of_target = error.message.find(file_name_of(from_)) == std::string::npos &&
                              error.message.find(file_name_of(to_)) != std::string::npos;
    raise(error, is_of_target ? to_ : from_, Blame::kStore);
  }

  const std::string from_, to_;
  const uint64_t forks_ = fork_count();
  std::mutex joining_;
  std::shared_ptr<Runtime> runtime_;  // outlives the drain: declared before it
  std::shared_ptr<ArraysDrain> drain_;
};

}  // namespace

void add_drain(nb::module_& m) {
  nb::class_<DrainHandle>(m, "ArraysDrain")
      .def(nb::init<const nb::bytes&, const nb::bytes&, const std::vector<std::string>&, uint64_t,
                    bool, const RuntimeHandle*>(),
           nb::arg("source"), nb::arg("target"), nb::arg("names"), nb::arg("bytes_per_second"),
           nb::arg("may_remove"), nb::arg("runtime").none())
      .def("wait", &DrainHandle::wait)
      .def("progress", &DrainHandle::progress)
      .def("cancel", &DrainHandle::cancel)
      .def("end", &DrainHandle::end)
      .def_prop_ro("has_ended", &DrainHandle::has_ended);
}

}  // namespace outcore::python
