#include "core/tests/sim/sim_store.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/units.h"

namespace outcore::sim {

using base::kSystemPage;
using base::round_down;
using base::round_up;

SimStore::SimStore(Fibers& fibers, uint64_t size_bytes, const StoreTraits& traits)
    : fibers_(fibers),
      traits_(traits),
      bytes_(size_bytes),
      was_written_(size_bytes / kSystemPage + 1),
      torn_since_(size_bytes / kSystemPage + 1) {}

void SimStore::preset(uint64_t offset, std::span<const std::byte> from) {
  std::memcpy(bytes_.data() + offset, from.data(), from.size());
  for (uint64_t at = offset; at < offset + from.size(); ++at) was_written_[at / kSystemPage] = true;
}

void SimStore::check_caller(uint64_t offset, uint64_t size_bytes) {
  fibers_.require(offset + size_bytes <= bytes_.size(), "a transfer past the store's end", offset,
                  size_bytes);
  fibers_.require(traits_.is_fault_safe || !fibers_.is_in_fault(),
                  "a store that is not fault safe is called in a fault handler", offset);
}

void SimStore::begin(uint64_t offset, uint64_t size_bytes, bool is_write) {
  check_caller(offset, size_bytes);
  for (const Transfer& t : under_way_)
    if (t.offset < offset + size_bytes && offset < t.end &&
        !(traits_.can_read_while_written && is_write != t.is_write))
      fibers_.require(!is_write && !t.is_write, "two transfers of the same bytes, one a write",
                      offset, size_bytes);
  under_way_.push_back({offset, offset + size_bytes, is_write});
}

void SimStore::end(uint64_t offset, uint64_t size_bytes, bool is_write) {
  for (auto i = under_way_.begin(); i != under_way_.end(); ++i)
    if (i->offset == offset && i->end == offset + size_bytes && i->is_write == is_write) {
      under_way_.erase(i);
      return;
    }
}

void SimStore::delay(const char* what, uint64_t offset) {
  const uint64_t steps =
      behaviour.delay_steps_max == 0 ? 1 : 1 + fibers_.random().below(behaviour.delay_steps_max);
  for (uint64_t i = 0; i < steps; ++i) fibers_.step(what, offset, i);
  if (fibers_.random().chance(behaviour.delay_steps_max))
    fibers_.let_pass(fibers_.random().below(2'000'000));
}

int SimStore::read(uint64_t offset, std::span<std::byte> into) {
  ++reads_;
  const int result = read_now(offset, into);
  --reads_;
  return result;
}

int SimStore::write(uint64_t offset, std::span<const std::byte> from) {
  ++writes_;
  const int result = write_now(offset, from);
  --writes_;
  return result;
}

int SimStore::read_now(uint64_t offset, std::span<std::byte> into) {
  fibers_.require(traits_.read_concurrency == 0 || reads_ <= traits_.read_concurrency,
                  "more reads at a time than the store takes", reads_);
  begin(offset, into.size(), false);
  int result = 0;
  for (uint64_t done = 0; done < into.size() && result == 0;) {
    delay("store.read", offset + done);
    if (fibers_.random().chance(behaviour.read_failures)) result = -EIO;
    const uint64_t n = std::min<uint64_t>(into.size() - done, 4 * kSystemPage);
    std::memcpy(into.data() + done, bytes_.data() + offset + done, n);
    done += n;
  }
  // What a failed read leaves in the buffer must never become visible.
  if (result != 0) std::memset(into.data(), 0xBD, into.size());
  end(offset, into.size(), false);
  return result;
}

int SimStore::write_now(uint64_t offset, std::span<const std::byte> from) {
  fibers_.require(traits_.write_concurrency == 0 || writes_ <= traits_.write_concurrency,
                  "more writes at a time than the store takes", writes_);
  begin(offset, from.size(), true);
  const uint64_t event = next_event_ == nullptr ? 1 : ++*next_event_;
  const uint64_t first = offset / kSystemPage;
  const uint64_t last = (offset + from.size() - 1) / kSystemPage;
  for (uint64_t i = first; i <= last; ++i) torn_since_[i] = event, was_written_[i] = true;
  const bool is_lie = behaviour.lies_about_writes && fibers_.random().chance(200);
  const bool is_failing = fibers_.random().chance(behaviour.write_failures);
  const uint64_t fails_at = is_failing ? fibers_.random().below(from.size()) : UINT64_MAX;
  int result = 0;
  for (uint64_t done = 0; done < from.size() && result == 0;) {
    delay("store.write", offset + done);
    const uint64_t n = std::min<uint64_t>(from.size() - done, 4 * kSystemPage);
    if (!is_lie) std::memcpy(bytes_.data() + offset + done, from.data() + done, n);
    if (done <= fails_at && fails_at < done + n) {
      result = fibers_.random().chance(500) ? -EIO : -ENOSPC;
      std::memset(bytes_.data() + offset + fails_at, 0xDB, done + n - fails_at);
    }
    done += n;
  }
  if (result == 0)
    for (uint64_t i = first; i <= last; ++i) torn_since_[i] = 0;
  end(offset, from.size(), true);
  return result;
}

void SimStore::transfer(std::span<StoreRequest> batch) {
  fibers_.require(!fibers_.is_in_fault(), "transfer() in a fault handler");
  std::vector<size_t> order;
  for (size_t i = 0; i < batch.size(); ++i) {
    order.push_back(i);
    std::swap(order.back(), order[fibers_.random().below(order.size())]);
    (batch[i].is_write ? writes_ : reads_) += 1;
  }
  for (const size_t i : order) {
    StoreRequest& r = batch[i];
    r.result = r.is_write ? write_now(r.offset, {r.bytes, r.size_bytes})
                          : read_now(r.offset, {r.bytes, r.size_bytes});
    (r.is_write ? writes_ : reads_) -= 1;
  }
}

int SimStore::discard(uint64_t offset, uint64_t size_bytes) {
  begin(offset, size_bytes, true);
  delay("store.discard", offset);
  const bool is_failing = fibers_.random().chance(behaviour.discard_failures);
  if (!is_failing && size_bytes > 0) {
    std::memset(bytes_.data() + offset, 0, size_bytes);
    for (uint64_t at = round_up(offset, kSystemPage);
         at < round_down(offset + size_bytes, kSystemPage); at += kSystemPage) {
      was_written_[at / kSystemPage] = false;
      torn_since_[at / kSystemPage] = 0;
    }
  }
  end(offset, size_bytes, true);
  return is_failing ? -EIO : 0;
}

bool SimStore::is_hole(uint64_t offset, uint64_t size_bytes) const {
  fibers_.step("store.is_hole", offset, size_bytes);
  for (uint64_t i = offset / kSystemPage; i * kSystemPage < offset + size_bytes; ++i)
    if (was_written_[i]) return false;
  return true;
}

}  // namespace outcore::sim
