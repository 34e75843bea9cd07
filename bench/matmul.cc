// matmul: C = A x B of square matrices, of which only B is larger than memory: the experiment of
// NVMalloc (IPDPS 2012). Each process has a band of A and C in memory of its own, and all read the
// one file of B. The product is checked without computing it again (matrices.h).
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <vector>

#include "bench/band_product.h"
#include "bench/check.h"
#include "bench/data.h"
#include "bench/matrices.h"
#include "bench/medium.h"
#include "bench/workload.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kStepNumbers = uint64_t{4} << 20;  // of B, while it is made: 32 MiB

class Matmul : public Workload {
 public:
  explicit Matmul(const Options& options)
      : options_(options),
        matrices_(options.size_bytes, options.seed),
        file_bytes_((matrices_.size_bytes() + kUnitBytes - 1) / kUnitBytes * kUnitBytes),
        file_(options, cli::format("outcore-bench-matrix-%llu-%llu.dat",
                                   static_cast<unsigned long long>(options.size_bytes),
                                   static_cast<unsigned long long>(options.seed))),
        tag_(cli::format("matrix of side %llu seed %llu",
                         static_cast<unsigned long long>(matrices_.side()),
                         static_cast<unsigned long long>(options.seed))) {
    BENCH_CHECK(file_bytes_ <= options.size_bytes);
  }

  uint64_t data_bytes() const override { return file_bytes_; }
  uint64_t mapped_bytes() const override { return options_.processes * file_bytes_; }
  const std::string& uri() const override { return file_.uri(); }
  void forget() override { file_.forget(); }
  Status prepare() override;
  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  Status write_matrix();
  // Of one thread of one process; all together are all rows.
  std::unique_ptr<BandProduct> make_band(unsigned process, unsigned thread) const;

  Options options_;
  Matrices matrices_;
  uint64_t file_bytes_;
  Data file_;
  std::string tag_;
  std::optional<ProductCheck> check_;  // made before the first run; all processes inherit it
};

Status Matmul::prepare() {
  if (Status s = file_.claim(); !s) return s;
  if (!file_.is_clean(tag_)) {
    file_.mark_changed();
    if (Status s = write_matrix(); !s) return s;
    file_.mark_clean(tag_);
  }
  if (!check_) check_.emplace(matrices_, options_.seed);
  return {};
}

// Threads compute a step, and then one thread writes it, in order.
Status Matmul::write_matrix() {
  auto medium = open_medium(file_.uri(), file_bytes_, true);
  if (!medium) return medium.error();
  const uint64_t side = matrices_.side(), all = file_bytes_ / sizeof(double);
  std::vector<double> numbers(std::min(kStepNumbers, all));
  const unsigned threads = making_threads();
  for (uint64_t first = 0; first < all; first += kStepNumbers) {
    const uint64_t count = std::min(kStepNumbers, all - first);
    on_threads(threads, [&](unsigned thread) {
      const uint64_t last = count * (thread + 1) / threads;
      for (uint64_t i = count * thread / threads; i < last; ++i) {
        const uint64_t index = first + i;
        // The last page may have room behind the matrix.
        numbers[i] = index < side * side
                         ? static_cast<double>(matrices_.b(index / side, index % side))
                         : 0.0;
      }
    });
    const auto step = std::as_bytes(std::span(numbers).first(count));
    if (Status s = (*medium)->write(first * sizeof(double), step); !s) return s;
  }
  return (*medium)->sync();
}

std::unique_ptr<BandProduct> Matmul::make_band(unsigned process, unsigned thread) const {
  const uint64_t parts = uint64_t{options_.processes} * options_.threads;
  const uint64_t part = uint64_t{process} * options_.threads + thread;
  const uint64_t first = matrices_.side() * part / parts;
  const uint64_t end = matrices_.side() * (part + 1) / parts;
  return std::make_unique<BandProduct>(matrices_, first, end - first);
}

Status Matmul::run(Stage& stage) {
  BENCH_CHECK(check_.has_value());
  const uint64_t numbers = matrices_.side() * matrices_.side();
  std::vector<std::unique_ptr<BandProduct>> bands(options_.threads);
  on_threads(options_.threads,
             [&](unsigned thread) { bands[thread] = make_band(stage.process(), thread); });
  if (Status s = stage.settle(); !s) return s;
  auto mapped = stage.map({file_.uri(), 0, file_bytes_, false});
  if (!mapped) return mapped.error();
  const auto* const b = reinterpret_cast<const double*>(mapped.value().data());
  if (Status s = stage.start(numbers * options_.threads); !s) return s;
  on_threads(options_.threads, [&](unsigned thread) {
    bands[thread]->multiply(b, options_.order == "columns", options_.tile,
                            [&](uint64_t read) { stage.progress(read); });
  });
  stage.stop();
  std::atomic<uint64_t> wrong{0};
  on_threads(options_.threads, [&](unsigned thread) {
    wrong += check_->wrong_rows(bands[thread]->first_row(), bands[thread]->c());
  });
  uint64_t rows = 0;
  for (const auto& band : bands) rows += band->rows();
  // Counts of processes are added up: all rows are the side of the matrices.
  auto& extra = stage.result().extra;
  extra["rows"] = rows;
  extra["wrong"] = wrong.load();
  extra["accessed_bytes"] = numbers * sizeof(double) * options_.threads;
  return stage.finish(2.0 * static_cast<double>(numbers) * static_cast<double>(rows), "flop/s");
}

Status Matmul::check(const RunResult& result) {
  if (result.is_stopped) return {};
  const uint64_t wrong = result.extra.value("wrong", uint64_t{0});
  const uint64_t rows = result.extra.value("rows", uint64_t{0});
  if (wrong == 0 && rows == matrices_.side()) return {};
  return Error{EILSEQ, cli::format("%llu rows of %llu are not those of the product",
                                   static_cast<unsigned long long>(wrong),
                                   static_cast<unsigned long long>(matrices_.side()))};
}

}  // namespace

std::unique_ptr<Workload> make_matmul(const Options& options) {
  return std::make_unique<Matmul>(options);
}

}  // namespace outcore::bench
