#include "core/runtime/config_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace outcore::runtime {
namespace {

class FindConfigFile : public testing::Test {
 protected:
  FindConfigFile() {
    std::string name = testing::TempDir() + "/outcore-home-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    home_ = name;
  }
  ~FindConfigFile() override { std::filesystem::remove_all(home_); }
  std::string find(const char* config, const char* home) const {
    return find_config_file([=](const char* name) {
      return std::string_view(name) == "OUTCORE_CONFIG" ? config : home;
    });
  }
  // What is found if neither the variable nor the home folder has one.
  static std::string of_the_system() {
    return std::filesystem::exists("/etc/outcore.toml") ? "/etc/outcore.toml" : "";
  }
  std::string home_;
};

TEST_F(FindConfigFile, TheVariableDecidesEvenIfTheFileIsAbsent) {
  EXPECT_EQ(find("/no/such.toml", home_.c_str()), "/no/such.toml");
}

TEST_F(FindConfigFile, TheVariableSetToNothingMeansNone) { EXPECT_EQ(find("", home_.c_str()), ""); }

TEST_F(FindConfigFile, TheFileInTheHomeIsFound) {
  EXPECT_EQ(find(nullptr, home_.c_str()), of_the_system());
  std::filesystem::create_directory(home_ + "/.config");
  std::ofstream(home_ + "/.config/outcore.toml") << "keepers = 1\n";
  EXPECT_EQ(find(nullptr, home_.c_str()), home_ + "/.config/outcore.toml");
}

TEST_F(FindConfigFile, WithoutAHomeTheSystemsIsLookedFor) {
  EXPECT_EQ(find(nullptr, nullptr), of_the_system());
  EXPECT_EQ(find(nullptr, ""), of_the_system());
}

}  // namespace
}  // namespace outcore::runtime
