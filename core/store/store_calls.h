// StoreCalls: what the pager asks of a store, answered by results alone. Pages are held meanwhile,
// and threads of Outcore ask that nobody waits for: a store that finds no memory, and one of the
// program's that throws something else, has failed (-ENOMEM, -EIO), and nothing more. Any thread.
#pragma once

#include <cxxabi.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include "outcore/store.h"

namespace outcore::store {

// No store is to answer with a number of bytes, as pread does.
inline int checked(int result) { return result > 0 ? -EIO : result; }

// The result of `call`, or that of an exception.
template <typename Call>
int answer_of(const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  } catch (const abi::__forced_unwind&) {  // a thread that is cancelled; ours never are
    throw;                                 // banned-ok: it is not ours
  } catch (...) {
    return -EIO;
  }
}

// As the functions of Store.
inline int read(Store& store, uint64_t offset, std::span<std::byte> into) {
  return checked(answer_of([&] { return store.read(offset, into); }));
}

inline int write(Store& store, uint64_t offset, std::span<const std::byte> from) {
  return checked(answer_of([&] { return store.write(offset, from); }));
}

inline int sync(Store& store) {
  return checked(answer_of([&] { return store.sync(); }));
}

inline int discard(Store& store, uint64_t offset, uint64_t size_bytes) {
  return checked(answer_of([&] { return store.discard(offset, size_bytes); }));
}

inline int resize(Store& store, uint64_t size_bytes) {
  return checked(answer_of([&] { return store.resize(size_bytes); }));
}

inline bool is_hole(const Store& store, uint64_t offset, uint64_t size_bytes) {
  return answer_of([&] { return store.is_hole(offset, size_bytes) ? 1 : 0; }) == 1;
}

// An exception is the result of the whole batch: what was carried out before it is done again.
inline void transfer(Store& store, std::span<StoreRequest> batch) {
  const int result = answer_of([&] {
    store.transfer(batch);
    return 0;
  });
  for (StoreRequest& request : batch)
    request.result = result != 0 ? result : checked(request.result);
}

}  // namespace outcore::store
