#include "bench/graph_workload.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "bench/anonymous_memory.h"
#include "bench/check.h"
#include "bench/medium.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

std::string graph_file_name(const Options& options) {
  return cli::format("outcore-bench-rmat-%u-%u-%llu.csr", options.scale, options.edge_factor,
                     static_cast<unsigned long long>(options.seed));
}

Options options_of_graph(Options options) {
  if (!options.graph.empty()) options.store = options.graph;
  return options;
}

// The state lies beside the graph.
Options options_of_state(Options options, const std::string& graph_path) {
  options.store.clear();
  options.dir = std::filesystem::path(graph_path).parent_path();
  if (options.dir.empty()) options.dir = ".";
  return options;
}

// What a child says of the graph, and of the answer in plain memory.
struct Reference {
  int code = 0;  // 0, or an errno
  uint64_t answer = 0;
};

Result<Reference> receive(int pipe, pid_t child, uint64_t graph_bytes) {
  Reference reference;
  ssize_t n = 0;
  while ((n = ::read(pipe, &reference, sizeof reference)) < 0 && errno == EINTR) continue;
  close(pipe);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  if (n == sizeof reference) return reference;
  return Error{ENOMEM,
               "the work in plain memory, which the others are compared with, failed: it needs " +
                   cli::format_bytes(graph_bytes)};
}

// Writes a byte of each page, so that the memory is the program's before it is limited.
void touch_pages(std::span<std::byte> bytes) {
  for (uint64_t at = 0; at < bytes.size(); at += kUnitBytes) bytes[at] = std::byte{0};
}

}  // namespace

GraphWorkload::GraphWorkload(const Options& options)
    : options_(options),
      graph_file_(options_of_graph(options), graph_file_name(options)),
      state_file_(options_of_state(options, graph_file_.path()),
                  std::filesystem::path(graph_file_.path()).filename().string() + ".state"),
      tag_(cli::format("rmat scale %u edge factor %u seed %llu", options.scale, options.edge_factor,
                       static_cast<unsigned long long>(options.seed))) {}

uint64_t GraphWorkload::data_bytes() const {
  return header_.size_bytes() + (options_.is_fully_external ? state_file_bytes() : 0);
}

uint64_t GraphWorkload::state_file_bytes() const {
  return (state_bytes() + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
}

void GraphWorkload::forget() {
  graph_file_.forget();
  if (options_.is_fully_external) state_file_.forget();
}

Status GraphWorkload::prepare() {
  if (!is_ready_ && options_.graph.empty())
    if (Status s = make_graph(); !s) return s;
  if (!is_ready_)
    if (Status s = read_graph(); !s) return s;
  is_ready_ = true;
  return options_.is_fully_external ? clear_state() : Status();
}

Status GraphWorkload::make_graph() {
  if (Status s = graph_file_.claim(); !s) return s;
  if (graph_file_.is_clean(tag_)) return {};
  graph_file_.mark_changed();
  auto made = make_rmat(graph_file_.uri(), options_.scale, options_.edge_factor, options_.seed);
  if (!made) return made.status();
  graph_file_.mark_clean(tag_);
  return {};
}

// In a child, whose memory the kernel then has back at once: not part of any run's own memory.
Status GraphWorkload::read_graph() {
  auto medium = open_medium(graph_file_.uri(), 0, false);
  if (!medium) return medium.error();
  auto header = read_header(**medium);
  if (!header) return Error{header.code(), graph_file_.uri() + ": " + header.message()};
  header_ = header.value();
  int ends[2];
  if (pipe(ends) != 0) return cli::failure(errno, "make a pipe");
  const pid_t child = fork();
  if (child < 0) return cli::failure(errno, "fork");
  if (child == 0) {
    std::vector<std::byte> bytes(header_.size_bytes());
    Reference reference;
    reference.code = (*medium)->read(0, bytes).code();
    const CsrView graph(bytes);
    if (reference.code == 0 && header_.content_hash != 0 &&
        content_hash(graph) != header_.content_hash)
      reference.code = EILSEQ;
    if (reference.code == 0) reference.answer = reference_answer(graph);
    // No destructors: what is open is the parent's.
    _exit(write(ends[1], &reference, sizeof reference) == sizeof reference ? 0 : 1);
  }
  close(ends[1]);
  const Result<Reference> reference = receive(ends[0], child, header_.size_bytes());
  if (!reference) return reference.status();
  if (reference->code == EILSEQ)
    return Error{EILSEQ, graph_file_.path() + " has been changed since it was made: remove it"};
  if (reference->code != 0) return cli::failure(reference->code, "read " + graph_file_.path());
  expected_ = reference->answer;
  return {};
}

// Zeros that are written, and not a hole: pages that every memory has to read.
Status GraphWorkload::clear_state() {
  static constexpr uint64_t kZerosBytes = uint64_t{8} << 20;
  if (Status s = state_file_.claim(); !s) return s;
  state_file_.mark_changed();
  const uint64_t size_bytes = state_file_bytes();
  auto medium = open_medium(state_file_.uri(), size_bytes, true);
  if (!medium) return medium.error();
  const std::vector<std::byte> zeros(std::min(kZerosBytes, size_bytes));
  for (uint64_t at = 0; at < size_bytes; at += zeros.size()) {
    const uint64_t step = std::min<uint64_t>(zeros.size(), size_bytes - at);
    if (Status s = (*medium)->write(at, std::span(zeros).first(step)); !s) return s;
  }
  return (*medium)->sync();
}

Status GraphWorkload::run(Stage& stage) {
  const bool is_external = options_.is_fully_external;
  BENCH_CHECK(is_ready_ && options_.processes == 1);
  const AnonymousMemory own(nullptr, is_external ? kUnitBytes : state_file_bytes());
  std::span<std::byte> state = own.bytes();
  if (state.empty())
    return cli::failure(ENOMEM, "have " + cli::format_bytes(state_file_bytes()) + " of memory",
                        "make a smaller graph, or add --fully-external");
  touch_pages(state);
  if (Status s = stage.settle(); !s) return s;
  auto mapped = stage.map({graph_file_.uri(), 0, header_.size_bytes(), false});
  if (!mapped) return mapped.error();
  if (is_external) {
    auto second = stage.map({state_file_.uri(), 0, state_file_bytes(), true});
    if (!second) return second.error();
    state = second.value();
  }
  const Result<uint64_t> edges = work(CsrView(mapped.value()), state, stage);
  if (!edges) return edges.status();
  auto& extra = stage.result().extra;
  extra["vertices"] = header_.vertices;
  extra["edges"] = header_.edges;
  if (!is_external) extra["answer_hash"] = hash_answer(state.first(answer_bytes()));
  return stage.finish(static_cast<double>(edges.value()), "edges/s");
}

// Of a state in a file it is what the memory wrote there that is compared.
Status GraphWorkload::check(const RunResult& result) {
  if (result.is_stopped) return {};
  uint64_t hash = result.extra.value("answer_hash", uint64_t{0});
  if (options_.is_fully_external) {
    std::vector<std::byte> answer(answer_bytes());
    auto medium = open_medium(state_file_.uri(), state_file_bytes(), false);
    if (!medium) return medium.error();
    if (Status s = (*medium)->read(0, answer); !s) return s;
    hash = hash_answer(answer);
  }
  if (hash == expected_) return {};
  return Error{EILSEQ, "the answer is not that of the work in plain memory"};
}

bool is_graph_workload(const std::string& name) {
  return name == "bfs" || name == "components" || name == "pagerank";
}

}  // namespace outcore::bench
