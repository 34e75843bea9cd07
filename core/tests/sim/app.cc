#include "core/tests/sim/app.h"

#include <algorithm>
#include <cstring>

#include "core/region/address_map.h"

namespace outcore::sim {

using base::kSystemPage;
using region::AddressMap;

void App::run() {
  for (uint64_t i = 0; i < sim_.plan_.ops; ++i) act();
  while (!pins_.empty()) unpin_one();
}

void App::act() {
  SimFile& file = *sim_.files_[random_.below(sim_.files_.size())];
  if (file.views.empty()) return;
  if (sim_.plan_.has_reshapes && random_.chance(15)) return reshape(file);
  if (sim_.plan_.has_cuts && random_.chance(10)) return sim_.cut(random_);
  SimView& view = *file.views[random_.below(file.views.size())];
  const unsigned generation = view.generation;
  ++view.users[generation];
  const uint64_t dice = random_.below(1000);
  if (dice < 800 || file.is_handed_back)
    touch_some(file, view);
  else
    call(file, view, dice);
  --view.users[generation];
  if (dice >= 990 && sim_.plan_.has_second_views) change_views(file);
}

void App::call(SimFile& file, SimView& view, uint64_t dice) {
  // These calls do not use a view, so they need not wait for one that changes.
  if (dice >= 895 && dice < 920) return flush_range(file);
  if (dice >= 920 && dice < 935) return evict_range(file);
  if (dice >= 935 && dice < 950) return cool_range(file);
  if (dice >= 985) return dice < 990 ? resize() : void();
  if (file.is_reshaping) return touch_some(file, view);
  ++file.calls;
  if (dice < 830)
    hold_and_copy(file, view);
  else if (dice < 850)
    sim_.plan_.has_pins ? pin_range(file, view) : touch_some(file, view);
  else if (dice < 880)
    write_pinned();
  else if (dice < 895)
    unpin_one();
  else if (dice < 970)
    prefetch_range(file, view);
  else
    discard_range(file, view);
  --file.calls;
}

std::byte* App::touch(SimFile& file, SimView& view, std::byte* address, bool is_write) {
  const uint64_t offset = view.offset + static_cast<uint64_t>(address - view.address);
  for (unsigned failures = 0;;) {
    // As a signal stops a thread: not inside a call, because calls block signals.
    while (!is_inside_ && sim_.stopped_.load() != 0) os::wait(&sim_.stopped_, 1, 1'000'000'000);
    sim_.fibers_.step(is_write ? "touch to write" : "touch to read", offset,
                      reinterpret_cast<uint64_t>(view.address) >> 20 & 0xFFFF);
    if (file.is_handed_back) return file.store->bytes_at(offset);
    if (std::byte* bytes = sim_.kernel_.touch(address, is_write); bytes != nullptr) return bytes;
    ++sim_.tally_.faults;
    region::View* found = AddressMap::instance().find_and_hold(address);
    if (found == nullptr && file.is_handed_back) continue;
    sim_.fibers_.require(
        found != nullptr && found->cache == file.cache.get() &&
            found->offset + static_cast<uint64_t>(address - found->address) == offset,
        "the address belongs to its view", offset);
    if (random_.chance(100)) fault_with_others(*found, {address, is_write});
    sim_.fibers_.set_in_fault(true);
    const os::FaultOutcome outcome = sim_.engine_->fault(*found, address, is_write);
    AddressMap::release(found);
    sim_.fibers_.set_in_fault(false);
    sim_.fibers_.step("fault answered", offset, static_cast<uint64_t>(outcome));
    if (outcome == os::FaultOutcome::kDone) continue;
    ++sim_.tally_.failed_faults;
    sim_.fibers_.require(sim_.plan_.has_faults, "a fill fails though the store does not", offset);
    sim_.fibers_.require(!sim_.is_faultless_ || ++failures < 20, "fills fail for ever", offset);
    const uint64_t page = offset / file.plan.page_bytes;
    sim_.engine_->retry_failed(*file.cache, page, page + 1);
    if (!sim_.is_faultless_) return nullptr;
  }
}

// As an event thread that finds several faults at once.
void App::fault_with_others(region::View& view, const os::Touch& own) {
  os::Touch touches[4] = {own};
  for (size_t i = 1; i < std::size(touches); ++i) {
    const uint64_t at = random_.below(view.mapped_bytes() / kSystemPage) * kSystemPage;
    touches[i] = {view.address + at, view.is_writable && random_.chance(300)};
  }
  sim_.engine_->fill_many(view, {touches, random_.between(2, std::size(touches))});
}

void App::check_cell(SimFile& file, uint64_t i, uint64_t seen) {
  const Cell& cell = file.oracle->cell(i);
  const PageUse& use = file.oracle->use_of(i);
  if (use.is_undefined || seen == cell.value) return;
  if (use.is_discarded && (seen == 0 || seen == cell.before)) return;
  if (use.is_overwritten && seen == cell.before) return;
  sim_.fibers_.fail("a read at " + std::to_string(Oracle::offset_of(i)) + " (page " +
                    std::to_string(file.oracle->page_of(i)) + ") sees " + std::to_string(seen) +
                    ", but " + std::to_string(cell.value) + " was written");
}

void App::set_cell(SimFile& file, uint64_t i, std::byte* bytes) {
  Cell& cell = file.oracle->cell(i);
  cell.value = random_.next();
  cell.changed_at = ++sim_.events_;
  std::memcpy(bytes, &cell.value, sizeof cell.value);
}

bool App::read_cell(SimFile& file, SimView& view, uint64_t i) {
  ++sim_.tally_.touches;
  const std::byte* bytes = touch(file, view, address_of(view, Oracle::offset_of(i)), false);
  if (bytes == nullptr) return false;
  uint64_t seen = 0;
  std::memcpy(&seen, bytes, sizeof seen);
  check_cell(file, i, seen);
  return true;
}

bool App::write_cell(SimFile& file, SimView& view, uint64_t i) {
  PageUse& use = file.oracle->use_of(i);
  if (use.is_discarded || use.is_undefined) return false;
  ++sim_.tally_.touches;
  ++use.writers;
  std::byte* bytes = touch(file, view, address_of(view, Oracle::offset_of(i)), true);
  if (bytes != nullptr) set_cell(file, i, bytes);
  --use.writers;
  return bytes != nullptr;
}

bool App::pick_cell(SimFile& file, const SimView& view, uint64_t* cell) {
  const uint64_t first = (view.offset + kSystemPage - 1) / kSystemPage * Oracle::kCellsOfSystemPage;
  const uint64_t end =
      std::min(file.oracle->cell_count(), view.end() / kSystemPage * Oracle::kCellsOfSystemPage);
  if (first >= end) return false;
  const uint64_t count = end - first;
  const uint64_t hot = std::max<uint64_t>(count / 8, 1);
  *cell = first + (random_.chance(400) ? random_.below(hot) : random_.below(count));
  return !view.is_closing(Oracle::offset_of(*cell));
}

void App::touch_some(SimFile& file, SimView& view) {
  uint64_t cell = 0;
  if (!pick_cell(file, view, &cell)) return;
  // One touch, or a walk over neighbouring system pages, which starts readahead.
  const uint64_t count = random_.chance(100) ? random_.between(4, 24) : 1;
  const bool is_write = view.is_writable && random_.chance(400);
  const uint64_t last = cell;
  for (uint64_t i = 0; i < count; ++i) {
    cell = last + i * Oracle::kCellsOfSystemPage;
    if (cell >= file.oracle->cell_count()) return;
    const uint64_t offset = Oracle::offset_of(cell);
    if (offset < view.offset || offset >= view.end() || view.is_closing(offset)) return;
    if (is_write)
      write_cell(file, view, cell);
    else
      read_cell(file, view, cell);
  }
}

// As Region::read and write copy: the page is held meanwhile.
void App::hold_and_copy(SimFile& file, SimView& view) {
  uint64_t cell = 0;
  if (!pick_cell(file, view, &cell)) return;
  PageUse& use = file.oracle->use_of(cell);
  const bool is_write = view.is_writable && random_.chance(500);
  if (is_write && (use.is_discarded || use.is_undefined)) return;
  std::byte* address = address_of(view, Oracle::offset_of(cell));
  const uint64_t page = view.view->page_of(address);
  use.writers += is_write ? 1 : 0;
  const int result = sim_.engine_->pin_page(*view.view, page, address, is_write);
  sim_.fibers_.require(result == 0 || sim_.plan_.has_faults, "a hold fails", page);
  if (result == 0) {
    is_inside_ = true;
    if (is_write)
      write_cell(file, view, cell);
    else
      read_cell(file, view, cell);
    is_inside_ = false;
    sim_.engine_->unpin_page(*file.cache, page);
  } else {
    sim_.engine_->retry_failed(*file.cache, page, page + 1);
  }
  use.writers -= is_write ? 1 : 0;
}

void App::pin_range(SimFile& file, SimView& view) {
  uint64_t cell = 0;
  if (pins_.size() == kPinsMax || !pick_cell(file, view, &cell)) return;
  const uint64_t offset = Oracle::offset_of(cell);
  const uint64_t room = view.end() - offset;
  const uint64_t size = std::min(room, 8 + random_.below(3 * file.plan.page_bytes));
  const uint64_t first = offset / file.plan.page_bytes;
  const uint64_t end = std::min((offset + size - 1) / file.plan.page_bytes + 1,
                                (file.plan.store_bytes - 1) / file.plan.page_bytes + 1);
  for (uint64_t page = first; page < end; ++page) {
    const PageUse& use = file.oracle->use_of_page(page);
    if (use.is_discarded || use.is_undefined) return;
  }
  for (uint64_t page = first; page < end; ++page) ++file.oracle->use_of_page(page).writers;
  std::byte* from = address_of(view, offset);
  if (sim_.engine_->pin(*view.view, from, size).ok()) {
    ++view.pins, ++file.pins;
    pins_.push_back({&file, &view, from, size});
    return;
  }
  for (uint64_t page = first; page < end; ++page) --file.oracle->use_of_page(page).writers;
  sim_.engine_->retry_failed(*file.cache, first, end);
}

// The kernel writes to memory that it has pinned: without a fault, and without a trace in the page
// table.
void App::write_pinned() {
  if (pins_.empty()) return;
  const Pin& pin = pins_[random_.below(pins_.size())];
  const uint64_t from = pin.view->offset + static_cast<uint64_t>(pin.from - pin.view->address);
  for (uint64_t tries = 0; tries < 4; ++tries) {
    const uint64_t pages = pin.size_bytes / kSystemPage + 2;
    const uint64_t cell = from / kSystemPage * Oracle::kCellsOfSystemPage +
                          random_.below(pages * Oracle::kCellsOfSystemPage);
    const uint64_t offset = Oracle::offset_of(cell);
    if (cell >= pin.file->oracle->cell_count() || offset < from ||
        offset + 8 > from + pin.size_bytes)
      continue;
    sim_.fibers_.step("pinned write", offset);
    std::byte* bytes = sim_.kernel_.touch_pinned(pin.from + (offset - from));
    if (pin.view->is_writable) set_cell(*pin.file, cell, bytes);
    return;
  }
}

void App::unpin_one() {
  if (pins_.empty()) return;
  const Pin pin = pins_.back();
  pins_.pop_back();
  const Status unpinned = sim_.engine_->unpin(*pin.view->view, pin.from, pin.size_bytes);
  if (!unpinned.ok()) sim_.fibers_.fail(unpinned.message());
  const uint64_t from = pin.view->offset + static_cast<uint64_t>(pin.from - pin.view->address);
  const uint64_t end = std::min(from + pin.size_bytes, pin.file->plan.store_bytes);
  for (uint64_t page = from / pin.file->plan.page_bytes; page * pin.file->plan.page_bytes < end;
       ++page)
    --pin.file->oracle->use_of_page(page).writers;
  --pin.view->pins, --pin.file->pins;
}

}  // namespace outcore::sim
