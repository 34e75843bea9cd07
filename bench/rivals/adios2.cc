// ADIOS2, engine BP5, of the wheel on PyPI, which has no MPI: each process writes a file of its own
// with its boxes of the whole arrays. Who reads by planes opens all of them with the same box: each
// file gives what it has of it.
#include <adios2.h>

#include "bench/rivals/rival.h"

namespace outcore::rivals {
namespace {

adios2::Dims of_adios(const Dims& dims) { return {dims.begin(), dims.end()}; }

class Adios2 final : public Rival {
 public:
  std::string name() const override { return "adios2"; }
  std::string version() const override { return ADIOS2_VERSION_STR; }
  std::vector<std::string> files(const Work& work, unsigned rank) const override {
    return {path(work, rank)};
  }

  void write(const Work& work, const Data& data) override {
    adios2::ADIOS adios;
    adios2::IO io = adios.DeclareIO("s3d");
    io.SetEngine("BP5");
    adios2::Engine engine = io.Open(path(work, work.rank), adios2::Mode::Write);
    engine.BeginStep();
    for (size_t v = 0; v < kVariables.size(); ++v) {
      const Box box = work.box(kVariables[v], work.rank, Division::kBoxes);
      const auto variable =
          io.DefineVariable<double>(kVariables[v].name, of_adios(work.shape(kVariables[v])),
                                    of_adios(box.at), of_adios(box.dims), adios2::ConstantDims);
      engine.Put(variable, data[v].data());
    }
    engine.EndStep();
    engine.Close();
  }
  void read(const Work& work, Division division, Data* data) override {
    for (unsigned writer = 0; writer < work.size; ++writer) {
      if (division == Division::kBoxes && writer != work.rank) continue;
      adios2::ADIOS adios;
      adios2::IO io = adios.DeclareIO("s3d");
      io.SetEngine("BP5");
      adios2::Engine engine = io.Open(path(work, writer), adios2::Mode::Read);
      engine.BeginStep();
      for (size_t v = 0; v < kVariables.size(); ++v) {
        const Box box = work.box(kVariables[v], work.rank, division);
        auto variable = io.InquireVariable<double>(kVariables[v].name);
        require(static_cast<bool>(variable), "InquireVariable");
        variable.SetSelection({of_adios(box.at), of_adios(box.dims)});
        engine.Get(variable, (*data)[v].data());
      }
      engine.EndStep();
      engine.Close();
    }
  }

 private:
  static std::string path(const Work& work, unsigned rank) {
    return work.path("s3d" + std::to_string(rank) + ".bp5");
  }
};

}  // namespace

std::unique_ptr<Rival> make_rival() { return std::make_unique<Adios2>(); }

}  // namespace outcore::rivals
