#include "checkpoints/copies.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "os/address_space.h"

namespace outcore::checkpoints {
namespace {

bool is_zero(std::span<const std::byte> bytes) {
  return bytes[0] == std::byte{0} &&
         std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

// Writes stretches of chunks that are not as `held` says. `held` is what the object has there.
int write_differences(versioned::Pool& pool, versioned::Object& object, uint64_t offset,
                      std::span<const std::byte> bytes, std::span<const std::byte> held,
                      uint64_t* written) {
  const uint64_t chunk = pool.chunk_bytes();
  const auto differs = [&](uint64_t at) {
    const size_t size = std::min<uint64_t>(chunk, bytes.size() - at);
    return std::memcmp(bytes.data() + at, held.data() + at, size) != 0;
  };
  for (uint64_t at = 0; at < bytes.size();) {
    uint64_t end = at;
    while (end < bytes.size() && differs(end)) end += chunk;
    end = std::min<uint64_t>(end, bytes.size());
    if (end > at) {
      if (int error = pool.write(object, offset + at, bytes.subspan(at, end - at)); error != 0)
        return error;
      *written += end - at;
    }
    at = std::max(end, at + chunk);
  }
  return 0;
}

int copy_piece(versioned::Pool& pool, versioned::Object& object, uint64_t offset,
               std::span<const std::byte> bytes, std::span<std::byte> held, uint64_t* written) {
  if (pool.is_hole(object, offset, bytes.size())) {
    if (is_zero(bytes)) return 0;
    std::memset(held.data(), 0, held.size());
  } else if (int error = pool.read(object, offset, held); error != 0) {
    return error;
  }
  return write_differences(pool, object, offset, bytes, held, written);
}

Status told(int error, const std::string& what, const versioned::Object& object) {
  return base::system_error(error, "copy " + what + " into the object '" + object.name() + "'");
}

}  // namespace

Result<std::shared_ptr<versioned::Object>> object_for(versioned::Pool& pool,
                                                      const std::string& name,
                                                      uint64_t size_bytes) {
  auto object = pool.find(name);
  if (object == nullptr) return pool.create(name, size_bytes);
  if (object->size_bytes() == size_bytes) return object;
  if (int error = pool.resize(*object, size_bytes); error != 0)
    return told(error, std::to_string(size_bytes) + " bytes", *object).error();
  return object;
}

Status copy_memory(versioned::Pool& pool, versioned::Object& object,
                   std::span<const std::byte> bytes, uint64_t* written) {
  os::Table<std::byte> held;
  if (Status s = held.allocate(std::min<uint64_t>(kPieceBytes, bytes.size())); !s) return s;
  for (uint64_t at = 0; at < bytes.size(); at += kPieceBytes) {
    const uint64_t size = std::min<uint64_t>(kPieceBytes, bytes.size() - at);
    if (int error =
            copy_piece(pool, object, at, bytes.subspan(at, size), {&held[0], size}, written);
        error != 0)
      return told(error, "memory", object);
  }
  return {};
}

Result<bool> copy_store(versioned::Pool& pool, const std::shared_ptr<versioned::Object>& object,
                        Store& store, paging::ChangeLog& log, uint64_t* written,
                        const std::function<bool()>& may_go_on) {
  const std::lock_guard<std::mutex> one_at_a_time(log.copying);
  os::Table<std::byte> bytes, held;
  if (Status s = bytes.allocate(kPieceBytes); !s) return s.error();
  if (Status s = held.allocate(kPieceBytes); !s) return s.error();
  if (log.copy.lock() != object || log.copy_state != object->state()) log.note_all();
  const uint64_t end = object->size_bytes();
  if (end > log.copy_bytes) log.note(log.copy_bytes, end - log.copy_bytes);
  int error = 0;
  const bool is_done = log.take(end, [&](uint64_t at, uint64_t to) {
    for (uint64_t size = 0; at < to; at += size) {
      size = std::min<uint64_t>(kPieceBytes, to - at);
      if (may_go_on && !may_go_on()) break;
      if (store.is_hole(at, size) && pool.is_hole(*object, at, size)) continue;
      error = store.read(at, {&bytes[0], size});
      if (error == 0)
        error = copy_piece(pool, *object, at, {&bytes[0], size}, {&held[0], size}, written);
      if (error != 0) break;
    }
    return at;
  });
  log.copy = object;
  log.copy_state = object->state();
  log.copy_bytes = end;
  if (error != 0) return told(error, store.uri(), *object).error();
  return is_done;
}

}  // namespace outcore::checkpoints
