#include "bench/workload.h"

#include <cerrno>

#include "bench/graph_construct.h"

namespace outcore::bench {

const std::vector<std::string>& workload_names() {
  static const std::vector<std::string> names = {
      "random-io",       "scan",        "sort",       "bfs",    "components",
      "pagerank",        "alloc",       "map-lookup", "stream", "jacobi",
      "graph-construct", "three-parts", "images",     "kmers",  "ycsb",
      "matmul",          "is",          "cg",         "ft"};
  return names;
}

Result<std::unique_ptr<Workload>> make_workload(const Options& options) {
  if (options.workload == "random-io") return make_random_io(options);
  if (options.workload == "scan") return make_scan(options);
  if (options.workload == "sort") return make_sort(options);
  if (options.workload == "bfs") return make_bfs(options);
  if (options.workload == "components") return make_components(options);
  if (options.workload == "pagerank") return make_pagerank(options);
  if (options.workload == "alloc") return make_alloc(options);
  if (options.workload == "map-lookup") return make_map_lookup(options);
  if (options.workload == "stream") return make_stream(options);
  if (options.workload == "jacobi") return make_jacobi(options);
  if (options.workload == "graph-construct") return make_graph_construct(options);
  if (options.workload == "three-parts") return make_three_parts(options);
  if (options.workload == "images") return make_images(options);
  if (options.workload == "kmers") return make_kmers(options);
  if (options.workload == "matmul") return make_matmul(options);
  if (options.workload == "ft") return make_fourier(options);
  if (options.workload == "cg") return make_power_iteration(options);
  if (options.workload == "is") return make_integer_sort(options);
  if (options.workload == "ycsb") return make_ycsb(options);
  return Error{
      EINVAL, "workload '" + options.workload +
                  "' is unknown: use one of random-io, scan, sort, bfs, components, pagerank, "
                  "alloc, map-lookup, stream, jacobi, graph-construct, three-parts, images, kmers, "
                  "ycsb, matmul, is, cg, ft"};
}

}  // namespace outcore::bench
