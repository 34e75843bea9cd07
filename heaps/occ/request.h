// Request: what a compiler's command line asks for, as far as occ needs to know. One thread.
#pragma once

#include <string>
#include <vector>

namespace occ {

using Words = std::vector<std::string>;

struct Request {
  // Options of occ itself, which are not passed on in `words`.
  bool wants_help = false, wants_version = false, wants_show = false;
  std::string compiler;  // --cc=

  Words words;               // what the compiler gets, in order; response files are not expanded
  bool compiles = false;     // a source file is among the inputs
  bool wants_words = false;  // …that the words of dlm are for: not assembler, not preprocessed
  bool links = false;
  bool is_partial = false;               // -r
  bool is_position_independent = false;  // -fPIC: the objects are for libraries
  bool has_lto = false;
  bool is_static = false;
  bool has_lld = false;
  bool has_colour = false;    // the command line says whether messages are coloured
  bool has_language = false;  // -x
  bool has_thread_sanitizer = false;
  bool is_shadowed = false;  // its sanitizer leaves low addresses to the program, not high ones
  std::string output = "a.out";
  std::string refusal;  // why occ refuses the command; empty: it does not
};

// `arguments` are those that follow the command's name.
Request read_request(const Words& arguments);

}  // namespace occ
