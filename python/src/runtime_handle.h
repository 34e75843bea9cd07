// RuntimeHandle: a runtime that lives as long as one of its regions does.
#pragma once

#include <nanobind/nanobind.h>

#include <cerrno>
#include <memory>
#include <string>

#include "outcore/runtime.h"
#include "python/src/errors.h"
#include "python/src/region.h"

namespace outcore::python {

struct RuntimeHandle {
  std::shared_ptr<Runtime> runtime;
  uint64_t forks = fork_count();

  void check(const char* what) const {
    if (forks != fork_count())
      raise({EPERM, std::string(what) +
                        ": this is a forked child, which does not inherit its parent's runtime: "
                        "start one of its own"},
            "outcore runtime", Blame::kStore);
    if (runtime == nullptr)
      throw nanobind::value_error((std::string(what) + ": the runtime is closed").c_str());
  }
};

}  // namespace outcore::python
