#include "bench/own_heap.h"

#include <utility>

#include "bench/check.h"

namespace outcore::bench {

OwnHeap::OwnHeap(Runtime* runtime, const std::string& memory, const Options& options)
    : runtime_(runtime) {
  BENCH_CHECK(is_outcore(memory) == (runtime != nullptr));
  if (runtime != nullptr) {
    options_.page_bytes = options.page_bytes;
    return;
  }
  options_.paging = HeapPaging::kKernel;
  if (memory == "mmap-random") options_.advice = Advice::kRandom;
}

Result<OwnHeap> OwnHeap::alone(const std::string& memory, const Options& options) {
  if (!is_outcore(memory)) return OwnHeap(nullptr, memory, options);
  auto runtime = Runtime::start({.budget_bytes = options.budget_bytes});
  if (!runtime) return runtime.error();
  auto started = std::make_shared<Runtime>(std::move(runtime).value());
  OwnHeap own(started.get(), memory, options);
  own.started_ = std::move(started);
  return own;
}

Result<PersistentHeap> OwnHeap::create(const std::string& uri) const {
  return runtime_ != nullptr ? PersistentHeap::create(*runtime_, uri, options_)
                             : PersistentHeap::create(uri, options_);
}

Result<PersistentHeap> OwnHeap::open(const std::string& uri) const {
  return runtime_ != nullptr ? PersistentHeap::open(*runtime_, uri, options_)
                             : PersistentHeap::open(uri, options_);
}

Result<PersistentHeap> OwnHeap::open_read_only(const std::string& uri) const {
  return runtime_ != nullptr ? PersistentHeap::open_read_only(*runtime_, uri, options_)
                             : PersistentHeap::open_read_only(uri, options_);
}

}  // namespace outcore::bench
