// Image: the metadata of a persistent heap as the store contains it: runs, bitmaps and names. It is
// read here to open and to check a heap, and nothing that was read is trusted before it was checked
// here. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heaps/persistent/persistent_format.h"
#include "outcore/store.h"

namespace outcore::heap::persistent {

struct Name {
  std::string name, type;
  uint64_t offset = 0, count = 0, element_bytes = 0;
  uint32_t alignment = 0, version = 0;
};

struct Image {
  std::vector<Run> runs;        // sorted; they do not overlap
  std::vector<uint64_t> words;  // bitmaps of the partial slabs, in the order of the runs; 1: in use
  std::vector<Name> names;

  uint64_t encoded_bytes() const;
  std::vector<std::byte> encode() const;
};

// What was found to be wrong, one line each. The number of lines is bounded.
class Findings {
 public:
  static constexpr size_t kLinesMax = 100;
  void add(std::string line) {
    if (lines_.size() < kLinesMax) lines_.push_back(std::move(line));
  }
  bool is_empty() const { return lines_.empty(); }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

// Decodes the bytes, and reports all that is wrong. If nothing is, the image is sound: every run is
// inside of `size_bytes`, and every name belongs to an object that is in use.
Image decode_image(std::span<const std::byte> bytes, uint64_t size_bytes, Findings* findings);

// The same for the metadata that the header names in the store. Errors: those of its reads, ENOMEM.
Result<Image> read_image(Store& store, const Header& header, Findings* findings);

}  // namespace outcore::heap::persistent
