// ResolveScene: options as they are resolved with a made-up environment, config file and machine.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "core/runtime/resolved_options.h"

namespace outcore::runtime {

class ResolveScene : public testing::Test {
 protected:
  static constexpr uint64_t kMebibyte = uint64_t{1} << 20;

  ResolveScene() {
    std::string name = testing::TempDir() + "/outcore-options-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~ResolveScene() override { std::filesystem::remove_all(folder_); }

  void config(const std::string& text) {
    config_ = folder_ + "/outcore.toml";
    std::ofstream(config_) << text;
  }
  Result<ResolvedOptions> resolve(const RuntimeOptions& options = {}) const {
    const EnvironmentLookup lookup = [this](const char* name) -> const char* {
      const auto found = environment_.find(name);
      return found == environment_.end() ? nullptr : found->second.c_str();
    };
    return resolve_options(options, lookup, config_, [] {
      return os::MemoryAvailable{1000 * kMebibyte, "in cgroup /x", 2048 * kMebibyte};
    });
  }
  ResolvedOptions resolved(const RuntimeOptions& options = {}) const {
    Result<ResolvedOptions> result = resolve(options);
    EXPECT_TRUE(result.ok()) << result.message();
    return result ? result.value() : ResolvedOptions{};
  }
  std::string refusal(const RuntimeOptions& options = {}) const {
    Result<ResolvedOptions> result = resolve(options);
    EXPECT_FALSE(result.ok());
    if (result) return "";
    EXPECT_EQ(result.code(), EINVAL);
    EXPECT_EQ(result.message().find('\n'), std::string::npos) << "one line";
    return result.message();
  }

  std::string folder_, config_;
  std::map<std::string, std::string> environment_;
};

}  // namespace outcore::runtime
