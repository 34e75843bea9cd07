// CommandLine: runs the built command as a child, and gives what it printed and how it ended.
#pragma once

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "gtest/gtest.h"
#include "tests/places.h"

namespace outcore::cli {

using base::Json;
using scene::command_path;

struct Outcome {
  int status = -1;  // exit status; -1 if a signal ended it
  std::string out, err;

  size_t error_lines() const {
    return static_cast<size_t>(std::count(err.begin(), err.end(), '\n'));
  }
  // Each line of standard output as JSON; a line that is none gives null.
  std::vector<Json> lines() const {
    std::vector<Json> all;
    std::istringstream text(out);
    for (std::string line; std::getline(text, line);) all.push_back(Json::parse_or_null(line));
    return all;
  }
};

// A directory of the test's own, which goes with it.
class CommandTest : public testing::Test {
 protected:
  CommandTest() {
    std::string name = testing::TempDir() + "outcore-cli-XXXXXX";
    dir_ = mkdtemp(name.data()) != nullptr ? name : "";
  }
  ~CommandTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
  }
  void SetUp() override { ASSERT_FALSE(dir_.empty()) << "no directory for tests"; }

  // occ, beside the command.
  static std::string occ_path() {
    return command_path().substr(0, command_path().rfind('/')) + "/occ";
  }
  // `arguments` as a shell would take them.
  Outcome run(const std::string& arguments) const {
    return outcome_of(command_path() + " " + arguments);
  }
  // Lines of a shell, which runs in the directory.
  Outcome run_lines(const std::string& shell, const std::string& lines) const {
    std::ofstream(path("line")) << lines << '\n';
    return outcome_of("cd " + dir_ + " && " + shell + " ./line");
  }
  // One command of sh.
  Outcome outcome_of(const std::string& command) const {
    const std::string errors = dir_ + "/stderr";
    Outcome outcome;
    FILE* const pipe = popen((command + " 2>" + errors).c_str(), "r");
    if (pipe == nullptr) return outcome;
    char text[4096];
    for (size_t n = 0; (n = fread(text, 1, sizeof text, pipe)) != 0;) outcome.out.append(text, n);
    const int status = pclose(pipe);
    if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
    std::ifstream file(errors);
    outcome.err.assign(std::istreambuf_iterator<char>(file), {});
    return outcome;
  }
  // Some library that is there: the one of mathematics.
  static std::string a_library() {
    Dl_info facts{};
    const bool is_found = ::dladdr(reinterpret_cast<void*>(&::fork), &facts) != 0;
    const std::string c_library = is_found ? facts.dli_fname : "";
    return std::filesystem::canonical(c_library).parent_path() / "libm.so.6";
  }
  std::string path(const std::string& name) const { return dir_ + "/" + name; }
  const std::string& dir() const { return dir_; }

 private:
  std::string dir_;
};

}  // namespace outcore::cli
