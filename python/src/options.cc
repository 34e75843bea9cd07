#include "python/src/options.h"

#include <nanobind/stl/string.h>

#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace outcore::python {

namespace nb = nanobind;

namespace {

template <typename T>
using Words = std::vector<std::pair<const char*, T>>;

const Words<Access> kAccess = {{"read-only", Access::kReadOnly},
                               {"read-write", Access::kReadWrite},
                               {"private", Access::kPrivate}};
const Words<Delivery> kDelivery = {{"auto", Delivery::kAuto},
                                   {"in-thread", Delivery::kInThread},
                                   {"messages", Delivery::kMessages},
                                   {"mprotect", Delivery::kMprotect}};
const Words<FrameKind> kFrames = {
    {"auto", FrameKind::kAuto}, {"shared", FrameKind::kShared}, {"private", FrameKind::kPrivate}};
const Words<Fetch> kFetch = {{"auto", Fetch::kAuto}, {"page", Fetch::kPage}};
const Words<OnError> kOnError = {
    {"signal", OnError::kSignal}, {"zero", OnError::kZeroFill}, {"abort", OnError::kAbort}};
const Words<Advice> kAdvice = {
    {"normal", Advice::kNormal},      {"auto", Advice::kNormal},
    {"random", Advice::kRandom},      {"sequential", Advice::kSequential},
    {"will-need", Advice::kWillNeed}, {"willneed", Advice::kWillNeed},
    {"dont-need", Advice::kDontNeed}, {"dontneed", Advice::kDontNeed},
    {"cold", Advice::kCold}};

template <typename T>
T value_of(const std::string& option, const std::string& word, const Words<T>& words) {
  std::string known;
  for (const auto& [name, value] : words) {
    if (word == name) return value;
    known += known.empty() ? name : std::string(", ") + name;
  }
  throw nb::value_error((option + " '" + word + "' is unknown: write one of " + known).c_str());
}

template <typename T>
const char* word_in(const Words<T>& words, T value) {
  for (const auto& [name, known] : words)
    if (known == value) return name;
  return "?";
}

// What a field of this type may be, for messages.
template <typename T>
std::string wanted() {
  if constexpr (std::is_same_v<T, bool>)
    return "True or False";
  else if constexpr (std::is_integral_v<T>)
    return "a whole number from " + std::to_string(std::numeric_limits<T>::min()) + " to " +
           std::to_string(std::numeric_limits<T>::max());
  else if constexpr (std::is_floating_point_v<T>)
    return "a number";
  else
    return "text";
}

// The Python value as Python writes it.
std::string written(nb::handle value) { return nb::cast<std::string>(nb::repr(value)); }

// Fields: takes one field after the other out of a dict, and says which are left.
class Fields {
 public:
  explicit Fields(const nb::dict& from) : left_(nb::steal<nb::dict>(PyDict_Copy(from.ptr()))) {
    if (!left_.is_valid()) throw nb::python_error();
  }

  template <typename Field>
  void take(const char* name, Field& field) {
    if constexpr (requires { typename Field::value_type; } && !std::is_same_v<Field, std::string>)
      with(name, wanted<typename Field::value_type>(),
           [&](nb::handle value) { field = nb::cast<typename Field::value_type>(value); });
    else
      with(name, wanted<Field>(), [&](nb::handle value) { field = nb::cast<Field>(value); });
  }
  template <typename Field, typename T>
  void take(const char* name, Field& field, const Words<T>& words) {
    with(name, wanted<std::string>(),
         [&](nb::handle value) { field = value_of(name, nb::cast<std::string>(value), words); });
  }
  void finish() const {
    for (auto [name, value] : left_)
      throw nb::type_error(("there is no option '" + nb::cast<std::string>(name) + "'").c_str());
  }

 private:
  template <typename Take>
  void with(const char* name, const std::string& wanted, const Take& take) {
    const nb::str key(name);
    if (!left_.contains(key)) return;
    const nb::object value = left_[key];
    PyDict_DelItem(left_.ptr(), key.ptr());
    if (value.is_none()) return;
    try {
      take(value);
    } catch (const nb::cast_error&) {
      const std::string text =
          std::string("option '") + name + "' is " + written(value) + ": write " + wanted;
      // A number that is too small, or too large, is of the right type.
      if (PyLong_Check(value.ptr()) && wanted.starts_with("a whole"))
        throw nb::value_error(text.c_str());
      throw nb::type_error(text.c_str());
    }
  }

  nb::dict left_;
};

}  // namespace

RuntimeOptions runtime_options_of(const nb::dict& from) {
  RuntimeOptions o;
  Fields fields(from);
  fields.take("budget_bytes", o.budget_bytes);
  fields.take("adapts_budget", o.adapts_budget);
  fields.take("budget_min_bytes", o.budget_min_bytes);
  fields.take("budget_max_bytes", o.budget_max_bytes);
  fields.take("policy", o.policy);
  fields.take("page_bytes", o.page_bytes);
  fields.take("keepers", o.keepers);
  fields.take("prefetch_threads", o.prefetch_threads);
  fields.take("event_threads", o.event_threads);
  fields.take("event_batch", o.event_batch);
  fields.take("high_watermark", o.high_watermark);
  fields.take("low_watermark", o.low_watermark);
  fields.take("readahead_bytes", o.readahead_bytes);
  fields.take("fetch", o.fetch, kFetch);
  fields.take("wait_ms_max", o.wait_ms_max);
  fields.take("delivery", o.delivery, kDelivery);
  fields.take("frames", o.frames, kFrames);
  fields.take("on_error", o.on_error, kOnError);
  fields.take("scratch_dir", o.scratch_dir);
  fields.take("checkpoint_every_ms", o.checkpoint_every_ms);
  fields.take("checkpoint_pool", o.checkpoint_pool);
  fields.take("checkpoint_keep", o.checkpoint_keep);
  fields.take("learn", o.learn_file);
  fields.take("buffer", o.buffer);
  fields.take("report", o.report_file);
  fields.take("metrics_at_exit", o.metrics_at_exit);
  fields.take("kernel", o.kernel);
  fields.take("ignore_environment", o.ignore_environment);
  fields.finish();
  return o;
}

MapOptions map_options_of(const nb::dict& from) {
  MapOptions o;
  Fields fields(from);
  fields.take("access", o.access, kAccess);
  fields.take("offset", o.offset);
  fields.take("size_bytes", o.size_bytes);
  fields.take("may_create", o.may_create);
  fields.take("page_bytes", o.page_bytes);
  fields.take("reserve_bytes", o.reserve_bytes);
  fields.take("advice", o.advice, kAdvice);
  fields.take("delivery", o.delivery, kDelivery);
  fields.take("frames", o.frames, kFrames);
  fields.take("on_error", o.on_error, kOnError);
  fields.finish();
  return o;
}

Advice advice_of(const std::string& word) { return value_of("advice", word, kAdvice); }
const char* word_of(Access access) { return word_in(kAccess, access); }
const char* word_of(Delivery delivery) { return word_in(kDelivery, delivery); }
const char* word_of(FrameKind frames) { return word_in(kFrames, frames); }

}  // namespace outcore::python
