// SimStore: a store in memory that fails, tears, delays and reorders transfers as a seed decides.
// It checks that the engine keeps the contract of outcore/store.h.
#pragma once

#include <string>
#include <vector>

#include "core/tests/sim/fibers.h"
#include "outcore/store.h"

namespace outcore::sim {

class SimStore final : public Store {
 public:
  struct Behaviour {
    uint64_t read_failures = 0;   // in thousandths
    uint64_t write_failures = 0;  // in thousandths; a failed write leaves garbage
    uint64_t discard_failures = 0;
    uint64_t delay_steps_max = 0;
    bool lies_about_writes =
        false;  // now and then says 0 and stores nothing: for tests of the tests
  };

  SimStore(Fibers& fibers, uint64_t size_bytes, const StoreTraits& traits);

  Behaviour behaviour;

  uint64_t size_bytes() const override { return bytes_.size(); }
  int read(uint64_t offset, std::span<std::byte> into) override;
  int write(uint64_t offset, std::span<const std::byte> from) override;
  void transfer(std::span<StoreRequest> batch) override;
  int discard(uint64_t offset, uint64_t size_bytes) override;
  bool is_hole(uint64_t offset, uint64_t size_bytes) const override;
  StoreTraits traits() const override { return traits_; }
  std::string uri() const override { return "simulated:"; }

  // -- for the oracle --
  const std::vector<std::byte>& bytes() const { return bytes_; }
  void preset(uint64_t offset, std::span<const std::byte> from);
  // As the kernel's mapping shows it.
  std::byte* bytes_at(uint64_t offset) { return bytes_.data() + offset; }
  // The event (see next_event) at which the write began that has torn this system page, or is
  // writing it now; 0 if the page is whole.
  uint64_t torn_since(uint64_t system_page) const { return torn_since_[system_page]; }
  void set_event_source(uint64_t* next_event) { next_event_ = next_event; }

 private:
  struct Transfer {
    uint64_t offset, end;
    bool is_write;
  };
  void begin(uint64_t offset, uint64_t size_bytes, bool is_write);
  void end(uint64_t offset, uint64_t size_bytes, bool is_write);
  void delay(const char* what, uint64_t offset);
  int read_now(uint64_t offset, std::span<std::byte> into);
  int write_now(uint64_t offset, std::span<const std::byte> from);
  void check_caller(uint64_t offset, uint64_t size_bytes);

  Fibers& fibers_;
  const StoreTraits traits_;
  std::vector<std::byte> bytes_;
  std::vector<bool> was_written_;
  std::vector<uint64_t> torn_since_;
  std::vector<Transfer> under_way_;
  uint64_t reads_ = 0, writes_ = 0;  // transfers that have begun and not ended
  uint64_t* next_event_ = nullptr;
};

}  // namespace outcore::sim
