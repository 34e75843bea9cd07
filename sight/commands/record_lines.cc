#include "sight/commands/record_lines.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace outcore::cli {

RecordLines::RecordLines(const std::string& path) : file_(path, std::ios::binary) {}

bool RecordLines::next(std::string* line) {
  line->clear();
  is_whole_ = false;
  bool is_cut = false;
  while (file_) {
    char piece[1 << 16];
    file_.getline(piece, sizeof piece);
    const bool has_end = !file_.fail() && !file_.eof();
    const size_t length = static_cast<size_t>(file_.gcount()) - (has_end ? 1 : 0);
    const size_t room = kBytesMax - line->size();
    line->append(piece, std::min(length, room));
    is_cut = is_cut || length > room;
    if (file_.eof()) return !line->empty();
    if (has_end) {
      is_whole_ = !is_cut;
      return true;
    }
    if (file_.bad()) return false;
    file_.clear();  // the line goes on
  }
  return false;
}

uint64_t started_ns_of(const std::string& line) {
  constexpr std::string_view kName = "\"runtime_started_ns\":";
  const size_t at = line.find(kName);
  uint64_t number = 0;
  if (at != std::string::npos)
    static_cast<void>(
        std::from_chars(line.data() + at + kName.size(), line.data() + line.size(), number));
  return number;
}

}  // namespace outcore::cli
