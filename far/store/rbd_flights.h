// RbdFlights: requests of one caller that librbd is carrying out, at most so many at a time.
//
// One thread. When the flights have ended, every request has ended, and librbd no longer touches
// its buffer. Each request ends within rados_osd_op_timeout.
#pragma once

#include <array>
#include <cerrno>
#include <cstddef>

#include "core/base/assert.h"
#include "far/store/rbd_library.h"

namespace outcore::store {

class RbdFlights {
 public:
  static constexpr size_t kFlightsMax = 64;

  explicit RbdFlights(const RbdLibrary& library) : library_(library) {}
  ~RbdFlights() { finish(); }
  RbdFlights(const RbdFlights&) = delete;
  RbdFlights& operator=(const RbdFlights&) = delete;

  // Begins a request by start(completion), which returns 0 or -errno. `result` becomes 0 or -errno,
  // at the latest in finish(); -EIO if not exactly `expected` bytes were transferred.
  template <typename Start>
  void begin(int* result, long expected, Start start) {
    if (begun_ - ended_ == kFlightsMax) end_oldest();
    OC_CHECK(begun_ - ended_ < kFlightsMax);
    rbd_completion_t completion = nullptr;
    *result = library_.rbd_aio_create_completion(nullptr, nullptr, &completion);
    if (*result != 0) return;
    *result = start(completion);
    if (*result != 0) return library_.rbd_aio_release(completion);
    flights_[begun_++ % kFlightsMax] = {completion, result, expected};
  }
  void finish() {
    while (ended_ < begun_) end_oldest();
  }

 private:
  struct Flight {
    rbd_completion_t completion;
    int* result;
    long expected;
  };

  void end_oldest() {
    OC_CHECK(ended_ < begun_);
    const Flight& flight = flights_[ended_++ % kFlightsMax];
    library_.rbd_aio_wait_for_complete(flight.completion);
    const long said = library_.rbd_aio_get_return_value(flight.completion);
    library_.rbd_aio_release(flight.completion);
    *flight.result = said < 0 ? static_cast<int>(said) : said == flight.expected ? 0 : -EIO;
  }

  const RbdLibrary& library_;
  std::array<Flight, kFlightsMax> flights_;
  size_t begun_ = 0;
  size_t ended_ = 0;
};

}  // namespace outcore::store
