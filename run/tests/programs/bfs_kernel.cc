// A breadth-first search by threads, as in the GAP benchmark suite: the graph is large, in
// compressed rows, and allocated by new. Prints how many vertices each depth has, and whether the
// search is right.

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

namespace {

constexpr uint32_t kVertices = 1 << 15;
constexpr uint32_t kDegree = 192;  // edges of a vertex: 24 MiB in all
constexpr uint32_t kNone = ~0u;
constexpr unsigned kThreads = 2;

// The edges are a function, so that the graph is filled in order and can be checked without itself.
uint32_t neighbour(uint32_t vertex, uint32_t edge) {
  uint64_t x = (uint64_t{vertex} << 32 | edge) + 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  // Most edges stay near, so that the search takes several steps.
  const auto far = static_cast<uint32_t>(x % kVertices);
  return x >> 56 == 0 && edge == 0 ? far : (vertex + 1 + far % 512) % kVertices;
}

struct Graph {
  std::unique_ptr<uint64_t[]> begins{new uint64_t[kVertices + 1]};
  std::unique_ptr<uint32_t[]> edges{new uint32_t[uint64_t{kVertices} * kDegree]};
};

void fill(Graph& graph) {
  uint64_t at = 0;
  for (uint32_t v = 0; v < kVertices; v++) {
    graph.begins[v] = at;
    for (uint32_t e = 0; e < kDegree; e++) graph.edges[at++] = neighbour(v, e);
  }
  graph.begins[kVertices] = at;
}

using Depths = std::vector<std::atomic<uint32_t>>;

// One step: the unseen neighbours of `from[first], from[first + kThreads], …`.
void expand(const Graph& graph, Depths& depths, const std::vector<uint32_t>& from, size_t first,
            uint32_t depth, std::vector<uint32_t>& found) {
  for (size_t i = first; i < from.size(); i += kThreads) {
    for (uint64_t e = graph.begins[from[i]]; e < graph.begins[from[i] + 1]; e++) {
      const uint32_t to = graph.edges[e];
      uint32_t expected = kNone;
      if (depths[to].compare_exchange_strong(expected, depth)) found.push_back(to);
    }
  }
}

void search(const Graph& graph, Depths& depths, uint32_t source) {
  for (auto& depth : depths) depth = kNone;
  depths[source] = 0;
  std::vector<uint32_t> frontier = {source};
  for (uint32_t depth = 1; !frontier.empty(); depth++) {
    std::vector<uint32_t> found[kThreads];
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; t++)
      threads.emplace_back([&, t] { expand(graph, depths, frontier, t, depth, found[t]); });
    for (auto& thread : threads) thread.join();
    frontier.clear();
    for (auto& part : found) frontier.insert(frontier.end(), part.begin(), part.end());
  }
}

// No edge skips a depth, and each vertex but the source has an edge from the depth before.
bool is_right(const Graph& graph, const Depths& depths, uint32_t source) {
  std::vector<bool> has_parent(kVertices);
  uint64_t at = 0;
  for (uint32_t v = 0; v < kVertices; v++) {
    for (uint32_t e = 0; e < kDegree; e++, at++) {
      const uint32_t to = graph.edges[at];
      if (to != neighbour(v, e)) return false;
      if (depths[v] == kNone) continue;
      if (depths[to] > depths[v] + 1) return false;
      if (depths[to] == depths[v] + 1) has_parent[to] = true;
    }
  }
  for (uint32_t v = 0; v < kVertices; v++)
    if (v != source && depths[v] != kNone && !has_parent[v]) return false;
  return depths[source] == 0;
}

}  // namespace

int main() {
  Graph graph;
  fill(graph);
  Depths depths(kVertices);
  for (const uint32_t source : {1u, 20000u}) {
    search(graph, depths, source);
    std::vector<uint32_t> counts;
    for (const auto& depth : depths) {
      if (depth == kNone) continue;
      if (depth >= counts.size()) counts.resize(depth + 1);
      counts[depth]++;
    }
    for (const uint32_t count : counts) printf("%u ", count);
    if (!is_right(graph, depths, source)) {
      puts("is wrong");
      return 1;
    }
    puts("verified");
  }
}
