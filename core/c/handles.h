// Handles: what the opaque types of the C API are.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "outcore/checkpoint.h"
#include "outcore/heap.h"
#include "outcore/outcore.h"
#include "outcore/region.h"
#include "outcore/runtime.h"
#include "outcore/store.h"

// A runtime, and what it must outlive: C has no owner that would see to it.
struct oc_runtime {
  explicit oc_runtime(outcore::Runtime started) : runtime(std::move(started)) {}

  outcore::Runtime runtime;
  std::mutex mutex;  // of those below; never held while the engine works
  std::vector<const oc_region*> regions;
  size_t reservation_count = 0;
  size_t heap_count = 0;
  size_t container_count = 0;  // that it was lent to, and their views
};

struct oc_region {
  oc_runtime* owner = nullptr;
  outcore::Region region;
  uintptr_t address = 0;  // to find regions inside a reservation, while others may unmap
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
