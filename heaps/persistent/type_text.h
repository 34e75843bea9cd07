// TypeText: the type of an object in a heap, as people read it. Any thread. In a header, as the
// command has no more of heaps.
#pragma once

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

namespace outcore::heap::persistent {

// Makes the name of a type readable. Names come from the store: one that refers to itself could
// grow without end.
inline std::string type_text(const std::string& type) {
  constexpr size_t kBytesMax = 256;
  if (type.size() > kBytesMax) return type;
  int status = 0;
  char* text = abi::__cxa_demangle(type.c_str(), nullptr, nullptr, &status);
  std::string name = status == 0 && text != nullptr ? text : type;
  std::free(text);
  return name;
}

// What containers have where nobody has said otherwise: it tells nothing of them.
inline bool is_usual_argument(std::string_view argument) {
  constexpr std::string_view kUsual[] = {"std::allocator<",
                                         "std::char_traits<",
                                         "std::hash<",
                                         "std::equal_to<",
                                         "std::less<",
                                         "boost::hash<",
                                         "boost::container::scoped_allocator_adaptor<",
                                         "boost::container::vector_options<",
                                         "boost::container::vector_opt<",
                                         "outcore::PersistentAllocator<"};
  return argument == "void" || std::any_of(std::begin(kUsual), std::end(kUsual),
                                           [&](auto usual) { return argument.starts_with(usual); });
}

// The name of a type without usual arguments; lists of arguments within more than `depth_max`
// others are only hinted at.
inline std::string without_usual_arguments(std::string_view type, size_t depth_max) {
  std::string text;
  while (!type.empty()) {
    const size_t begin = type.find('<');
    text += type.substr(0, begin);
    if (begin == std::string_view::npos) break;
    size_t end = begin + 1, from = end, depth = 1, count = 0;
    std::string list;
    for (; end < type.size() && depth != 0; ++end) {
      const char c = type[end];
      depth += static_cast<size_t>(c == '<' || c == '(');
      depth -= static_cast<size_t>(c == '>' || c == ')');
      if (depth > 1 || (depth == 1 && c != ',')) continue;
      std::string_view argument = type.substr(from, end - from);
      while (argument.starts_with(' ')) argument.remove_prefix(1);
      while (argument.ends_with(' ')) argument.remove_suffix(1);
      from = end + 1;
      if (count++ != 0 && is_usual_argument(argument)) continue;
      if (depth_max != 0)
        list += (list.empty() ? "" : ", ") + without_usual_arguments(argument, depth_max - 1);
    }
    text += "<" + (depth_max == 0 ? "…" : list) + ">";
    type.remove_prefix(end);
  }
  return text;
}

// In a line for people: what tells types apart, of long ones the outer parts.
inline std::string short_type_text(const std::string& type) {
  constexpr size_t kBytesMax = 120, kDepthMax = 8;
  std::string text = type;
  for (const std::string_view inner : {"__cxx11::", "__1::"})  // a library's own namespaces
    for (size_t at = 0; (at = text.find(inner, at)) != std::string::npos;)
      text.erase(at, inner.size());
  const std::string whole = text;
  for (size_t depth = kDepthMax + 1; depth-- > 0;) {
    text = without_usual_arguments(whole, depth);
    for (size_t at = 0; (at = text.find("std::basic_string<char>", at)) != std::string::npos;)
      text.replace(at, 23, "std::string");
    if (text.size() <= kBytesMax) return text;
  }
  // Of a letter of several bytes nothing is left, or all.
  size_t end = kBytesMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

}  // namespace outcore::heap::persistent
