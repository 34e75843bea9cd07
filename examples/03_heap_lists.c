// The same in C: oc_malloc in place of malloc. Where the bytes rest is told by the environment:
//
//   OUTCORE_BUDGET=16M OUTCORE_STORE=scratch:/var/tmp example_heap_lists
#include <inttypes.h>
#include <outcore/outcore.h>
#include <stdio.h>

enum { kVertices = 20000, kEdges = 3000000 };

typedef struct {
  uint32_t* neighbours;
  uint32_t count, room;
} Vertex;

static int add_edge(Vertex* vertex, uint32_t neighbour) {
  if (vertex->count == vertex->room) {
    const uint32_t room = vertex->room == 0 ? 4 : vertex->room * 2;
    uint32_t* const more = oc_realloc(vertex->neighbours, room * sizeof *more);
    if (more == NULL) return -1;
    vertex->neighbours = more;
    vertex->room = room;
  }
  vertex->neighbours[vertex->count++] = neighbour;
  return 0;
}

int main(void) {
  Vertex* const vertices = oc_calloc(kVertices, sizeof *vertices);
  if (vertices == NULL) return fprintf(stderr, "lists: %s\n", oc_last_error()), 1;
  uint64_t state = 1, sum = 0, found = 0;
  for (int i = 0; i < kEdges; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    // Neighbours in time are neighbours in the graph, as in most that are read from files.
    const uint32_t from = ((uint32_t)(i / 150) + (uint32_t)(state >> 58)) % kVertices;
    const uint32_t to = (uint32_t)(state >> 20);
    if (add_edge(&vertices[from], to) != 0)
      return fprintf(stderr, "lists: %s\n", oc_last_error()), 1;
    sum += to;
  }
  for (int i = 0; i < kVertices; ++i)
    for (uint32_t j = 0; j < vertices[i].count; ++j) found += vertices[i].neighbours[j];
  oc_heap_values values;
  oc_heap_values_init(&values);
  if (oc_heap_metrics(oc_default_heap(), &values) != 0)
    return fprintf(stderr, "lists: %s\n", oc_last_error()), 1;
  printf("%d edges in %" PRIu64 " blocks of %" PRIu64 " bytes, %" PRIu64 " bytes in memory\n",
         kEdges, values.allocated_blocks, values.allocated_bytes, values.resident_bytes);
  for (int i = 0; i < kVertices; ++i) oc_free(vertices[i].neighbours);
  oc_free(vertices);
  return found == sum ? 0 : 1;
}
