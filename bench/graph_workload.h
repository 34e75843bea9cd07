// GraphWorkload: what bfs, components and pagerank share: the graph file, the place of what they
// keep for each vertex, and the answer of a plain program that theirs is compared with.
//
// The data has two parts, which are placed independently, as in the search that the paper on
// DI-MMAP measures (sections 4.2 and 5.4): the graph (offsets and neighbours), which is always in
// the memory under test, and the state (answers, frontiers, queues). Semi-external: the state is
// the program's own memory. Fully external: it is a second file in the memory under test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "bench/csr.h"
#include "bench/data.h"
#include "bench/workload.h"

namespace outcore::bench {

class GraphWorkload : public Workload {
 public:
  explicit GraphWorkload(const Options& options);

  uint64_t data_bytes() const override;
  const std::string& uri() const override { return graph_file_.uri(); }
  void forget() override;
  Status prepare() override;
  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 protected:
  const Options& options() const { return options_; }
  const CsrHeader& header() const { return header_; }  // REQUIRES: prepare() succeeded

  // How large the state is, which begins with the answer. REQUIRES: prepare() succeeded.
  virtual uint64_t state_bytes() const = 0;
  virtual uint64_t answer_bytes() const = 0;
  virtual uint64_t hash_answer(std::span<const std::byte> answer) const = 0;
  // The hash of the right answer, by one thread of a plain program over a graph in memory.
  virtual uint64_t reference_answer(const CsrView& graph) const = 0;
  // Child: the work, between start() and stop() of the stage; how many edges it followed. The
  // state is all zeros.
  virtual Result<uint64_t> work(const CsrView& graph, std::span<std::byte> state, Stage& stage) = 0;

 private:
  Status make_graph();
  Status read_graph();
  Status clear_state();
  uint64_t state_file_bytes() const;  // whole pages

  Options options_;
  Data graph_file_, state_file_;
  std::string tag_;
  CsrHeader header_;
  uint64_t expected_ = 0;
  bool is_ready_ = false;
};

// Whether a workload of this name is one.
bool is_graph_workload(const std::string& name);

}  // namespace outcore::bench
