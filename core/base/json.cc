#include "core/base/json.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>

#include "core/base/assert.h"

namespace outcore::base {

using JsonLibrary = nlohmann::json;

// JsonReader: what the library finds, put together. It stops at the first thing that will not do.
class JsonReader : public nlohmann::json_sax<JsonLibrary> {
 public:
  Result<Json> result(bool is_read) {
    if (is_read) return std::move(root_);
    if (is_too_deep_)
      return Error{EINVAL, "it is nested deeper than " + std::to_string(Json::kDepthMax)};
    return Error{EINVAL, "it cannot be read from byte " + std::to_string(at_) + " on"};
  }

  // The end was read where more was to come.
  bool has_failed_behind(size_t size_bytes) const { return at_ > size_bytes; }

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(int64_t value) override { return add(value); }
  bool number_unsigned(uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(JsonLibrary::binary_t& value) override {
    return add(Json::binary(std::move(static_cast<Json::Bytes&>(value))));
  }
  bool start_array(size_t) override { return open(Json::array()); }
  bool start_object(size_t) override { return open(Json::object()); }
  bool key(std::string& name) override {
    members().push_back({std::move(name), {}});
    return true;
  }
  bool end_array() override { return close(); }
  // Of one name the last counts. Sorted once: a search for each name would take forever.
  bool end_object() override {
    Json::Object& all = members();
    const auto is_less = [](const auto& a, const auto& b) { return a.name < b.name; };
    std::stable_sort(all.begin(), all.end(), is_less);
    size_t kept = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i + 1 < all.size() && all[i].name == all[i + 1].name) continue;
      if (kept != i) all[kept] = std::move(all[i]);
      ++kept;
    }
    all.resize(kept);
    return close();
  }
  bool parse_error(size_t at, const std::string&, const JsonLibrary::exception&) override {
    at_ = at;
    return false;
  }

 private:
  Json::Object& members() { return std::get<Json::Object>(open_.back()->any_); }

  // Where the value is now: the array or object that is open, or the root.
  Json* put(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    if (open_.back()->is_object()) return &(members().back().value = std::move(value));
    return &std::get<Json::Array>(open_.back()->any_).emplace_back(std::move(value));
  }
  bool add(Json value) {
    put(std::move(value));
    return true;
  }
  bool open(Json value) {
    is_too_deep_ = open_.size() == Json::kDepthMax;
    if (is_too_deep_) return false;
    open_.push_back(put(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Json*> open_;  // each within the one before, at its end: nothing moves them
  size_t at_ = 0;
  bool is_too_deep_ = false;
};

namespace {

// What is given where nothing is. Kept for good: programs report at their very end.
struct Nothing {
  Json null;
  Json::Array items;
  Json::Object members;
};
const Nothing& nothing() {
  static const Nothing* const kept = new Nothing;
  return *kept;
}

// The same for the library, whose type says in which order members are.
template <typename Other>
Other library_of(const Json& json) {
  const auto convert = [](const auto& value) -> Other {
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<T, Json::Array>) {
      Other all = Other::array();
      for (const Json& item : value) all.push_back(library_of<Other>(item));
      return all;
    } else if constexpr (std::is_same_v<T, Json::Object>) {
      Other all = Other::object();
      for (const auto& [name, member] : value) all[name] = library_of<Other>(member);
      return all;
    } else if constexpr (std::is_same_v<T, Json::Bytes>) {
      return Other::binary(value);
    } else {
      return value;
    }
  };
  return std::visit(convert, json.any());
}

template <typename T>
std::optional<T> held(const Json::Any& any) {
  const T* const value = std::get_if<T>(&any);
  return value != nullptr ? std::optional<T>(*value) : std::nullopt;
}

// CBOR's strings of pieces (major types 2 and 3, length unknown): the library reads each piece by a
// call within the last, however many there are, and tells nobody. All other items stand one after
// the other, so one look at each head finds them, up to where it is no CBOR.
bool has_string_in_pieces(std::span<const uint8_t> bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const unsigned major = bytes[at] >> 5, length = bytes[at] & 31;
    const bool is_string = major == 2 || major == 3;
    ++at;
    if (is_string && length == 31) return true;
    uint64_t argument = length;
    if (length >= 24 && length <= 27) {
      const size_t count = size_t{1} << (length - 24);
      if (count > bytes.size() - at) return false;
      argument = 0;
      for (size_t i = 0; i < count; ++i) argument = argument << 8 | bytes[at++];
    }
    if (!is_string) continue;
    if (argument > bytes.size() - at) return false;
    at += argument;
  }
  return false;
}

}  // namespace

Json::Json() = default;
Json::Json(const char* text) : any_(std::string(text)) {}
Json::Json(std::string_view text) : any_(std::string(text)) {}
Json::Json(std::string text) : any_(std::move(text)) {}
Json::Json(Array items) : any_(std::move(items)) {}
Json::Json(std::initializer_list<Member> members) : any_(Object()) {
  for (const auto& [name, value] : members) (*this)[name] = value;
}
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

void Json::add_new(std::string_view name, Json value) {
  OC_CHECK(is_object());
  std::get<Object>(any_).push_back({std::string(name), std::move(value)});
}
void Json::set_bool(bool is_true) { any_ = is_true; }
void Json::set_double(double number) { any_ = number; }
void Json::set_unsigned(uint64_t number) { any_ = number; }
void Json::set_negative(int64_t number) { any_ = number; }
Json Json::object() {
  Json json;
  json.any_ = Object();
  return json;
}

Json Json::binary(Bytes bytes) {
  Json json;
  json.any_ = std::move(bytes);
  return json;
}

Result<Json> Json::parse(std::string_view text, bool* is_cut) try {
  JsonReader reader;
  auto json = reader.result(JsonLibrary::sax_parse(text.begin(), text.end(), &reader));
  if (is_cut != nullptr) *is_cut = reader.has_failed_behind(text.size());
  return json;
} catch (const std::bad_alloc&) {
  return Error{ENOMEM, "JSON: no memory for what is read"};
}

Json Json::parse_or_null(std::string_view text) {
  auto json = parse(text);
  return json ? std::move(json).value() : Json();
}

Result<Json> Json::from_cbor(const uint8_t* bytes, size_t size_bytes) try {
  if (has_string_in_pieces({bytes, size_bytes}))
    return Error{EINVAL, "CBOR: a string in pieces, which is not read here"};
  JsonReader reader;
  return reader.result(JsonLibrary::sax_parse(bytes, bytes + size_bytes, &reader,
                                              JsonLibrary::input_format_t::cbor));
} catch (const std::bad_alloc&) {
  return Error{ENOMEM, "CBOR: no memory for what is read"};
}

std::string Json::dump(JsonStyle style) const {
  constexpr auto kReplace = JsonLibrary::error_handler_t::replace;
  if (style.is_as_added)
    return library_of<nlohmann::ordered_json>(*this).dump(style.indent, ' ', style.is_ascii,
                                                          kReplace);
  return library_of<JsonLibrary>(*this).dump(style.indent, ' ', style.is_ascii, kReplace);
}

Json::Bytes Json::to_cbor() const { return JsonLibrary::to_cbor(library_of<JsonLibrary>(*this)); }

template <>
std::optional<bool> Json::as() const {
  return held<bool>(any_);
}
template <>
std::optional<int64_t> Json::as() const {
  if (const auto value = held<uint64_t>(any_); value && *value <= INT64_MAX)
    return static_cast<int64_t>(*value);
  return held<int64_t>(any_);
}
template <>
std::optional<uint64_t> Json::as() const {
  return held<uint64_t>(any_);
}
template <>
std::optional<double> Json::as() const {
  if (const auto value = held<uint64_t>(any_)) return static_cast<double>(*value);
  if (const auto value = held<int64_t>(any_)) return static_cast<double>(*value);
  return held<double>(any_);
}
template <>
std::optional<std::string> Json::as() const {
  return held<std::string>(any_);
}
template <>
std::optional<Json::Bytes> Json::as() const {
  return held<Bytes>(any_);
}

const Json::Array& Json::items() const {
  return is_array() ? std::get<Array>(any_) : nothing().items;
}

const Json::Object& Json::members() const {
  return is_object() ? std::get<Object>(any_) : nothing().members;
}

size_t Json::size() const { return items().size() + members().size(); }

const Json& Json::operator[](size_t index) const& {
  return index < items().size() ? items()[index] : nothing().null;
}

void Json::push_back(Json item) {
  if (is_null()) any_ = Array();
  OC_CHECK(is_array());
  std::get<Array>(any_).push_back(std::move(item));
}

const Json* Json::find(std::string_view name) const {
  for (const Member& member : members())
    if (member.name == name) return &member.value;
  return nullptr;
}

const Json& Json::operator[](std::string_view name) const& {
  const Json* const found = find(name);
  return found != nullptr ? *found : nothing().null;
}

Json& Json::operator[](std::string_view name) & {
  if (is_null()) any_ = Object();
  OC_CHECK(is_object());
  if (const Json* found = find(name)) return const_cast<Json&>(*found);
  return std::get<Object>(any_).emplace_back(Member{std::string(name), {}}).value;
}

void Json::update(const Json& other) {
  for (const auto& [name, value] : other.members()) (*this)[name] = value;
}

void Json::erase(std::string_view name) {
  if (is_object())
    std::erase_if(std::get<Object>(any_), [&](const Member& m) { return m.name == name; });
}

bool operator==(const Json& a, const Json& b) {
  if (const auto order = a <=> b; order != std::partial_ordering::unordered) return order == 0;
  if (!a.is_object() || !b.is_object()) return a.any_ == b.any_;
  const auto is_there = [&](const Json::Member& member) {
    const Json* const other = b.find(member.name);
    return other != nullptr && *other == member.value;
  };
  return a.size() == b.size() && std::all_of(a.members().begin(), a.members().end(), is_there);
}

std::partial_ordering operator<=>(const Json& a, const Json& b) {
  const auto x = a.as<uint64_t>(), y = b.as<uint64_t>();
  if (x && y) return *x <=> *y;
  const auto v = a.as<int64_t>(), w = b.as<int64_t>();  // doubles cannot tell all of them apart
  if (v && w) return *v <=> *w;
  const auto f = a.as<double>(), g = b.as<double>();
  return f && g ? *f <=> *g : std::partial_ordering::unordered;
}

std::ostream& operator<<(std::ostream& out, const Json& json) { return out << json.dump(); }

}  // namespace outcore::base
