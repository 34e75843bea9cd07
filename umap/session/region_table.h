// RegionTable: the regions of umap(), by their addresses, and who uses them.
//
// Whoever calls a region has a Use of it, not the table's lock: the store below may be slow, or
// wait for what another thread of the program has. A region is ended by who takes it out of the
// table, which waits until nobody else uses it. Any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "outcore/region.h"
#include "outcore/runtime.h"
#include "umap/session/claims.h"
#include "umap/session/pinned_ranges.h"
#include "umap/session/shared_runtime.h"
#include "umap/stores/program_store.h"

namespace outcore::umapped {

// What umap() has made. The members end from the last to the first.
struct MappedRegion {
  SharedRuntime::Use runtime;
  Claims::Claim addresses, pages;
  Reservation reservation;                      // if the program chose the address
  std::shared_ptr<ProgramStore> program_store;  // nullptr: its store is not the program's own
  Region region;
  PinnedRanges pins;

  bool contains(const std::byte* address) const;  // REQUIRES: it is mapped
};

class RegionTable {
  struct Entry {
    std::unique_ptr<MappedRegion> mapped;
    uint32_t users = 0;
    bool is_leaving = false;  // somebody takes it out: nobody may begin to use it
  };
  using Entries = std::map<const std::byte*, Entry>;  // by first byte

 public:
  // Keeps a region mapped while it is called.
  class Use {
   public:
    Use() = default;
    Use(Use&& other) noexcept;
    Use& operator=(Use&& other) noexcept;
    ~Use() { end(); }
    explicit operator bool() const { return of_ != nullptr; }
    MappedRegion* operator->() const { return entry_->second.mapped.get(); }  // REQUIRES: not empty

   private:
    friend class RegionTable;
    Use(RegionTable* of, Entries::iterator entry) : of_(of), entry_(entry) {}
    void end();
    RegionTable* of_ = nullptr;  // nullptr: empty
    Entries::iterator entry_;
  };

  // REQUIRES: the region is mapped, and none in the table begins at its first byte.
  void add(std::unique_ptr<MappedRegion> mapped);

  // Each is empty if there is no such region, or if it is leaving.
  Use use_with(const std::byte* address);   // in which the address lies
  Use use_at(const std::byte* address);     // that begins there
  Use use_after(const std::byte* address);  // the first that begins after it

  // Takes the region out, once this use is the only one. nullptr: another thread does so. REQUIRES:
  // the use is not empty.
  std::unique_ptr<MappedRegion> take_out(Use use);

 private:
  Use begin_use(Entries::iterator entry);

  std::mutex lock_;  // with signals blocked, as exit() may be called by a handler
  std::condition_variable changed_;
  Entries entries_;
};

}  // namespace outcore::umapped
