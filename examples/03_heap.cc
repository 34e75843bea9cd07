// A heap larger than memory: containers whose elements rest on disk, beside others that do not.
//
//   example_heap [BUDGET_MIB]
#include <outcore/heap.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  outcore::RuntimeOptions options;
  options.budget_bytes = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 16) << 20;
  outcore::Result<outcore::Runtime> runtime = outcore::Runtime::start(options);
  if (!runtime) return std::fprintf(stderr, "start: %s\n", runtime.message().c_str()), 1;
  outcore::Result<outcore::Heap> heap = outcore::Heap::create(runtime.value());
  if (!heap) return std::fprintf(stderr, "heap: %s\n", heap.message().c_str()), 1;

  // Each variable says where it lives: these in the heap, the others in memory as ever.
  std::vector<uint64_t, outcore::Allocator<uint64_t>> squares(heap.value());
  std::map<uint64_t, uint64_t, std::less<>, outcore::Allocator<std::pair<const uint64_t, uint64_t>>>
      roots(heap.value());
  std::vector<uint64_t> sample;  // small and hot

  for (uint64_t i = 0; i < 8'000'000; ++i) squares.push_back(i * i);
  for (uint64_t i = 0; i < squares.size(); i += 80) roots[squares[i]] = i;
  for (const auto& [square, root] : roots)
    if (root % 1'000'000 == 0) sample.push_back(square);

  for (const uint64_t square : sample)
    if (roots.at(square) * roots.at(square) != square) return std::puts("wrong"), 1;
  const outcore::HeapMetrics m = heap->metrics();
  std::printf("%zu squares and %zu roots: %.0f MiB in the heap, %.0f MiB of them in memory\n",
              squares.size(), roots.size(), static_cast<double>(m.allocated_bytes) / 1048576,
              static_cast<double>(m.resident_bytes) / 1048576);
  return 0;
}
