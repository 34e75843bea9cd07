// Terminal: a full screen of lines, and keys. It is given back as it was on every way out: by the
// destructor, and by signals that end the process. There is one at a time; one thread.
#pragma once

#include <chrono>
#include <memory>

#include "outcore/result.h"
#include "sight/commands/pages.h"

namespace outcore::cli {

enum class Key : uint8_t {
  kNone,  // none came in time
  kLetter,
  kUp,
  kDown,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kEnter,
  kEscape,
  kBackspace,
  kResize,  // draw again
  kGone     // there is no terminal any more, or the process was told to end
};
struct Pressed {
  Key key = Key::kNone;
  char letter = 0;  // ASCII
};

class Terminal {
 public:
  // Errors: ENOTTY (input or output is not a terminal, or it cannot place its cursor).
  static Result<std::unique_ptr<Terminal>> open(const Glyphs& glyphs);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  size_t width() const;
  // How many of a page's rows are shown; at least 1.
  size_t rows_shown(const Page& page) const;
  // From that row on, one of them selected (or none: beyond the last). `keys`: the last line.
  void draw(const Page& page, size_t first, size_t selected, const Line& keys);
  Pressed wait_key(std::chrono::milliseconds time);

 private:
  explicit Terminal(const Glyphs& glyphs) : glyphs_(glyphs) {}
  Glyphs glyphs_;
};

}  // namespace outcore::cli
