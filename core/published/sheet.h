// Sheet: where a runtime counts, in memory that other processes of its user may read while it runs
// (include/outcore/sight.h). It costs no thread, no call and no file: who looks opens the memory
// file by /proc/PID/fd, and it goes with the process, however that ends.
//
// Where no such memory is to be had (limits of memory, files or file sizes), counters lie in
// ordinary memory and nobody sees them; nothing else changes. Any thread but the fault path.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/published/layout.h"

namespace outcore::published {

class Sheet {
 public:
  // In memory that others may read where there is any. nullptr: not even ordinary memory is left.
  static std::shared_ptr<Sheet> make();
  ~Sheet();
  Sheet(const Sheet&) = delete;
  Sheet& operator=(const Sheet&) = delete;

  Layout& memory() { return memory_->layout; }
  // Off, and not to be turned on before has_event_memory().
  EventRing& events() { return memory_->events; }
  // Gives the ring its memory. False: there is none. Any thread but the fault path.
  bool has_event_memory() const;
  // From now on others find it. Once, when what it says of the runtime is set.
  void show();
  // A slot that the caller alone has, with nothing in it; nullptr: there is none left.
  StoreSlot* acquire_slot();
  void release_slot(StoreSlot& slot);

  // In a forked child: what it counts is not its parent's. Within its fork handler.
  static void leave_all_in_child();

 private:
  Sheet() = default;
  bool map_published();
  bool has_memory(uint64_t offset, uint64_t size_bytes) const;

  int fd_ = -1;
  Memory* memory_ = nullptr;
  Sheet *before_ = nullptr, *after_ = nullptr;  // of the list of all that are published
};

// Entry: the slot of one page cache: in a sheet, or its own where that has none for it.
class Entry {
 public:
  Entry() : Entry(nullptr) {}
  explicit Entry(std::shared_ptr<Sheet> sheet);
  ~Entry();
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  StoreSlot& operator*() const { return *slot_; }
  StoreSlot* operator->() const { return slot_; }

  // Others can see it: the sheet had a slot.
  bool is_published() const { return own_ == nullptr; }
  // Somebody watches, and would see events of this cache. The fault path.
  bool is_watched() const { return events_ != nullptr && events_->is_on(); }
  // A fault on the page, with its place in the code and how long it took; or what else there is.
  // REQUIRES: is_watched(), a moment ago.
  void publish_fault(uint64_t page, uint64_t site, uint64_t duration_ns) const;
  void publish(EventKind kind, uint64_t page) const;

 private:
  void put(Event event) const;

  const std::shared_ptr<Sheet> sheet_;
  std::unique_ptr<StoreSlot> own_;
  StoreSlot* slot_ = nullptr;
  EventRing* events_ = nullptr;  // nullptr: nobody can watch it
  uint32_t number_ = 0;          // of the slot
};

}  // namespace outcore::published
