// Request: what a compiler's command line asks for, as far as occ must know. One thread.
#pragma once

#include <string>
#include <vector>

namespace occ {

using Words = std::vector<std::string>;

struct Request {
  // Of occ itself, and taken out of `words`.
  bool wants_help = false, wants_version = false, wants_show = false;
  std::string compiler;  // --cc=

  Words words;               // what the compiler is given, in order; response files as they stand
  bool compiles = false;     // a source is among the inputs
  bool wants_words = false;  // …that the words of dlm are for: not assembler, not preprocessed
  bool links = false;
  bool is_partial = false;               // -r
  bool is_position_independent = false;  // -fPIC: as objects of libraries have it
  bool has_lto = false;
  bool is_static = false;
  bool has_lld = false;
  bool has_colour = false;    // says itself whether messages are coloured
  bool has_language = false;  // -x
  bool has_thread_sanitizer = false;
  bool is_shadowed = false;  // a sanitizer leaves low addresses to the program, not high ones
  std::string output = "a.out";
  std::string refusal;  // why occ does not do it; empty: it does
};

// `arguments` are those after the command's name.
Request read_request(const Words& arguments);

}  // namespace occ
