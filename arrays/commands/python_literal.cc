#include "arrays/commands/python_literal.h"

#include <cerrno>
#include <charconv>

namespace outcore::cli {
namespace {

using Kind = PythonLiteral::Kind;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  bool parse_all(PythonLiteral* into) {
    const bool is_good = parse(into, 0);
    skip_blanks();
    return is_good && at_ == text_.size();
  }
  size_t at() const { return at_; }

 private:
  static constexpr int kDepthMax = 16;

  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  bool parse(PythonLiteral* into, int depth) {
    skip_blanks();
    const size_t from = at_;
    const bool is_good = depth < kDepthMax && at_ < text_.size() && parse_one(into, depth);
    into->words = text_.substr(from, at_ - from);
    return is_good;
  }

  bool parse_one(PythonLiteral* into, int depth) {
    const char c = text_[at_];
    if (c == '\'' || c == '"') return parse_string(into);
    if (c == '(') return parse_items(into, Kind::kTuple, ')', depth);
    if (c == '[') return parse_items(into, Kind::kList, ']', depth);
    if (c == '{') return parse_items(into, Kind::kDict, '}', depth);
    if (take("None")) return true;
    into->kind = Kind::kBool;
    into->number = c == 'T';
    if (take("True") || take("False")) return true;
    into->kind = Kind::kNumber;
    const char* const end = text_.data() + text_.size();
    const auto parsed = std::from_chars(text_.data() + at_, end, into->number);
    if (parsed.ec != std::errc()) return false;
    at_ = static_cast<size_t>(parsed.ptr - text_.data());
    static_cast<void>(take("L"));  // as Python 2 wrote them
    return true;
  }

  bool parse_string(PythonLiteral* into) {
    into->kind = Kind::kString;
    const char quote = text_[at_++];
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && ++at_ >= text_.size()) return false;
      into->string += text_[at_++];
    }
    return at_++ < text_.size();
  }

  bool parse_items(PythonLiteral* into, Kind kind, char end, int depth) {
    into->kind = kind;
    bool has_comma = true;
    for (++at_;;) {
      skip_blanks();
      if (at_ >= text_.size()) return false;
      if (text_[at_] == end) break;
      if (!has_comma || !parse(&into->items.emplace_back(), depth + 1)) return false;
      skip_blanks();
      if (kind == Kind::kDict) {
        if (!take(":") || !parse(&into->items.emplace_back(), depth + 1)) return false;
        skip_blanks();
      }
      has_comma = take(",");
    }
    ++at_;
    if (kind != Kind::kTuple || into->items.size() != 1 || has_comma) return true;
    const PythonLiteral inner = std::move(into->items.front());  // "(3)" is 3
    *into = inner;
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

const PythonLiteral* PythonLiteral::find(std::string_view key) const {
  for (size_t i = 0; i + 1 < items.size(); i += 2)
    if (items[i].is(Kind::kString) && items[i].string == key) return &items[i + 1];
  return nullptr;
}

Result<PythonLiteral> parse_python_literal(std::string_view text) {
  PythonLiteral literal;
  Parser parser(text);
  if (parser.parse_all(&literal)) return literal;
  return Error{EINVAL, "it is not understood at its byte " + std::to_string(parser.at())};
}

}  // namespace outcore::cli
