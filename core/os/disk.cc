#include "core/os/disk.h"

#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace outcore::os {

uint64_t disk_of(dev_t device) {
  const std::string number = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  std::error_code error;
  const auto node = std::filesystem::canonical("/sys/dev/block/" + number, error);
  unsigned of_disk = major(device), within = minor(device);
  if (!error && std::filesystem::exists(node / "partition", error)) {
    char colon = 0;
    unsigned first = 0, second = 0;
    if (std::ifstream file(node.parent_path() / "dev"); file >> first >> colon >> second)
      of_disk = first, within = second;
  }
  return (uint64_t{of_disk} << 32 | within) + 1;
}

}  // namespace outcore::os
