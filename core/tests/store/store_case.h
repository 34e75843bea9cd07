// StoreCase: one kind of store for the conformance suite; and folders and bytes for tests.
#pragma once

#include <stdlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "outcore/store.h"
#include "tests/folder.h"
#include "tests/random_bytes.h"

namespace outcore::store_test {

struct Folder : scene::Folder {
  explicit Folder(const std::string& parent = scene::disk_parent()) : scene::Folder(parent) {}
};

using Bytes = std::vector<std::byte>;
using scene::random_bytes;

inline void write_file(const std::string& path, const Bytes& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Memory aligned to a page, as Outcore's own buffers are.
class AlignedBytes {
 public:
  explicit AlignedBytes(size_t size_bytes)
      : size_bytes_(size_bytes),
        bytes_(static_cast<std::byte*>(::aligned_alloc(4096, (size_bytes + 4095) / 4096 * 4096))) {}
  ~AlignedBytes() { ::free(bytes_); }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  std::span<std::byte> span() const { return {bytes_, size_bytes_}; }
  std::byte* data() const { return bytes_; }

 private:
  size_t size_bytes_;
  std::byte* bytes_;
};

struct StoreCase {
  std::string name;
  // Makes a store of this many bytes, all zero.
  std::function<Result<std::shared_ptr<Store>>(const Folder& folder, uint64_t size_bytes)> make;
  bool can_resize = true;
};

// A store with the URI `before`, a path in the folder, `after`.
inline StoreCase by_uri(const std::string& name, const std::string& before,
                        const std::string& after) {
  return {name, [before, after](const Folder& folder, uint64_t size_bytes) {
            OpenOptions options;
            options.is_writable = options.may_create = true;
            options.size_bytes = size_bytes;
            options.scratch_dir = folder.path();
            const std::string path =
                before == "scratch:" || before == "memory:" ? "" : folder / "store";
            return open_store(before + path + after, options);
          }};
}

// Each program that runs the suite defines its cases.
std::vector<StoreCase> all_cases();

inline std::shared_ptr<Store> open_file(const std::string& uri, OpenOptions options = {}) {
  auto store = open_store(uri, options);
  EXPECT_TRUE(store.ok()) << store.message();
  return store.value();
}

}  // namespace outcore::store_test
