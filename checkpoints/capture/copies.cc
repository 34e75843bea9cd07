#include "checkpoints/capture/copies.h"

#include <algorithm>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/address_space.h"

namespace outcore::checkpoints {
namespace {

bool is_zero(std::span<const std::byte> bytes) {
  OC_CHECK(!bytes.empty());
  return bytes[0] == std::byte{0} &&
         std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

// Writes those chunks that differ from `held`, which is what the object contains there.
int write_differences(const Copy& copy, uint64_t offset, std::span<const std::byte> bytes,
                      std::span<const std::byte> held, uint64_t* written) {
  const uint64_t chunk = copy.chunk_bytes;
  OC_CHECK(chunk != 0 && held.size() == bytes.size());
  const auto differs = [&](uint64_t at) {
    const size_t size = std::min<uint64_t>(chunk, bytes.size() - at);
    return std::memcmp(bytes.data() + at, held.data() + at, size) != 0;
  };
  for (uint64_t at = 0; at < bytes.size();) {
    uint64_t end = at;
    while (end < bytes.size() && differs(end)) end += chunk;
    end = std::min<uint64_t>(end, bytes.size());
    if (end > at) {
      const int error = copy.store->write(offset + at, bytes.subspan(at, end - at));
      if (copy.wrote) copy.wrote();  // also after an error: a part may have been written
      if (error != 0) return error;
      *written += end - at;
    }
    OC_ASSERT(end >= at && end <= bytes.size());
    at = std::max(end, at + chunk);
  }
  return 0;
}

int copy_piece(const Copy& copy, uint64_t offset, std::span<const std::byte> bytes,
               std::span<std::byte> held, uint64_t* written) {
  OC_ASSERT(held.size() == bytes.size());
  if (copy.store->is_hole(offset, bytes.size())) {
    if (is_zero(bytes)) return 0;
    std::memset(held.data(), 0, held.size());
  } else if (int error = copy.store->read(offset, held); error != 0) {
    return error;
  }
  return write_differences(copy, offset, bytes, held, written);
}

Status told(int error, const std::string& what, const Copy& copy) {
  return base::system_error(error, "copy " + what + " into " + copy.store->uri());
}

}  // namespace

Status copy_memory(const Copy& copy, std::span<const std::byte> bytes, uint64_t* written) {
  OC_CHECK(copy.store != nullptr && written != nullptr);
  OC_CHECK(bytes.size() <= copy.store->size_bytes());
  os::Table<std::byte> held;
  if (Status s = held.allocate(std::min<uint64_t>(kPieceBytes, bytes.size())); !s) return s;
  for (uint64_t at = 0; at < bytes.size(); at += kPieceBytes) {
    const uint64_t size = std::min<uint64_t>(kPieceBytes, bytes.size() - at);
    if (int error = copy_piece(copy, at, bytes.subspan(at, size), {&held[0], size}, written);
        error != 0)
      return told(error, "memory", copy);
  }
  return {};
}

Result<bool> copy_store(const Copy& copy, Store& store, paging::ChangeLog& log, uint64_t* written,
                        const std::function<bool()>& may_go_on) {
  OC_CHECK(copy.store != nullptr && written != nullptr && copy.state != nullptr);
  const std::lock_guard<std::mutex> one_at_a_time(log.copying);
  os::Table<std::byte> bytes, held;
  if (Status s = bytes.allocate(kPieceBytes); !s) return s.error();
  if (Status s = held.allocate(kPieceBytes); !s) return s.error();
  if (copy.whose == nullptr || log.copy.lock() != copy.whose || log.copy_state != copy.state())
    log.note_all();
  const uint64_t end = copy.store->size_bytes();
  if (end > log.copy_bytes) log.note(log.copy_bytes, end - log.copy_bytes);
  int error = 0;
  const bool is_done = log.drain(end, [&](uint64_t at, uint64_t to) {
    for (uint64_t size = 0; at < to; at += size) {
      size = std::min<uint64_t>(kPieceBytes, to - at);
      OC_CHECK(at + size <= end);
      if (may_go_on && !may_go_on()) break;
      if (store.is_hole(at, size) && copy.store->is_hole(at, size)) continue;
      error = store.read(at, {&bytes[0], size});
      if (error == 0) error = copy_piece(copy, at, {&bytes[0], size}, {&held[0], size}, written);
      if (error != 0) break;
    }
    return at;
  });
  log.copy = copy.whose;
  log.copy_state = copy.state();
  log.copy_bytes = end;
  if (error != 0) return told(error, store.uri(), copy).error();
  return is_done;
}

}  // namespace outcore::checkpoints
