// Medium: where a benchmark's data rests, reached by plain reads and writes, outside the memories
// measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "outcore/result.h"

namespace outcore::bench {

// One thread. A file by the system's calls; any other store by Outcore's open_store().
class Medium {
 public:
  virtual ~Medium() = default;
  virtual Status read(uint64_t offset, std::span<std::byte> into) = 0;
  virtual Status write(uint64_t offset, std::span<const std::byte> from) = 0;
  virtual Status sync() = 0;
  virtual uint64_t size_bytes() const = 0;
};

// What to do where there is no room, as most commands call it.
inline constexpr const char* kRoomRemedy = "use --dir, --store or a smaller --size";

// size_bytes 0: as it is. Otherwise made that long, if it `may_create`; a file for which there is
// no room stays as it was, and the error (ENOSPC) says how much is free.
Result<std::unique_ptr<Medium>> open_medium(const std::string& uri, uint64_t size_bytes,
                                            bool may_create,
                                            const std::string& room_remedy = kRoomRemedy);

// From or to the beginning of the medium, in order and in steps.
Status read_all(Medium& medium, std::span<std::byte> into);
Status write_all(Medium& medium, std::span<const std::byte> from);

// Whether a benchmark can use the store, as far as can be told without making anything. Errors:
// EINVAL (unknown scheme, a bad parameter, no path, a folder, a store that dies with its process).
Status check_store(const std::string& uri);

// The file that a URI names ("PATH", "file:PATH?…"); empty if it names another kind of store.
std::string plain_path(const std::string& uri);
// The path in any URI: for sparse:DIR?segment=64M the directory.
std::string path_of(const std::string& uri);
// True for stores that die with their process: of no use for a benchmark, which forks.
bool is_volatile(const std::string& uri);
// Of those, that which lies in a file.
bool is_scratch(const std::string& uri);

// True for stores on servers (redis:, rbd:): they lie in no folder, and have no note beside them.
bool is_remote(const std::string& uri);
// Whether servers have the store. Errors: those of open_store(), but for ENOENT.
Result<bool> is_there(const std::string& uri);
// Removes a store on servers, if it is there. Waits for one whose writer was killed until its lease
// is over, within limits. Errors: those of remove_store().
Status remove_remote(const std::string& uri);

// Writes out and drops the file, or the files of the directory, from the page cache.
void forget(const std::string& path);
// What the data rests on: "vda (read_ahead_kb 128)", the name of its file system, or "network".
struct Device {
  std::string name;
  int64_t read_ahead_kb = -1;  // -1: unknown
};
Device device_of(const std::string& uri);

}  // namespace outcore::bench
