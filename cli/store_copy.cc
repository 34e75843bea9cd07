#include "cli/store_copy.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "cli/assert.h"
#include "cli/command.h"
#include "cli/copy_target.h"
#include "cli/interrupts.h"
#include "cli/text.h"
#include "cli/transfer_memory.h"
#include "outcore/store_catalog.h"

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
  CLI_CHECK(size_bytes != 0);
  return *bytes == std::byte{0} && std::memcmp(bytes, bytes + 1, size_bytes - 1) == 0;
}

// What the store itself knows of an error: which chunk is damaged, or what was lost.
std::string why_of(const Store& store) {
  const std::string remark = store.remark();
  return remark.empty() ? "" : " (" + remark + ")";
}

std::string remedy_for(int code) {
  return is_server_gone(code) ? "; is its server there? Start it, and do this again" : "";
}

// Says once that a store lets the command wait: only an error would show it otherwise.
class WaitNotice {
 public:
  WaitNotice() {
    try {
      thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
    } catch (const std::system_error&) {  // too many threads: it waits without a word
    }
  }
  void waits_for(const Store& store) {
    const std::lock_guard guard(mutex_);
    store_ = &store;
    since_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kPatience = std::chrono::seconds(5);

  void watch(const std::stop_token& stop) {
    std::unique_lock guard(mutex_);
    while (!changed_.wait_for(guard, stop, std::chrono::seconds(1),
                              [&] { return stop.stop_requested(); })) {
      if (store_ == nullptr || Clock::now() - since_ < kPatience) continue;
      std::fprintf(stderr, "outcore: still waiting for %s\n", one_line(store_->uri()).c_str());
      return;
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  const Store* store_ = nullptr;
  Clock::time_point since_ = Clock::now();
  std::jthread thread_;  // last: it ends before what it uses
};

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
  CLI_CHECK(batch.size() <= kBatchBytes / kRequestBytes);
  store.transfer(batch);
  for (const StoreRequest& r : batch)
    if (r.result != 0)
      return Error{-r.result, std::string(is_write ? "write " : "read ") +
                                  std::to_string(r.size_bytes) + " bytes at " +
                                  std::to_string(r.offset) + " of " + store.uri() + ": " +
                                  ::strerrordesc_np(-r.result) +
                                  (r.result == -EIO ? why_of(store) : remedy_for(-r.result))};
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
  CLI_CHECK(to.size_bytes() == size);
  const auto skips = [&](uint64_t offset, const std::byte* bytes, uint64_t part) {
    return to.is_hole(offset, part) && is_zero(bytes, part);
  };
  WaitNotice notice;
  for (uint64_t at = 0; at < size; at += kBatchBytes) {
    const uint64_t part = std::min(kBatchBytes, size - at);
    if (is_interrupted())
      return Error{EINTR, "copy " + one_line(from.uri()) + ": interrupted at byte " +
                              std::to_string(at) + " of " + std::to_string(size)};
    notice.waits_for(from);
    if (Status s = read(from, at, buffer.data(), part); !s) return s.error();
    checksum.add(buffer.data(), part);
    notice.waits_for(to);
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
  WaitNotice notice;
  for (uint64_t at = 0; at < both; at += kBatchBytes) {
    const uint64_t part = std::min(kBatchBytes, both - at);
    notice.waits_for(store);
    if (Status s = read(store, at, buffer.data(), part); !s) return s.error();
    if (other != nullptr) {
      if (Status s = read(*other, at, others.data(), part); !s) return s.error();
      const auto [here, there] = std::mismatch(buffer.data(), buffer.data() + part, others.data());
      CLI_CHECK(here - buffer.data() == there - others.data());
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
  catch_interrupts();
  if (from.size_bytes() == 0)
    return Error{ENODATA, one_line(from.uri()) + " is empty: there is nothing to copy"};
  const auto there = open_store(uri);
  if (there.ok() && !may_replace)
    return Error{EEXIST, one_line(there.value()->uri()) + " is there: add --replace"};
  if (there.ok() && !there.value()->identity().empty() &&
      there.value()->identity() == from.identity())
    return Error{EINVAL, one_line(there.value()->uri()) + " is copied onto itself"};
  // What an earlier copy has left is nobody's: it is written again.
  if (!there.ok() && there.code() != ENOENT && there.code() != EUCLEAN) return there.error();
  CopyTarget target(uri, there.ok());
  auto to = target.open(from.size_bytes());
  if (!to) return to.error();
  auto copied = copy_store(from, *to.value(), progress);
  to = Error{};  // the target's alone
  if (!copied) return target.abandon(copied.error());
  // While nobody else can write the store. Stores without a catalog keep no checksum.
  const Status noted = note_checksum(uri, copied.value());
  if (!noted && noted.code() != ENOTSUP) return target.abandon(noted.error());
  if (Status s = target.finish(may_replace); !s) return s.error();
  return copied;
}

}  // namespace outcore::cli
