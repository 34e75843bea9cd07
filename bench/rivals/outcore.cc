// Outcore's named arrays, by MPI. --variant pmem:, or pmem:?map_sync=off: as persistent memory,
// with MAP_SYNC or without; where the folder has no DAX they are written as a file.
#include <algorithm>
#include <map>
#include <optional>

#include "bench/rivals/rival.h"
#include "outcore/arrays_mpi.h"

namespace outcore::rivals {
namespace {

template <typename T>
T value_of(Result<T> result) {
  if (!result) fail(result.message());
  return std::move(result).value();
}

void done(const Status& status) {
  if (!status.ok()) fail(status.message());
}

class ByOutcore final : public Rival {
 public:
  std::string name() const override { return "outcore"; }
  std::string version() const override { return ""; }
  std::vector<std::string> files(const Work& work, unsigned) const override { return {file(work)}; }
  bool is_durable() const override { return true; }

  void write(const Work& work, const Data& data) override {
    Arrays out = value_of(Arrays::open(path(work), ArraysMode::kWrite, mpi(MPI_COMM_WORLD)));
    for (size_t v = 0; v < kVariables.size(); ++v) {
      const Box box = work.box(kVariables[v], work.rank, Division::kBoxes);
      done(out.alloc<double>(kVariables[v].name, work.shape(kVariables[v])));
      done(out.store(kVariables[v].name, data[v].data(), box.at, box.dims));
    }
    done(out.close());
  }
  void read(const Work& work, Division division, Data* data) override {
    const Arrays in = value_of(Arrays::open(path(work)));
    for (size_t v = 0; v < kVariables.size(); ++v) {
      const Box box = work.box(kVariables[v], work.rank, division);
      done(in.load(kVariables[v].name, (*data)[v].data(), box.at, box.dims));
    }
  }

  bool has_views() const override { return true; }
  Look view(const Work& work, size_t v, const Box& box) override {
    if (!in_) in_ = value_of(Arrays::open(path(work)));
    views_[v] = value_of(in_->view<double>(kVariables[v].name, box.at, box.dims));
    return {views_[v].data(), views_[v].strides()};
  }
  void end_views() override {
    views_.clear();
    in_.reset();
  }

 private:
  static std::string file(const Work& work) { return work.path("arrays.oca"); }
  static std::string path(const Work& work) {
    const size_t scheme = std::min(work.variant.find(':') + 1, work.variant.size());
    return work.variant.substr(0, scheme) + file(work) + work.variant.substr(scheme);
  }
  std::optional<Arrays> in_;
  std::map<size_t, ArrayView<const double>> views_;
};

}  // namespace

std::unique_ptr<Rival> make_rival() { return std::make_unique<ByOutcore>(); }

}  // namespace outcore::rivals
