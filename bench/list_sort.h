// ListSort: what one worker does for the words of a SortList, until all are sorted.
#pragma once

#include <cstdint>
#include <optional>

#include "bench/sort_list.h"
#include "bench/stage.h"

namespace outcore::bench {

// A thread of any process whose `words` are those of the list.
class ListSort {
 public:
  ListSort(SortList& list, uint64_t* words, Stage& stage)
      : list_(list), words_(words), stage_(stage) {}
  // How many words it brought in their last order; none if another process failed.
  std::optional<uint64_t> work();

 private:
  uint64_t sort(WordRange range);
  SortList& list_;
  uint64_t* const words_;
  Stage& stage_;
};

}  // namespace outcore::bench
