// Cells: what writers of a test write into pages that all of them write, so that nothing can be
// lost unseen.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "core/tests/buffer/writes.h"

namespace outcore::scene::of_job {

// Each writes ever larger numbers into cells of its own, of pages that all write, and says how far
// it has come. Whatever was said is there, and the rest of the page is others' or as it was.
class Cells {
 public:
  static constexpr uint64_t kPages = 4096, kWriters = 3, kCells = 256;

  explicit Cells(Job& job) : job_(job), said_(kWriters * kCells) {}

  int clear(const Region& region) const {
    for (uint64_t cell = 0; cell < kCells; ++cell)
      for (uint64_t w = 0; w < kWriters; ++w) at(region, cell, w).store(0);
    return 0;
  }
  // Until the job is over.
  int write(const Region& region, uint64_t writer) const {
    std::mt19937_64 random(static_cast<uint64_t>(::getpid()));
    for (; job_.shared().is_over.load() == 0; job_.shared().touches.fetch_add(1)) {
      const uint64_t cell = random() % kCells, next = said(cell, writer) + 1;
      // What a killed one wrote may be there without its word.
      if (const uint64_t seen = at(region, cell, writer).load(); seen != next - 1 && seen != next)
        return std::fprintf(stderr, "cell %lu: %lu, and not %lu\n", cell, seen, next - 1), kWrong;
      at(region, cell, writer).store(next);
      said_[writer * kCells + cell].store(next);
      if (!job_.is_right(region, random() % kPages, 0)) return kWrong;
    }
    return 0;
  }
  // Of what is stored; empty: all is right.
  std::string complaint(const std::vector<uint64_t>& words) const {
    for (uint64_t cell = 0; cell < kCells; ++cell)
      for (uint64_t w = 0; w < kWriters; ++w)
        if (const uint64_t word = words[word_of(cell, w)], last = said(cell, w);
            word != last && word != last + 1)
          return std::to_string(word) + " is stored where " + std::to_string(last) +
                 " was written last";
    return "";
  }

 private:
  static uint64_t word_of(uint64_t cell, uint64_t writer) {
    return (cell * (kPages / kCells) + 5) * 512 + 8 + writer;
  }
  static Cell& at(const Region& region, uint64_t cell, uint64_t writer) {
    return reinterpret_cast<Cell*>(region.data())[word_of(cell, writer)];
  }
  uint64_t said(uint64_t cell, uint64_t writer) const {
    return said_[writer * kCells + cell].load();
  }
  Job& job_;
  const Common<Cell> said_;  // what each has written last into each of its cells
};

}  // namespace outcore::scene::of_job
