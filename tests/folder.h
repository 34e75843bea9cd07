// Folder: a temporary folder of a test, gone with all that is in it at the end.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace outcore::scene {

// Where tests put files: what TMPDIR says, else memory, which no other load slows down.
inline std::string usual_parent() {
  if (const char* variable = ::getenv("TMPDIR"); variable != nullptr) return variable;
  return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/var/tmp";
}
// The same for tests that are about disks.
inline std::string disk_parent() {
  const char* variable = ::getenv("TMPDIR");
  return variable != nullptr ? variable : "/var/tmp";
}

class Folder {
 public:
  explicit Folder(const std::string& parent = usual_parent())
      : path_(parent + "/outcore-test-XXXXXX") {
    EXPECT_NE(::mkdtemp(path_.data()), nullptr) << path_;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace outcore::scene
