// occ: compiles and links C and C++ programs whose dlm data may be larger than memory.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "heaps/occ/compiler.h"
#include "heaps/occ/own_calls.h"
#include "heaps/occ/places.h"
#include "heaps/occ/request.h"
#include "heaps/occ/section.h"
#include "heaps/occ/trace.h"

namespace occ {
namespace {

constexpr const char* kHelp =
    R"(occ: compiles and links C and C++ programs whose dlm data may be larger than memory

  occ prog.c -o prog            as cc would; occ++ as c++ would
  occ -c part.c; occ part.o -o prog

In the program:
  dlm double a[N][N], x[N];     arrays (also static, extern, structs) that read zero at the start
  double* y = (double*)dlm_alloc(n);  dlm_free(y);

Options of occ; all others are the compiler's:
  --cc=COMPILER   gcc, clang, "ccache gcc-12" …: else OCC_CC (for occ++ OCC_CXX), else cc (c++)
  --show          print the command instead of running it
  --help, --version

When the program runs, the environment says where its data goes:
  OUTCORE_STORE   scratch:FOLDER?reserve=no (default, in TMPDIR, else /var/tmp), or another URI
  OUTCORE_BUDGET  memory for it: 4G, 25% (default: half of what is available)
  OUTCORE_PAGE    64k, 1M …; and every other option of Outcore

Needs GNU ld or lld, on x86-64. Not for -shared: make libraries with the compiler itself.
)";

// The functions of heaps/occ/transfers.c.
constexpr const char* kTransfers[] = {
    "read",       "write",       "pread",         "pwrite",     "pread64",    "pwrite64",
    "readv",      "writev",      "recv",          "send",       "fread",      "fwrite",
    "__read_chk", "__pread_chk", "__pread64_chk", "__recv_chk", "__fread_chk"};

// Inserts words before a "--", because everything behind it is a file.
void append(Words* command, const Words& words) {
  auto at = command->end();
  for (auto word = command->begin(); word != command->end(); ++word)
    if (*word == "--") {
      at = word;
      break;
    }
  command->insert(at, words.begin(), words.end());
}

bool wants_colour() {
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && terminal != nullptr &&
         std::string_view(terminal) != "dumb" && std::getenv("NO_COLOR") == nullptr;
}

Words whole_command(const Request& request, const Places& places, bool is_cxx) {
  Words command = compiler_command(request.compiler, is_cxx);
  if (request.wants_words)
    append(&command, {"-DOUTCORE_OCC=1", "-include", places.include + "/outcore/dlm.h"});
  const bool is_program = request.links && !request.is_partial;
  if (is_program) append(&command, {places.parts + "/start.o"});
  if (is_program && request.has_thread_sanitizer)
    append(&command, {places.parts + "/start_thread.o"});
  if (!request.has_colour && wants_colour() && (request.compiles || request.links))
    append(&command, {"-fdiagnostics-color=always"});
  command.insert(command.end(), request.words.begin(), request.words.end());
  if (request.compiles || (request.links && request.has_lto)) {
    append(&command, {"-mcmodel=medium"});
    if (!request.is_position_independent) append(&command, {"-fno-pie"});
  }
  if (request.compiles) {
    // Gives large variables without the word sections with their own names, so that they are not
    // taken for dlm data.
    append(&command, {"-fdata-sections"});
    if (request.wants_words) append(&command, {"-idirafter", places.include});
  }
  if (!is_program) return command;
  if (request.has_language) append(&command, {"-x", "none"});
  if (!request.is_static) append(&command, {"-no-pie"});
  append(&command, {"-Xlinker", "-T", "-Xlinker", places.parts + "/dlm.ld"});
  // Objects with -fPIC find dlm data through the table of addresses: direct references would not
  // reach it.
  if (!request.has_lld) append(&command, {"-Wl,--no-relax"});
  if (request.is_shadowed) {
    char text[64];
    std::snprintf(text, sizeof text, "-Wl,--section-start=.outcore_dlm=0x%llx",
                  static_cast<unsigned long long>(kFirstLow));
    append(&command, {text});
  }
  append(&command, {places.parts + "/transfers.o"});
  for (const char* call : kTransfers) append(&command, {std::string("-Wl,--wrap=") + call});
  append(&command, places.link);
  return command;
}

int run(const std::string& name, const Words& arguments) {
  const Request request = read_request(arguments);
  const bool is_cxx = name.find("++") != std::string::npos;
  if (request.wants_help) {
    const bool is_printed = std::fputs(kHelp, stdout) >= 0 && std::fflush(stdout) == 0;
    if (!is_printed)
      std::fprintf(stderr, "occ: write standard output: %s; send it elsewhere\n",
                   ::strerrordesc_np(errno));
    return is_printed ? 0 : 1;
  }
  if (request.wants_version) {
    std::printf("occ (Outcore) %s, with\n", OUTCORE_VERSION);
    std::fflush(stdout);
    Words command = compiler_command(request.compiler, is_cxx);
    command.push_back("--version");
    return run_compiler(command);
  }
  if (arguments.empty()) {
    std::fputs("occ: no input files; occ --help lists what it takes\n", stderr);
    return 2;
  }
  if (!request.refusal.empty()) {
    std::fprintf(stderr, "occ: %s\n", request.refusal.c_str());
    return 1;
  }
  const Places places = find_places();
  if (!places.missing.empty()) {
    std::fprintf(stderr, "occ: %s is not there: build or install Outcore again\n",
                 places.missing.c_str());
    return 1;
  }
  const Words command = whole_command(request, places, is_cxx);
  if (request.wants_show) {
    std::puts(shell_line(command).c_str());
    return 0;
  }
  const Trace before(request.output);
  const int status = run_compiler(command);
  if (status != 0 || !request.links || request.is_partial) return status;
  if (Trace(request.output) == before) return 0;  // the compiler did not make this program
  std::string wrong = refuse_own_calls(request.output, request.words);
  if (wrong.empty()) wrong = unload_section(request.output);
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "occ: %s\n", wrong.c_str());
  ::unlink(request.output.c_str());  // it would not start, or with other memory than was asked for
  return 1;
}

}  // namespace
}  // namespace occ

int main(int argc, char** argv) {
  const std::string path = argc > 0 ? argv[0] : "occ";
  return occ::run(path.substr(path.rfind('/') + 1), occ::Words(argv + (argc > 0), argv + argc));
}
