// ProgramStore: a store that a program wrote for UMap, as a store of Outcore.
//
// UMap calls its stores for whole pages, with buffers of its own, and stores count on that: offsets
// are multiples of the page size, buffers are aligned for O_DIRECT, and there is room behind them
// (a store of UMap's examples reads a little more than it was asked for). So does this one. Threads
// of the runtime alone call it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "outcore/store.h"
#include "outcore/umap_store.h"

namespace outcore::umapped {

class ProgramStore final : public Store {
 public:
  // The program keeps the store alive. REQUIRES: it is not null; the page size is a power of two,
  // from 4 KiB to 16 MiB.
  ProgramStore(Umap::Store* store, uint64_t size_bytes, uint64_t page_bytes);

  uint64_t size_bytes() const override { return size_bytes_; }  // a whole number of pages
  int read(uint64_t offset, std::span<std::byte> into) override;
  // A part of a page is written with the rest of it, which is read first: a page has one write-back
  // at a time, and is not read meanwhile.
  int write(uint64_t offset, std::span<const std::byte> from) override;
  StoreTraits traits() const override;
  std::string uri() const override { return "umap_ex:"; }

  // For the end of the region: reads fail from now on (ECANCELED), and none is in the program's
  // store any more when the call returns. Writes go on.
  void stop_reads();
  void allow_reads();

 private:
  int read_pages(uint64_t offset, std::span<std::byte> into) const;
  int read_page(uint64_t page_offset, char* page) const;
  int write_page(uint64_t page_offset, char* page) const;

  Umap::Store* const store_;
  const uint64_t page_bytes_;
  const uint64_t size_bytes_;
  // Counted, not locked: a read is in the program's code.
  std::mutex lock_;
  std::condition_variable reads_ended_;
  uint32_t reads_ = 0;
  bool are_reads_stopped_ = false;
};

}  // namespace outcore::umapped
