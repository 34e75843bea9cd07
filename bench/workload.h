// Workload: one kind of work on data, whose answer is verified.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/options.h"
#include "bench/result.h"
#include "bench/stage.h"
#include "bench/threads.h"
#include "outcore/result.h"

namespace outcore::bench {

// The parent makes one and keeps it for all runs of an invocation; run() is called in forked
// children.
class Workload {
 public:
  virtual ~Workload() = default;
  // Parent, before each run: the data is there, as the work expects it.
  virtual Status prepare() = 0;
  // The same, where the data is another for each memory.
  virtual Status prepare_for(const std::string&) { return prepare(); }
  // Parent: the data is not in the page cache.
  virtual void forget() = 0;
  // Child: does the work once: settle, map, start, …, stop, finish.
  virtual Status run(Stage& stage) = 0;
  // Parent, after each run: errors (EILSEQ) if the answer is wrong. Outside the timed part.
  virtual Status check(const RunResult& result) = 0;

  virtual uint64_t data_bytes() const = 0;
  // What all processes of a run together map of it; more, if several map the same.
  virtual uint64_t mapped_bytes() const { return data_bytes(); }
  virtual const std::string& uri() const = 0;
  // The memories that it can use; `direct`, `malloc` and `two-pass` are for some only.
  virtual bool takes(const std::string& memory) const {
    return memory != "direct" && memory != "malloc" && memory != "two-pass";
  }
};

Result<std::unique_ptr<Workload>> make_workload(const Options& options);
std::unique_ptr<Workload> make_random_io(const Options& options);
std::unique_ptr<Workload> make_scan(const Options& options);
std::unique_ptr<Workload> make_sort(const Options& options);
std::unique_ptr<Workload> make_bfs(const Options& options);
std::unique_ptr<Workload> make_components(const Options& options);
std::unique_ptr<Workload> make_pagerank(const Options& options);
std::unique_ptr<Workload> make_alloc(const Options& options);
std::unique_ptr<Workload> make_map_lookup(const Options& options);
std::unique_ptr<Workload> make_stream(const Options& options);
std::unique_ptr<Workload> make_jacobi(const Options& options);
std::unique_ptr<Workload> make_three_parts(const Options& options);
std::unique_ptr<Workload> make_images(const Options& options);
std::unique_ptr<Workload> make_kmers(const Options& options);
std::unique_ptr<Workload> make_ycsb(const Options& options);
std::unique_ptr<Workload> make_matmul(const Options& options);
std::unique_ptr<Workload> make_integer_sort(const Options& options);
std::unique_ptr<Workload> make_power_iteration(const Options& options);
std::unique_ptr<Workload> make_fourier(const Options& options);
const std::vector<std::string>& workload_names();

}  // namespace outcore::bench
