// A graph that is read once and searched in every later run, by a program that holds a part of it.
//
//   example_graph graph.heap < edges.txt    reads lines "FROM TO", sorted or not
//   example_graph graph.heap VERTEX         counts what can be reached from VERTEX, step by step
#include <outcore/persistent_heap.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <vector>

// Vectors in a vector, all of them in the heap: neighbours[v] are those of vertex v.
using Graph = outcore::persistent::vector<outcore::persistent::vector<uint32_t>>;

static int fail(const outcore::Status& why) {
  return std::fprintf(stderr, "graph: %s\n", why.message().c_str()), 1;
}

static void read_edges(Graph& neighbours) {
  for (uint32_t from = 0, to = 0; std::scanf("%" SCNu32 " %" SCNu32, &from, &to) == 2;) {
    if (neighbours.size() <= std::max(from, to)) neighbours.resize(std::max(from, to) + 1);
    neighbours[from].push_back(to);
  }
}

static void search(const Graph& neighbours, uint32_t start) {
  std::vector<bool> is_seen(neighbours.size());  // ordinary memory, as ever
  std::vector<uint32_t> now{start}, next;
  is_seen[start] = true;
  for (int steps = 0; !now.empty(); ++steps, now.swap(next), next.clear()) {
    std::printf("%zu vertices at distance %d\n", now.size(), steps);
    for (const uint32_t vertex : now)
      for (const uint32_t to : neighbours[vertex])
        if (!is_seen[to]) is_seen[to] = true, next.push_back(to);
  }
}

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return std::fprintf(stderr, "usage: graph HEAP [VERTEX]\n"), 2;
  auto heap = argc == 2 ? outcore::PersistentHeap::create(argv[1])
                        : outcore::PersistentHeap::open_read_only(argv[1]);
  if (!heap) return fail(heap.status());
  if (argc == 2) {
    auto graph = heap->construct<Graph>("graph");
    if (!graph) return fail(graph.status());
    try {
      read_edges(**graph);
    } catch (const outcore::PersistentHeapFull& full) {  // containers throw; all else returns
      return fail(full.error());
    }
    std::printf("%zu vertices\n", (*graph)->size());
  } else {
    auto graph = heap->find<Graph>("graph");
    if (!graph) return fail(graph.status());
    const unsigned long vertex = std::strtoul(argv[2], nullptr, 10);
    if (vertex >= (*graph)->size()) return fail(outcore::Error{EINVAL, "no such vertex"});
    search(**graph, static_cast<uint32_t>(vertex));
  }
  if (const outcore::Status closed = heap->close(); !closed) return fail(closed);
  return 0;
}
