#include "cli/store_copy.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/text.h"
#include "cli/transfer_memory.h"

namespace outcore::cli {
namespace {

constexpr uint64_t kBatchBytes = 4 << 20, kRequestBytes = 64 << 10;

class Checksum {
 public:
  Checksum() { XXH3_64bits_reset(state_.get()); }
  void add(const std::byte* bytes, uint64_t size_bytes) {
    XXH3_64bits_update(state_.get(), bytes, size_bytes);
  }
  std::string text() const {
    char text[32];
    std::snprintf(text, sizeof text, "xxh3:%016llx",
                  static_cast<unsigned long long>(XXH3_64bits_digest(state_.get())));
    return text;
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_{XXH3_createState()};
};

bool is_zero(const std::byte* bytes, uint64_t size_bytes) {
  return *bytes == std::byte{0} && std::memcmp(bytes, bytes + 1, size_bytes - 1) == 0;
}

// What the store itself knows of an error: which chunk is damaged, or what was lost.
std::string why_of(const Store& store) {
  const std::string remark = store.remark();
  return remark.empty() ? "" : " (" + remark + ")";
}

// One batch in requests that travel together; those that `skips` takes are left out.
template <typename Skips>
Status transfer(Store& store, uint64_t offset, std::byte* bytes, uint64_t size_bytes, bool is_write,
                const Skips& skips) {
  std::vector<StoreRequest> batch;
  for (uint64_t at = 0; at < size_bytes; at += kRequestBytes) {
    const uint64_t part = std::min(kRequestBytes, size_bytes - at);
    if (!skips(offset + at, bytes + at, part))
      batch.push_back({offset + at, bytes + at, part, is_write, 0});
  }
  store.transfer(batch);
  for (const StoreRequest& r : batch)
    if (r.result != 0)
      return Error{-r.result, std::string(is_write ? "write " : "read ") +
                                  std::to_string(r.size_bytes) + " bytes at " +
                                  std::to_string(r.offset) + " of " + store.uri() + ": " +
                                  ::strerrordesc_np(-r.result) +
                                  (r.result == -EIO ? why_of(store) : std::string())};
  return {};
}

Status read(Store& store, uint64_t offset, std::byte* bytes, uint64_t size_bytes) {
  return transfer(store, offset, bytes, size_bytes, false,
                  [](uint64_t, const std::byte*, uint64_t) { return false; });
}

Error no_memory() { return failure(ENOMEM, "allocate " + format_bytes(kBatchBytes)); }

}  // namespace

Result<std::string> copy_store(Store& from, Store& to, const Progress& progress) {
  const TransferMemory buffer(kBatchBytes);
  if (buffer.data() == nullptr) return no_memory();
  Checksum checksum;
  const uint64_t size = from.size_bytes();
  const auto skips = [&](uint64_t offset, const std::byte* bytes, uint64_t part) {
    return to.is_hole(offset, part) && is_zero(bytes, part);
  };
  for (uint64_t at = 0; at < size; at += kBatchBytes) {
    const uint64_t part = std::min(kBatchBytes, size - at);
    if (Status s = read(from, at, buffer.data(), part); !s) return s.error();
    checksum.add(buffer.data(), part);
    if (Status s = transfer(to, at, buffer.data(), part, true, skips); !s) return s.error();
    progress(at + part);
  }
  if (const int result = to.sync(); result != 0)
    return Error{-result, "sync " + to.uri() + ": " + ::strerrordesc_np(-result)};
  return checksum.text();
}

Result<Comparison> compare_stores(Store& store, Store* other, const Progress& progress) {
  const TransferMemory buffer(kBatchBytes);
  const TransferMemory others = other == nullptr ? TransferMemory() : TransferMemory(kBatchBytes);
  if (buffer.data() == nullptr || (other != nullptr && others.data() == nullptr))
    return no_memory();
  Checksum checksum;
  const uint64_t size = store.size_bytes();
  const uint64_t both = other == nullptr ? size : std::min(size, other->size_bytes());
  for (uint64_t at = 0; at < both; at += kBatchBytes) {
    const uint64_t part = std::min(kBatchBytes, both - at);
    if (Status s = read(store, at, buffer.data(), part); !s) return s.error();
    if (other != nullptr) {
      if (Status s = read(*other, at, others.data(), part); !s) return s.error();
      const auto [here, there] = std::mismatch(buffer.data(), buffer.data() + part, others.data());
      if (here != buffer.data() + part)
        return Comparison{at + static_cast<uint64_t>(here - buffer.data()), {}};
    }
    checksum.add(buffer.data(), part);
    progress(at + part);
  }
  if (other != nullptr && other->size_bytes() != size) return Comparison{both, {}};
  return Comparison{{}, checksum.text()};
}

Result<std::string> copy_store_to(Store& from, const std::string& uri, bool may_replace,
                                  const Progress& progress) {
  if (from.size_bytes() == 0)
    return Error{EINVAL, one_line(from.uri()) + " is empty: there is nothing to copy"};
  const auto there = open_store(uri);
  if (there.ok() && !may_replace)
    return Error{EEXIST, one_line(there.value()->uri()) + " is there: add --replace"};
  if (there.ok() && !there.value()->identity().empty() &&
      there.value()->identity() == from.identity())
    return Error{EINVAL, one_line(there.value()->uri()) + " is copied onto itself"};
  if (!there.ok() && there.code() != ENOENT) return there.error();
  OpenOptions options;
  options.is_writable = options.may_create = true;
  options.size_bytes = from.size_bytes();
  const auto to = open_store(uri, options);
  if (!to) return to.error();
  if (to.value()->size_bytes() != options.size_bytes)
    if (const int result = to.value()->resize(options.size_bytes); result != 0)
      return Error{-result, "resize " + to.value()->uri() + ": " + ::strerrordesc_np(-result)};
  return copy_store(from, *to.value(), progress);
}

}  // namespace outcore::cli
