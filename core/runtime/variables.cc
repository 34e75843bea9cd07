#include "core/runtime/variables.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "core/base/error.h"
#include "core/runtime/option_table.h"

namespace outcore {
namespace runtime {
namespace {

constexpr std::string_view kPrefix = "OUTCORE_";

// Variables that are not options of a runtime.
constexpr std::string_view kOthers[] = {"CONFIG",
                                        "STORE",
                                        "POOL",
                                        "HOSTS",
                                        "SSH",
                                        "BENCH_DIR",
                                        "RUN_MAP",
                                        "RUN_NOT_MAP",
                                        "RUN_ALLOC",
                                        "RUN_QUIET",
                                        "RUN_JSON",
                                        "RUN_MIN_SIZE",
                                        "RUN_REPLICAS",
                                        "RUN_ALLOW_AIO",
                                        "RUN_EXPLAIN",
                                        "RUN_KEEP_PRIVILEGES",
                                        "BUFFER_DIR",
                                        "PRELOAD_LIBRARY",
                                        "RUN_SHARE_WRITES"};

// By which `outcore run` tells its processes of each other: nobody means to set them.
constexpr std::string_view kInternal[] = {"RUN_ROOT",   "RUN_REPORT", "RUN_COMMAND",
                                          "RUN_WINDOW", "RUN_BUFFER", "RUN_BEFORE"};

// Variables of Outcore's own tests and their scripts.
constexpr std::string_view kOfTests[] = {"TEST_",       "SIM_",       "STRESS_",
                                         "UPDATE_DOCS", "COMMAND",    "ARRAY_KILLS",
                                         "KILLS",       "SOURCE_DIR", "IS_INSIDE"};

// Kubernetes sets such variables for each service; here for one that is called outcore or
// outcore-….
bool is_of_service(std::string_view name) {
  return name == "PORT" || name.starts_with("PORT_") || name.ends_with("_PORT") ||
         name.find("_PORT_") != std::string_view::npos || name.ends_with("SERVICE_HOST") ||
         name.find("SERVICE_PORT") != std::string_view::npos;
}

// Without the prefix.
std::vector<std::string> known_names() {
  std::vector<std::string> names(std::begin(kOthers), std::end(kOthers));
  for (const Option& option : option_table())
    names.push_back(option.variable().substr(kPrefix.size()));
  return names;
}

}  // namespace

std::vector<std::string> find_unknown_variables(const char* const* environment) {
  std::vector<std::string> lines;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    std::string_view name = *environment;
    if (!name.starts_with(kPrefix)) continue;
    name = name.substr(0, name.find('=')).substr(kPrefix.size());
    const std::vector<std::string> known = known_names();
    const auto is_same = [name](const std::string& other) { return name == other; };
    const auto begins = [name](std::string_view start) { return name.starts_with(start); };
    if (is_of_service(name) || std::any_of(known.begin(), known.end(), is_same) ||
        std::find(std::begin(kInternal), std::end(kInternal), name) != std::end(kInternal) ||
        std::any_of(std::begin(kOfTests), std::end(kOfTests), begins))
      continue;
    std::string shown(name.substr(0, 64));  // made printable, in one line
    for (char& c : shown)
      if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
    const std::string near = nearest_name(name, known);
    lines.push_back("the variable OUTCORE_" + shown + " is not known, and ignored" +
                    (near.empty() ? "; `outcore info --options` lists those that are"
                                  : "; did you mean OUTCORE_" + near + "?"));
  }
  return lines;
}

void tell_unknown_variables() {
  static std::atomic<bool> is_told{false};
  // A program that runs with more rights than its caller does not report the caller's environment.
  if (is_told.exchange(true) || ::secure_getenv("PATH") != ::getenv("PATH")) return;
  const char* const quiet = ::getenv("OUTCORE_RUN_QUIET");
  if (::getenv("OUTCORE_RUN_ROOT") != nullptr || (quiet != nullptr && *quiet == '1')) return;
  for (const std::string& line : find_unknown_variables(environ))
    std::fprintf(stderr, "outcore: %s\n", line.c_str());
}

}  // namespace runtime

void tell_unknown_variables() { runtime::tell_unknown_variables(); }

std::string nearest_name(std::string_view word, const std::vector<std::string>& names) {
  const std::vector<std::string_view> all(names.begin(), names.end());
  return base::nearest(word, all.data(), all.size());
}

}  // namespace outcore
