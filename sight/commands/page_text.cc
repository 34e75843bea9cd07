#include "sight/commands/page_text.h"

// OUTCORE_REPORT_PAGE and OUTCORE_D3: paths, of the build.
#define OUTCORE_EMBED(name, path)                                        \
  asm(".section .rodata\n" #name "_begin:\n.incbin \"" path "\"\n" #name \
      "_end:\n.byte 0\n"                                                 \
      ".previous\n");                                                    \
  extern "C" const char name##_begin[], name##_end[];
OUTCORE_EMBED(outcore_page, OUTCORE_REPORT_PAGE)
OUTCORE_EMBED(outcore_d3, OUTCORE_D3)

namespace outcore::cli {

std::string_view page_template() {
  return {outcore_page_begin, static_cast<size_t>(outcore_page_end - outcore_page_begin)};
}
std::string_view drawing_library() {
  return {outcore_d3_begin, static_cast<size_t>(outcore_d3_end - outcore_d3_begin)};
}

}  // namespace outcore::cli
