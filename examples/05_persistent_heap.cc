// A word index that grows with each run: objects that are still there after the program has ended.
// Usage: example_persistent_heap HEAP WORD…   (docs/reference/persistent-heap.md)
#include <cerrno>
#include <cstdio>
#include <string>

#include "outcore/persistent_heap.h"

// Pages and words nest, and lie in the heap with all that they hold.
using Places = outcore::persistent::vector<uint64_t>;
using Index = outcore::persistent::map<outcore::persistent::string, Places>;

static int fail(const outcore::Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s HEAP WORD...\n", argv[0]);
    return 2;
  }
  auto heap = outcore::PersistentHeap::open(argv[1]);
  if (heap.code() == ENOENT) heap = outcore::PersistentHeap::create(argv[1]);
  if (!heap) return fail(heap.status());  // open elsewhere, not closed, no heap, …

  auto index = heap->find_or_construct<Index>("index");
  auto count = heap->find_or_construct<uint64_t>("count", 0u);
  if (!index) return fail(index.status());
  if (!count) return fail(count.status());
  for (int i = 2; i < argc; ++i) {
    const outcore::persistent::string word(argv[i], heap->allocator<char>());
    (**index)[word].push_back((**count)++);
  }
  std::printf("%llu words, %zu different\n", static_cast<unsigned long long>(**count),
              (**index).size());
  for (const auto& [word, places] : **index)
    std::printf("  %s: %zu times, last as number %llu\n", word.c_str(), places.size(),
                static_cast<unsigned long long>(places.back()));

  // Everything is durable now, or the error says why not.
  if (const outcore::Status closed = heap->close(); !closed) return fail(closed);
  return 0;
}
