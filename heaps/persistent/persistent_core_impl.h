// PersistentCoreImpl: the parts of a PersistentCore, and how it is opened, closed and stored. See
// outcore/persistent_core.h.
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
#include "heaps/persistent/persistent_mapping.h"
#include "outcore/persistent_core.h"

namespace outcore {

namespace heap::persistent {

// An open store, and its lock if it has one.
struct Place {
  std::string uri;
  std::shared_ptr<Store> store;
  FileLock lock;
  std::string made_path;  // a file that create() made: it is removed if create() fails later
};

// The file or folder to lock; "": none.
Result<std::string> lock_path(const std::string& uri);
Result<Place> open_place(PersistentCore::Mode mode, const std::string& uri);
// For a heap that the kernel is to map. Errors: ENOTSUP (the URI names no file), EINVAL (options
// that only a runtime can keep), and those of the URI.
Status check_for_kernel(const std::string& uri, const Runtime* runtime,
                        const PersistentHeapOptions& options);
// Errors: those of decode_headers, and of the read.
Result<Headers> read_headers(Store& store, const std::string& what);
PersistentHeapInfo describe(const Headers& headers, const Header& header, const Image& image);
int write_header(Store& store, const Header& header);
// Describes a type completely, for people: two types with the same name differ in this text.
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
  Status map_once(const PersistentHeapOptions& options, uint64_t reserve);

  // persistent_close.cc
  Status close();
  Status flush();

  // persistent_cut.cc: a checkpoint that contains the heap. Between begin_cut() and leave_cut() its
  // store is brought to one moment, and the engine sees only bytes; with closed_header() these
  // bytes are a closed heap. If the moment was reached, flush(), copy() and close() are refused
  // (EBUSY) until end_cut().
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
  std::shared_ptr<Runtime> owned_runtime;  // of a heap that was opened without one
  Runtime* runtime = nullptr;              // nullptr: the kernel maps the heap
  heap::persistent::Place place;
  std::unique_ptr<heap::persistent::Mapping> mapping;
  Region no_region;  // not mapped: that of a heap which the kernel maps
  std::unique_ptr<heap::persistent::Allocator> allocator;  // nullptr: the heap is read-only
  Header header{};                                         // as the store contains it
  bool is_writable = false;
  bool is_ready = false;       // opening has been completed
  bool is_consistent = false;  // of a read-only heap
  Stage stage = Stage::kMapped;
  pid_t process = 0;
  // The error of an fsync that failed. The kernel reports it only once and forgets what it could
  // not write, so later successes mean nothing.
  Status lost_sync;
  std::vector<std::byte> last_metadata;                      // of a close that has already unmapped
  uint64_t old_metadata_offset = 0, old_metadata_bytes = 0;  // its space is to be freed
  uint64_t bytes_in_use = 0;                                 // of a read-only heap
  uint64_t reserve_bytes = 0, spare_bytes = 0;  // addresses; those at the end are for metadata

  mutable std::recursive_mutex names_lock;  // recursive: a constructor may create objects, too
  std::map<std::string, heap::persistent::Name> names;

 private:
  struct Draft {  // metadata that is about to be stored
    std::vector<std::byte> bytes;
    uint64_t first_tile = 0, tile_count = 0;
    uint64_t old_tile = 0, old_count = 0, old_bytes = 0;  // of the metadata that it replaces
  };
  Result<Draft> draft();
  // Frees the space of the draft. `may_be_named`: the header in the store may name it after all.
  void free_draft(const Draft& draft, bool may_be_named = false);
  void settle(const Draft& draft);
  Header header_with(const Draft& draft) const;
  std::optional<Draft> cut_draft_;
  Header cut_header_{};
  Status check_no_cut(const char* what) const;  // REQUIRES: names_lock is held
  Status sync_store(const char* what);
  Status finish_close();
  Status give_back_space(Store& store) const;
};

}  // namespace outcore
