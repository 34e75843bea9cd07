// Symbols: from a place in a file of code to its function and line. One thread.
//
// It asks elfutils' libdw, which is loaded when it is first needed: without it, and for files
// without symbols, places stay numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace outcore::cli {

struct CodePlace {
  std::string function;  // demangled, without arguments; empty: not known
  std::string file;      // of the source; empty: there is no debugging information
  int line = 0;
};

class Symbols {
 public:
  Symbols();
  ~Symbols();
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;

  // Why places stay numbers; empty: libdw is there.
  const std::string& complaint() const;
  // `offset`: in the file.
  CodePlace find(const std::string& module, uint64_t offset);

 private:
  struct Library;
  const std::unique_ptr<Library> library_;
};

}  // namespace outcore::cli
