// FakeRoot: a folder with made-up proc and sys trees; the destructor removes it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace outcore::os {

class FakeRoot {
 public:
  FakeRoot() {
    std::string name = testing::TempDir() + "/outcore-root-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  const std::string& path() const { return path_; }

  FakeRoot& file(const std::string& name, const std::string& text) {
    const std::filesystem::path at = path_ + name;
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text;
    return *this;
  }

  FakeRoot& machine(uint64_t available_mib) {
    return file("/proc/meminfo",
                "MemTotal:       99999999 kB\nMemFree:            1024 kB\nMemAvailable:   " +
                    std::to_string(available_mib * 1024) + " kB\n");
  }

 private:
  std::string path_;
};

}  // namespace outcore::os
