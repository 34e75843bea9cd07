// OccTest: compiles programs of heaps/tests/occ/programs with occ, by gcc and by clang, and runs
// them.
#pragma once

#include <unistd.h>

#include <string>

#include "cli/tests/command_line.h"

namespace outcore::occ {

using outcore::cli::Outcome;

class OccTest : public outcore::cli::CommandTest {
 protected:
  static std::string command() { return occ_path(); }
  static std::string program(const std::string& name) {
    return scene::source_folder() + "/heaps/tests/occ/programs/" + name;
  }
  static std::string example() { return scene::source_folder() + "/examples/04_matrix_vector.c"; }
  // occ with these arguments, in the test's folder. What is linked and not to be debugged is linked
  // without what the library has for debuggers, 70 MB a program: an eighth of the time.
  Outcome occ(const std::string& arguments) const {
    const auto has = [&](const char* word) { return arguments.find(word) != std::string::npos; };
    const bool is_plain = has("-o made") && !has("-g ") && !has("-c ") && !has("--show");
    return outcome_of("cd " + dir() + " && " + command() + " " + arguments +
                      (is_plain ? " -Wl,-S" : ""));
  }
  // The program that was made there, under these settings ("OUTCORE_BUDGET=32M …").
  Outcome run_made(const std::string& line, const std::string& settings) const {
    return outcome_of("cd " + dir() + " && env OUTCORE_CONFIG= " + settings + " ./" + line);
  }
  static bool is_there(const std::string& tool) {
    return ::system(("command -v " + tool + " >/dev/null 2>&1").c_str()) == 0;
  }
};

// With both compilers.
class OccCompilerTest : public OccTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    OccTest::SetUp();
    if (!is_there(GetParam())) GTEST_SKIP() << GetParam() << " is not installed";
  }
  Outcome compile(const std::string& arguments) const {
    return occ(std::string("--cc=") + GetParam() + " " + arguments);
  }
  // Compiles and runs it; the program says that all is right.
  void expect_right(const std::string& arguments, const std::string& settings,
                    const std::string& words = "") {
    const Outcome compiled = compile(arguments + " -o made");
    ASSERT_EQ(compiled.status, 0) << compiled.err;
    EXPECT_EQ(compiled.err, "");
    const Outcome outcome = run_made("made " + words, settings);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "right\n") << outcome.err;
  }
};

}  // namespace outcore::occ
