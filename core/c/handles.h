// Handles: the structs behind the opaque types of the C API. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/os/process_lock.h"
#include "outcore/checkpoint.h"
#include "outcore/heap.h"
#include "outcore/outcore.h"
#include "outcore/region.h"
#include "outcore/runtime.h"
#include "outcore/store.h"

// A runtime, and counts of what it must outlive, because in C no owner enforces that.
struct oc_runtime {
  explicit oc_runtime(outcore::Runtime started) : runtime(std::move(started)) {}

  outcore::Runtime runtime;
  // Protects the fields below; not locked during calls to the engine. A forked child unmaps, too.
  outcore::os::ProcessLock mutex;
  std::vector<const oc_region*> regions;
  size_t reservation_count = 0;
  size_t heap_count = 0;
  size_t container_count = 0;  // containers that it was lent to, and their views
};

struct oc_region {
  oc_runtime* owner = nullptr;
  outcore::Region region;
  uintptr_t address = 0;  // finds regions inside a reservation, while other threads may unmap
};

struct oc_reservation {
  oc_runtime* owner = nullptr;
  outcore::Reservation reservation;
};

struct oc_heap {
  oc_runtime* owner = nullptr;  // nullptr: the default heap
  outcore::Heap heap;
};

struct oc_restarted {
  outcore::Restart last;
};

struct oc_store {
  std::shared_ptr<outcore::Store> store;
  bool is_writable = false;
};
