// CallShapes: what memory each system call of x86-64 Linux reads and writes (call_shapes.inc), in a
// form to compute with. No more than this header: the command that makes the window's filter uses
// it as well as the library.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace outcore::preload {

// One argument of a call.
struct ArgumentShape {
  enum Kind : uint8_t {
    kNone,  // nothing is looked at
    kString,
    kIn,
    kOut,
    kBoth,
    kResult,  // written, as far as the call's answer says
    kBits,    // kBoth, counted in bits and whole words
    kHandled,
    kFutex,
    kUnknown
  };
  static constexpr uint8_t kNoArgument = 0xff;

  Kind kind = kNone;
  uint8_t by = kNoArgument;    // how many `unit_bytes`: the value of that argument
  bool is_by_pointer = false;  // or of the 32-bit number at which it points
  uint8_t more_bytes = 0;
  uint16_t unit_bytes = 0;
};

struct CallShape {
  static constexpr int kArguments = 6;
  ArgumentShape arguments[kArguments];

  // Bit i: argument i is a pointer that the filter looks at.
  constexpr unsigned mask() const {
    unsigned bits = 0;
    for (int i = 0; i < kArguments; ++i)
      if (arguments[i].kind != ArgumentShape::kNone) bits |= 1U << i;
    return bits;
  }
};

namespace shapes {

inline constexpr int kNumbersMax = 512;

enum Number : int {
#define X(name, number, fate, remark) kNo##name = (number),
#include "run/preload/system_calls.inc"
#undef X
};

constexpr unsigned number_at(std::string_view text, size_t* at) {
  unsigned value = 0;
  while (*at < text.size() && text[*at] >= '0' && text[*at] <= '9')
    value = value * 10 + static_cast<unsigned>(text[(*at)++] - '0');
  return value;
}

constexpr ArgumentShape parse_word(std::string_view word) {
  using Kind = ArgumentShape::Kind;
  constexpr std::string_view kLetters = "-siobrf=t?";
  constexpr Kind kKinds[] = {Kind::kNone,  Kind::kString, Kind::kIn,   Kind::kOut,
                             Kind::kBoth,  Kind::kResult, Kind::kBits, Kind::kHandled,
                             Kind::kFutex, Kind::kUnknown};
  ArgumentShape shape;
  shape.kind = kKinds[kLetters.find(word[0])];  // another letter does not compile
  size_t at = 1;
  const unsigned first = number_at(word, &at);
  if (shape.kind == Kind::kBits) {
    shape.by = static_cast<uint8_t>(first);
    return shape;
  }
  shape.unit_bytes = static_cast<uint16_t>(first);
  if (at < word.size() && (word[at] == '*' || word[at] == '@')) {
    shape.is_by_pointer = word[at++] == '@';
    shape.by = static_cast<uint8_t>(number_at(word, &at));
  }
  if (at < word.size() && word[at] == '+')
    shape.more_bytes = static_cast<uint8_t>(number_at(word, &++at));
  return shape;
}

constexpr CallShape parse(std::string_view words) {
  CallShape shape;
  for (int i = 0; !words.empty(); ++i) {
    const size_t end = words.find(' ') < words.size() ? words.find(' ') : words.size();
    shape.arguments[i] = parse_word(words.substr(0, end));
    words.remove_prefix(end < words.size() ? end + 1 : end);
  }
  return shape;
}

constexpr std::array<CallShape, kNumbersMax> make_all() {
  std::array<CallShape, kNumbersMax> all{};
#define S(name, words) all[kNo##name] = parse(words);
#include "run/preload/call_shapes.inc"
#undef S
  return all;
}

inline constexpr std::array<CallShape, kNumbersMax> kAll = make_all();

}  // namespace shapes

// Of a number that is not known: nothing is looked at.
constexpr const CallShape& shape_of(long number) {
  const bool is_known = number >= 0 && number < shapes::kNumbersMax;
  return shapes::kAll[is_known ? static_cast<size_t>(number) : shapes::kNumbersMax - 1];
}

}  // namespace outcore::preload
