#include "run/commands/run_window.h"

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "run/commands/call_filter.h"
#include "run/preload/window_place.h"

namespace outcore::cli {
namespace {

using preload::WindowPlace;

std::string_view value_of(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

// A config file's choice is seen by the library alone.
bool may_be_in_thread() {
  const std::string_view delivery = value_of("OUTCORE_DELIVERY");
  return delivery.empty() || delivery == "auto" || delivery == "in-thread";
}

void tell(const std::string& text) { ::setenv(WindowPlace::kVariable, text.c_str(), 1); }

std::string why_none(const std::string& why) { return WindowPlace::kNone + why; }

}  // namespace

void set_up_run_window(bool has_library) {
  const std::string given(value_of(WindowPlace::kVariable));
  ::unsetenv(WindowPlace::kVariable);
  if (!may_be_in_thread() || !has_library) return;
  // Within another run: two windows would need two instructions.
  const std::optional<WindowPlace> outer = WindowPlace::parse(given.c_str());
  if (outer && is_call_filter_there(*outer)) return tell(given);
  if (value_of("OUTCORE_RUN_KEEP_PRIVILEGES") == "1") return tell(why_none("--keep-privileges"));
  const Result<WindowPlace> place = choose_window();
  if (!place) return tell(why_none(place.message()));
  const Status status = install_call_filter(place.value());
  tell(status ? place.value().to_text() : why_none(status.message()));
}

bool offers_run_window(std::string* why) {
  set_up_run_window(true);
  const std::string_view told = value_of(WindowPlace::kVariable), none = WindowPlace::kNone;
  if (told.starts_with(none)) *why = told.substr(none.size());
  return !told.empty() && !told.starts_with(none);
}

}  // namespace outcore::cli
