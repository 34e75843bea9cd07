// RegionMapping: a persistent heap in a region of a runtime, within its budget.
#pragma once

#include <memory>
#include <utility>

#include "heaps/persistent/persistent_mapping.h"
#include "outcore/runtime.h"

namespace outcore::heap::persistent {

class RegionMapping final : public Mapping {
 public:
  // Errors: those of Runtime::map.
  static Result<std::unique_ptr<Mapping>> map(Runtime& runtime, std::shared_ptr<Store> store,
                                              const MapOptions& options) {
    Result<Region> mapped = runtime.map(std::move(store), options);
    if (!mapped) return mapped.error();
    return std::unique_ptr<Mapping>(new RegionMapping(std::move(mapped).value()));
  }

  bool is_mapped() const override { return region_.is_mapped(); }
  std::byte* data() const override { return region_.data(); }
  uint64_t size_bytes() const override { return region_.size_bytes(); }
  const std::string& uri() const override { return region_.uri(); }
  Region* region() override { return &region_; }

  Status write(uint64_t offset, std::span<const std::byte> from) override {
    return region_.write(offset, from);
  }
  Status flush() override { return region_.flush(); }
  Status discard(uint64_t offset, uint64_t size_bytes) override {
    return region_.discard(offset, size_bytes);
  }
  Status grow(uint64_t size_bytes) override { return region_.grow(size_bytes); }
  void prepare(uint64_t offset, uint64_t size_bytes) noexcept override {
    static_cast<void>(region_.prepare(offset, size_bytes));
  }
  Status unmap(bool force) override { return region_.unmap(force); }

 private:
  explicit RegionMapping(Region region) : region_(std::move(region)) {}
  Region region_;
};

}  // namespace outcore::heap::persistent
