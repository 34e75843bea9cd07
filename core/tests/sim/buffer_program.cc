// What the threads of a simulated process do (BufferProcess).
#include <algorithm>
#include <cerrno>

#include "core/tests/sim/buffer_process.h"

namespace outcore::sim {

using buffer::kPage;

void BufferProcess::act(std::vector<Pin>& pins) {
  const uint64_t dice = random_.below(1000);
  if (dice < 520) return touch_some(false);
  if (dice < 800) return touch_some(is_writer_);
  if (dice < 850) return flush();
  if (dice < 900) return pin(pins);
  if (dice < 940) return unpin(pins);
  if (dice < 970)
    return engine_->prefetch(*view_, random_.below(world_.file.pages()), 1, random_.between(1, 24));
  if (dice < 985) return change_private();
  world_.fibers.let_pass(random_.between(100, 200'000));
}

std::byte* BufferProcess::touch(uint64_t page, bool is_write) {
  for (;;) {
    world_.fibers.step(is_write ? "touches to write" : "touches", page);
    if (std::byte* bytes = frames_->touch(page, is_write); bytes != nullptr) return bytes;
    ++world_.tally.faults;
    world_.fibers.set_in_fault(true);
    const os::FaultOutcome outcome = engine_->fault(*view_, address_of(page), is_write);
    world_.fibers.set_in_fault(false);
    if (outcome == os::FaultOutcome::kDone) continue;
    ++world_.tally.failures;
    world_.fibers.require(world_.plan.may_fail(), "a fault fails, and nothing else has", page);
    return nullptr;
  }
}

// From the touch on nobody else runs: the kernel does both at once.
bool BufferProcess::touch_cell(uint64_t cell, bool is_write) {
  ++world_.tally.touches;
  std::byte* const bytes = touch(BufferFile::page_of(cell), is_write);
  if (bytes == nullptr) return false;
  world_.file.check_read(cell, bytes, number_);
  if (is_write) world_.file.write(cell, bytes, random_.next());
  return true;
}

// One, or neighbouring pages, which starts readahead, or runs of pages that are let in together.
void BufferProcess::touch_some(bool is_write) {
  const uint64_t cells = world_.file.cells(), hot = std::max<uint64_t>(cells / 8, 1);
  const uint64_t first = random_.chance(400) ? random_.below(hot) : random_.below(cells);
  const uint64_t count = random_.chance(100) ? random_.between(4, 24) : 1;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t cell = first + i * BufferFile::kCellsOfPage;
    if (cell >= cells || !touch_cell(cell, is_write)) return;
  }
}

Status BufferProcess::flush_pages(uint64_t first, uint64_t end) {
  const uint64_t before = world_.file.events();
  const Status flushed = engine_->flush(*cache_, first, end);
  ++world_.tally.flushes;
  if (flushed.ok()) world_.file.check_stored(first, end, before, "a flush");
  return flushed;
}

void BufferProcess::flush() {
  if (!is_writer_) return touch_some(false);
  const uint64_t first = random_.below(world_.file.pages());
  const uint64_t end =
      random_.chance(300) ? world_.file.pages() : std::min(world_.file.pages(), first + 16);
  const Status flushed = flush_pages(first, end);
  if (!flushed.ok() && !world_.plan.may_fail())
    world_.fibers.fail("a flush fails: " + flushed.message());
}

void BufferProcess::pin(std::vector<Pin>& pins) {
  if (pins.size() == kPinsMax) return unpin(pins);
  const uint64_t page = random_.below(world_.file.pages());
  const bool is_written = is_writer_ && random_.chance(500);
  const int result = engine_->pin_page(*view_, page, address_of(page), is_written);
  if (result == -ENOMEM) return;  // half of the room is for those who pin nothing
  world_.fibers.require(result == 0 || world_.plan.may_fail(), "a pin fails", page,
                        static_cast<uint64_t>(-result));
  if (result != 0) return;
  ++world_.tally.pins;
  pins.push_back({page, world_.kernel.incarnation(cache_->shared->frame_page(page)), is_written});
}

// It has stayed all the time; and the kernel can write to it, if it was pinned for that.
void BufferProcess::check_pin(const Pin& pin) {
  const uint64_t frame_page = cache_->shared->frame_page(pin.page);
  world_.fibers.require(world_.kernel.is_in(frame_page), "a pinned page has left", pin.page);
  world_.fibers.require(world_.kernel.incarnation(frame_page) == pin.incarnation,
                        "a pinned page has left and come again", pin.page);
  if (!pin.is_written) return;
  std::byte* const bytes = frames_->touch(pin.page, true);
  world_.fibers.require(bytes != nullptr, "a page that is pinned to be written is not writable",
                        pin.page);
  world_.file.write(pin.page * BufferFile::kCellsOfPage, bytes, random_.next());
}

void BufferProcess::unpin(std::vector<Pin>& pins) {
  if (pins.empty()) return touch_some(false);
  const size_t i = random_.below(pins.size());
  check_pin(pins[i]);
  engine_->unpin_page(*cache_, pins[i].page);
  pins.erase(pins.begin() + static_cast<std::ptrdiff_t>(i));
}

// Memory of the limit that is this process's alone. One thread at a time has a say.
void BufferProcess::change_private() {
  const uint64_t bytes = random_.between(1, 4) * kPage;
  if (private_bytes_ >= bytes && random_.chance(600)) {
    private_bytes_ -= bytes;
    return buffer_->release_private(bytes);
  }
  if (!buffer_->acquire_private(bytes, 20'000'000)) return;
  private_bytes_ += bytes;
}

}  // namespace outcore::sim
