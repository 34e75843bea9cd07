// Files that records of runs are appended to, and others.
#include "core/base/record_file.h"

#include <fstream>

#include "core/tests/conformance/scene.h"

namespace outcore {
namespace {

using namespace scene;

TEST(RecordFile, OfSomethingElseStaysAsItIs) {
  const Folder folder;
  const std::string important = folder / "important.json";
  RuntimeOptions options = options_with(kMiB);
  options.report_file = important;
  for (const std::string& text : {std::string("{\"important\": 1}\n"), std::string("[1]"),
                                  std::string("{\"format\":\"outcore-table\"}\n")}) {
    std::ofstream(important) << text;
    const Result<Runtime> runtime = Runtime::start(options);
    ASSERT_FALSE(runtime.ok()) << text;
    EXPECT_TRUE(runtime.message().ends_with("it is not a record of runs: name another file"))
        << runtime.message();
    std::ifstream left(important);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(left), {}), text);
  }
  // Of an earlier run, whole or cut short.
  for (const char* const text :
       {"", "{\"form", "{\"format\": \"outcore-run\", \"version\": 1}\n"}) {
    std::ofstream(important) << text;
    EXPECT_TRUE(Runtime::start(options).ok()) << text;
  }
}

}  // namespace
}  // namespace outcore
