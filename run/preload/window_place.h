// WindowPlace: where the window of a run lies, and the one instruction whose calls may point into
// it (docs/internals/decisions/0038-the-window.md). Chosen by `outcore run`, handed on by
// environment. No more than this header: the command and the library use it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

namespace outcore::preload {

struct WindowPlace {
  // Between these Linux puts nothing by itself.
  static constexpr uint64_t kFirst = uint64_t{0x4000} << 32, kEnd = uint64_t{0x5000} << 32;
  static constexpr uint64_t kBytes = uint64_t{8} << 40;
  static constexpr uint64_t kStep = uint64_t{1} << 32;  // the filter looks at the high halves
  static constexpr uint64_t kPage = 4096;
  static constexpr const char* kVariable = "OUTCORE_RUN_WINDOW";
  // What the variable says where there is none, and then why.
  static constexpr const char* kNone = "none: ";
  // The red zone, which a function may use below its stack pointer.
  static constexpr uint64_t kRedZone = 128;
  // endbr64, syscall, ret; then the same with ret kRedZone, for a call that is made anew in its
  // caller's own stack. They are told by where they would go on.
  static constexpr unsigned char kCode[] = {
      0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x05, 0xc3, 0x90,             // from 0
      0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x05, 0xc2, kRedZone, 0x00};  // from kAnew
  static constexpr uint64_t kAnew = 8;
  static constexpr uint64_t kReturnOffset = 6;  // of both
  // What the filter says of a trap, so that it is told from other filters' (si_errno).
  static constexpr unsigned kMark = 0x0c57;

  uint64_t base = 0, code = 0;  // the window; the page of the instruction

  bool contains(uint64_t address) const { return address - base < kBytes; }
  bool is_possible() const {
    const bool is_window = base >= kFirst && base <= kEnd - kBytes && base % kStep == 0;
    return is_window && code >= kFirst && code < kEnd && code % kPage == 0 && !contains(code);
  }
  std::string to_text() const {
    char text[40];
    std::snprintf(text, sizeof text, "%llx:%llx", static_cast<unsigned long long>(base),
                  static_cast<unsigned long long>(code));
    return text;
  }
  // None: it is no such text, or no possible place.
  static std::optional<WindowPlace> parse(const char* text) {
    char* end = nullptr;
    WindowPlace place;
    place.base = std::strtoull(text, &end, 16);
    if (*end != ':') return std::nullopt;
    place.code = std::strtoull(end + 1, &end, 16);
    if (*end != 0 || !place.is_possible() || place.to_text() != text) return std::nullopt;
    return place;
  }
};

}  // namespace outcore::preload
