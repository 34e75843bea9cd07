// Mapper: makes a region of a store, with the page cache that it needs, and ends a region.
//
// Any thread; map() and unmap() take the mapping lock, all else is called under it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/paging/page_cache.h"
#include "core/runtime/fault_sources.h"
#include "core/runtime/runtime_impl.h"
#include "core/runtime/writer_claim.h"

namespace outcore::runtime {

class Mapper {
 public:
  explicit Mapper(Runtime::Impl& runtime) : runtime_(runtime) {}

  // `lent`: over these addresses of the program; nullptr: at addresses of its own.
  Result<std::unique_ptr<Region::Impl>> map(std::shared_ptr<Store> store, const std::string& uri,
                                            const MapOptions& options,
                                            const Runtime::Impl::Lent* lent = nullptr);
  // `force`: also if bytes cannot be stored, which are lost then. The error says so.
  Status unmap(Region::Impl& region, bool force);
  // The cache of the key goes, if nobody maps it any more.
  void drop_cache(const std::string& key);

  static void set_delivery(paging::PageCache& cache, Delivery delivery);

 private:
  // No other runtime of this process may write the store's bytes until its cache is dropped.
  Status claim(const Store& store, const std::string& uri);
  Result<paging::PageCache*> cache_for(std::shared_ptr<Store> store, const std::string& uri,
                                       const MapOptions& options, uint64_t end_bytes,
                                       const Runtime::Impl::Lent* lent, std::string* key);
  Result<std::unique_ptr<paging::PageCache>> make_cache(std::shared_ptr<Store> store,
                                                        const std::string& uri,
                                                        const MapOptions& options,
                                                        uint64_t end_bytes,
                                                        const Runtime::Impl::Lent* lent);
  Status join(paging::PageCache& cache, const std::shared_ptr<Store>& store,
              const MapOptions& options);
  Status share_frames(paging::PageCache& cache) const;
  Status make_frames(paging::PageCache& cache, const Mechanism& mechanism) const;
  // What speaks against the map, asked before anything is changed for it.
  Status may_map(const Store& store, const std::string& uri, const MapOptions& options,
                 uint64_t reserve_bytes, const Runtime::Impl::Lent* lent) const;
  static Result<std::byte*> place(const MapOptions& options, uint64_t bytes, uint64_t page_bytes,
                                  const Runtime::Impl::Lent* lent);
  Status check_place(const MapOptions& options, uint64_t reserve_bytes) const;
  void release_place(const Region::Impl& region);

  Runtime::Impl& runtime_;
  // Of the stores that are mapped for writing, as long as they are.
  std::map<std::string, WriterClaim> claims_;
  uint64_t nameless_ = 0;
};

}  // namespace outcore::runtime
