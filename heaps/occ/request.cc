#include "heaps/occ/request.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace occ {
namespace {

constexpr int kNestingMax = 16;  // response files within response files

bool begins(std::string_view word, std::string_view with) { return word.rfind(with, 0) == 0; }

template <size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Options whose value is the next word.
constexpr std::array<std::string_view, 37> kWithValue = {
    "-o",       "-x",           "-I",          "-D",
    "-U",       "-L",           "-l",          "-T",
    "-u",       "-z",           "-e",          "-A",
    "-B",       "-F",           "-include",    "-imacros",
    "-isystem", "-iquote",      "-idirafter",  "-isysroot",
    "-iprefix", "-iwithprefix", "-MF",         "-MT",
    "-MQ",      "-Xlinker",     "-Xassembler", "-Xpreprocessor",
    "-Xclang",  "-mllvm",       "-aux-info",   "-dumpbase",
    "-dumpdir", "--param",      "-target",     "-wrapper",
    "--output"};

constexpr std::array<std::string_view, 22> kSources = {
    "c", "cc", "cp", "cxx", "cpp", "CPP", "c++", "C",   "m", "mm", "M",
    "h", "hh", "H",  "hp",  "hxx", "hpp", "h++", "tcc", "i", "ii", "f90"};
constexpr std::array<std::string_view, 5> kWithoutWords = {"i", "ii", "f90", "mi", "mii"};
constexpr std::array<std::string_view, 3> kAssembler = {"s", "S", "sx"};

// The words of a response file, split as compilers do.
Words words_of(const std::string& text) {
  Words words;
  std::string word;
  bool is_inside = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_space = c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
    if (c == '\\' && i + 1 < text.size()) {
      word += text[++i];
      is_inside = true;
    } else if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      is_inside = true;
    } else if (!is_space) {
      word += c;
      is_inside = true;
    } else if (is_inside) {
      words.push_back(word);
      word.clear();
      is_inside = false;
    }
  }
  if (is_inside) words.push_back(word);
  return words;
}

Words expanded(const Words& words, int depth) {
  Words all;
  for (const std::string& word : words) {
    std::ifstream file;
    if (word.size() > 1 && word[0] == '@' && depth < kNestingMax) file.open(word.substr(1));
    if (!file.is_open()) {
      all.push_back(word);
      continue;
    }
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const Words inner = expanded(words_of(text), depth + 1);
    all.insert(all.end(), inner.begin(), inner.end());
  }
  return all;
}

void refuse(Request& request, const std::string& why) {
  if (request.refusal.empty()) request.refusal = why;
}

void read_input(Request& request, const std::string& word, const std::string& language) {
  const size_t dot = word.rfind('.');
  const std::string suffix = dot == std::string::npos ? "" : word.substr(dot + 1);
  const bool is_named = !language.empty() && language != "none";
  const bool is_source =
      is_named || word == "-" || is_one_of(suffix, kSources) || is_one_of(suffix, kAssembler);
  request.compiles = request.compiles || is_source;
  const bool takes_words =
      is_named ? begins(language, "c") && language.find("output") == std::string::npos
               : is_source && !is_one_of(suffix, kWithoutWords) && !is_one_of(suffix, kAssembler);
  request.wants_words = request.wants_words || takes_words;
}

// With these options no program is made.
constexpr std::array<std::string_view, 17> kStopsEarly = {
    "-c",           "-S",         "-E",           "-M",
    "-MM",          "-###",       "-emit-ast",    "-fsyntax-only",
    "--compile",    "--assemble", "--preprocess", "--dependencies",
    "--precompile", "--analyze",  "-emit-pch",    "--user-dependencies",
    "-rewrite-objc"};

// Looks for what occ cannot do, whatever is compiled.
void look_for_refusal(Request& request, const std::string& word) {
  constexpr std::array<std::string_view, 6> kOld = {
      "-ansi", "-std=c89", "-std=c90", "-std=iso9899:1990", "-std=iso9899:199409", "-std=c++98"};
  if (word == "-shared" || word == "--shared")
    refuse(request, word +
                        ": dlm data belongs to a program, at fixed addresses; make libraries "
                        "with the compiler itself, and link the program with occ");
  else if (word == "-static-pie")
    refuse(request, word + ": dlm data is at fixed addresses; use -static");
  else if (word == "-m32" || word == "-mx32" || word == "-m16")
    refuse(request, word + ": dlm data needs addresses of 64 bits; leave it out");
  else if (begins(word, "-mcmodel="))
    refuse(request, word + ": occ chooses the code model (medium); leave it out");
  else if (word == "-fuse-ld=gold" || word == "-fuse-ld=mold")
    refuse(request, word + ": that linker does not take a script beside its own; use bfd or lld");
  else if (is_one_of(word, kOld))
    refuse(request, word +
                        ": what occ includes needs comments with //; use -std=gnu89 or a later "
                        "standard");
}

// An option passed to the linker overrides the compiler's own, and occ would then look at another
// file.
void look_for_output(Request& request, const std::string& word) {
  if (begins(word, "-o") || word == "--output" || begins(word, "--output="))
    refuse(request, word + " for the linker: name the program with -o, where occ sees it");
}

void look_for_output_in_list(Request& request, const std::string& words) {
  std::istringstream list(words);
  for (std::string word; std::getline(list, word, ',');) look_for_output(request, word);
}

void read_option(Request& request, const std::string& word, bool* stops_early) {
  look_for_refusal(request, word);
  if (begins(word, "-Wl,")) look_for_output_in_list(request, word.substr(4));
  if (is_one_of(word, kStopsEarly)) *stops_early = true;
  if (word == "-r" || word == "--relocatable" || word == "-Wl,-r") request.is_partial = true;
  if (word == "-fPIC" || word == "-fpic") request.is_position_independent = true;
  if (word == "-fno-PIC" || word == "-fno-pic" || word == "-fPIE" || word == "-fpie" ||
      word == "-fno-pie" || word == "-fno-PIE")
    request.is_position_independent = false;
  if (word == "-static" || word == "--static") request.is_static = true;
  if (begins(word, "-fuse-ld=lld")) request.has_lld = true;
  if (begins(word, "-flto")) request.has_lto = true;
  if (begins(word, "-fdiagnostics-color") || begins(word, "-fno-diagnostics-color") ||
      begins(word, "-fcolor-") || begins(word, "-fno-color-"))
    request.has_colour = true;
  if (begins(word, "-fsanitize=")) {
    const std::string kinds = "," + word.substr(word.find('=') + 1) + ",";
    const bool is_thread = kinds.find(",thread,") != std::string::npos;
    request.has_thread_sanitizer = request.has_thread_sanitizer || is_thread;
    if (is_thread) request.is_shadowed = true;
    if (kinds.find(",memory,") != std::string::npos)
      refuse(request,
             word + ": the library is not compiled for it; use address, undefined or thread");
  }
}

}  // namespace

Request read_request(const Words& arguments) {
  Request request;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (i > 0 && is_one_of(arguments[i - 1], kWithValue))
      request.words.push_back(word);  // -Xlinker --version
    else if (word == "--help")
      request.wants_help = true;
    else if (word == "--version")
      request.wants_version = true;
    else if (word == "--show")
      request.wants_show = true;
    else if (begins(word, "--cc="))
      request.compiler = word.substr(5);
    else
      request.words.push_back(word);
  }
  bool stops_early = false, has_input = false;
  std::string language;
  const Words all = expanded(request.words, 0);
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string& word = all[i];
    const bool has_value = is_one_of(word, kWithValue) && i + 1 < all.size();
    if (word.size() < 2 || word[0] != '-') {
      has_input = true;
      read_input(request, word, language);
      continue;
    }
    read_option(request, word, &stops_early);
    if (begins(word, "-l")) has_input = true;
    if (word == "-Xlinker" && has_value) look_for_output(request, all[i + 1]);
    if (begins(word, "--output=") || (word == "--output" && has_value))
      request.output = has_value ? all[i + 1] : word.substr(9);
    else if (begins(word, "-o"))
      request.output = has_value ? all[i + 1] : word.substr(2);
    else if (begins(word, "-x")) {
      language = has_value ? all[i + 1] : word.substr(2);
      request.has_language = true;
    }
    if (has_value) ++i;
  }
  request.links = has_input && !stops_early;
  return request;
}

}  // namespace occ
