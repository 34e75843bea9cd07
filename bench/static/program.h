// Program: what the programs of static arrays have in common: their words, their time, their line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "outcore/result.h"

// Arrays are static, so the class is a word for the compiler.
#ifndef NAS_CLASS
#error "compile with -DNAS_CLASS=S, W, A or B"
#endif
#define STATIC_TEXT_OF(word) #word
#define STATIC_TEXT(word) STATIC_TEXT_OF(word)

namespace outcore::bench {

inline constexpr std::string_view kNasClass = STATIC_TEXT(NAS_CLASS);

// Used by main() alone, which has one thread, as the paper's programs have.
class Program {
 public:
  static constexpr unsigned kThreads = 1;

  // What main() got: nothing, or --passes N, `passes_min` or more. Ends the program where it is
  // something else: status 2, and one line. For --size it prints `data_bytes`, those of the arrays,
  // and ends, too.
  Program(const char* name, uint64_t data_bytes, unsigned usual_passes, int argc, char** argv,
          unsigned passes_min = 1);

  unsigned passes() const { return passes_; }
  // What is timed lies between them.
  void start();
  void stop();
  // Prints a line of JSON, with the names of `outcore bench … --json`, or on stderr what is wrong
  // with the answer. `more`: what else the line has, by name. Returns the exit status.
  // REQUIRES: stop()
  int finish(double work, const char* unit, const Status& answer,
             const std::vector<std::pair<std::string, double>>& more = {}) const;

 private:
  // Of the runtime that has the arrays; all 0 in plain memory, which has none.
  struct Usage {
    uint64_t budget_bytes = 0, page_bytes = 0, fills = 0, read_bytes = 0, written_bytes = 0;
  };
  static Usage usage();
  [[noreturn]] void refuse(const char* word, const std::string& why) const;

  const char* name_;
  uint64_t data_bytes_;
  unsigned passes_;
  Usage before_, after_;
  uint64_t start_ns_ = 0;
  double seconds_ = 0;
};

}  // namespace outcore::bench
