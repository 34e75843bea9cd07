#include "core/tests/store/store_case.h"

#include "core/store/overlay_store.h"
#include "core/store/scratch_store.h"

namespace outcore::store_test {
namespace {

// A base that ends within the overlay, on a file of zeros.
Result<std::shared_ptr<Store>> make_overlay_over_file(const Folder& folder, uint64_t size_bytes) {
  OpenOptions options;
  options.is_writable = options.may_create = true;
  options.size_bytes = size_bytes / 3 * 2;
  auto base = open_store(folder / "base", options);
  if (!base) return base.error();
  auto scratch = store::ScratchStore::open({folder.path(), size_bytes, 0, 0});
  if (!scratch) return scratch.error();
  return store::make_overlay(base.value(), scratch.value(), 0, size_bytes);
}

// A store with only the three functions that are required.
class PlainStore final : public Store {
 public:
  explicit PlainStore(uint64_t size_bytes) : bytes_(size_bytes) {}
  uint64_t size_bytes() const override { return bytes_.size(); }
  int read(uint64_t offset, std::span<std::byte> into) override {
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(offset), into.size(), into.begin());
    return 0;
  }
  int write(uint64_t offset, std::span<const std::byte> from) override {
    std::copy(from.begin(), from.end(), bytes_.begin() + static_cast<ptrdiff_t>(offset));
    return 0;
  }
  std::string uri() const override { return "plain:"; }

 private:
  Bytes bytes_;
};

Result<std::shared_ptr<Store>> make_plain(const Folder&, uint64_t size_bytes) {
  return std::shared_ptr<Store>(std::make_shared<PlainStore>(size_bytes));
}

}  // namespace

std::vector<StoreCase> all_cases() {
  return {
      by_uri("File", "file:", ""),
      by_uri("BufferedFile", "file:", "?direct=off"),
      by_uri("ThrottledFile", "file:", "?write_concurrency=1&read_concurrency=3"),
      by_uri("SparseOfSmallSegments", "sparse:", "?segment=16k"),
      by_uri("SparseOfOneSegment", "sparse:", ""),
      by_uri("Scratch", "scratch:", ""),
      by_uri("Memory", "memory:", ""),
      {"Overlay", make_overlay_over_file, false},
      {"Plain", make_plain, false},
  };
}

}  // namespace outcore::store_test
