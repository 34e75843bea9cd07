// PersistentCoreImpl: what a PersistentCore is made of, and how it is opened, closed and stored.
// See outcore/persistent_core.h.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/paging/cut_member.h"
#include "heaps/persistent/persistent_allocator.h"
#include "heaps/persistent/persistent_format.h"
#include "heaps/persistent/persistent_image.h"
#include "heaps/persistent/persistent_lock.h"
#include "outcore/persistent_core.h"

namespace outcore {

namespace heap::persistent {

// A store that is opened, with its lock where there is one.
struct Place {
  std::string uri;
  std::shared_ptr<Store> store;
  FileLock lock;
  std::string made_path;  // of a file that create() made, to be removed if nothing comes of it
};

// What is to be locked: a file's or a folder's path; "": nothing.
Result<std::string> lock_path(const std::string& uri);
Result<Place> open_place(PersistentCore::Mode mode, const std::string& uri);
// Errors: as decode_headers, and those of the read.
Result<Headers> read_headers(Store& store, const std::string& what);
PersistentHeapInfo describe(const Headers& headers, const Header& header, const Image& image);
int write_header(Store& store, const Header& header);
// All that two names can differ in, as people read it.
std::string describe(const PersistentType& type);

}  // namespace heap::persistent

struct PersistentCore::Impl final : CutMember {
  using Header = heap::persistent::Header;
  enum class Stage : uint8_t { kMapped, kUnmapped, kClosed };

  ~Impl() override;

  // persistent_open.cc
  Status create(const PersistentHeapOptions& options);
  Status open(const PersistentHeapOptions& options);
  Status map(const PersistentHeapOptions& options);

  // persistent_close.cc
  Status close();
  Status flush();

  // persistent_cut.cc: a checkpoint that takes the heap along. Of its store, brought to one moment
  // between begin_cut() and leave_cut(), the engine knows nothing but bytes; with closed_header()
  // it is a closed heap. If that moment was found, flush(), copy() and close() are refused (EBUSY)
  // until end_cut().
  Status begin_cut() override;
  void leave_cut(bool is_found) override;
  std::vector<std::byte> closed_header() const override;
  std::vector<std::byte> open_header(bool is_adopted) const override;
  Status end_cut(bool is_adopted, bool may_be_named) override;
  std::string name_of() const override { return place.uri; }

  // persistent_copy.cc
  Status copy(const std::string& to);

  Status check_writable(const char* what) const;
  Status check_open(const char* what) const;
  std::shared_ptr<Runtime> owned_runtime;  // for heaps that were opened without one
  Runtime* runtime = nullptr;
  heap::persistent::Place place;
  Region region;
  std::unique_ptr<heap::persistent::Allocator> allocator;  // none if read-only
  Header header{};                                         // as it is in the store
  bool is_writable = false;
  bool is_ready = false;       // opened to the end
  bool is_consistent = false;  // of a read-only heap
  Stage stage = Stage::kMapped;
  pid_t process = 0;
  // fsync tells an error once, and forgets what it could not write: no later success means a thing.
  Status lost_sync;
  std::vector<std::byte> last_metadata;                      // of a close that has unmapped already
  uint64_t old_metadata_offset = 0, old_metadata_bytes = 0;  // whose space is to be given back
  uint64_t bytes_in_use = 0;                                 // of a read-only heap
  uint64_t reserve_bytes = 0, spare_bytes = 0;  // addresses; those at the end are for metadata

  mutable std::recursive_mutex names_lock;  // a constructor may make objects, too
  std::map<std::string, heap::persistent::Name> names;

 private:
  struct Draft {  // metadata that is about to be stored
    std::vector<std::byte> bytes;
    uint64_t first_tile = 0, tile_count = 0;
    uint64_t old_tile = 0, old_count = 0, old_bytes = 0;  // of the metadata that it replaces
  };
  Result<Draft> draft();
  // `may_be_named`: the header in the store may name it after all.
  void take_back(const Draft& draft, bool may_be_named = false);
  void settle(const Draft& draft);
  Header header_with(const Draft& draft) const;
  std::optional<Draft> cut_draft_;
  Header cut_header_{};
  Status check_no_cut(const char* what) const;  // with the names locked
  Status sync_store(const char* what);
  Status finish_close();
  Status give_back_space(Store& store) const;
};

}  // namespace outcore
