// ADIOS 1.13, without XML. --variant: its transport, POSIX (a file for each process; the default),
// MPI (one file by MPI-IO) or MPI_AGGREGATE (a file for each process that collects).
#include <adios.h>
#include <adios_error.h>
#include <adios_read.h>
#include <adios_version.h>

#include "bench/rivals/rival.h"

namespace outcore::rivals {
namespace {

void done(bool is_done, const char* what) {
  if (!is_done) fail(std::string(what) + ": " + adios_errmsg());
}

std::string of_adios(const Dims& dims) {
  std::string text;
  for (const uint64_t n : dims) text += (text.empty() ? "" : ",") + std::to_string(n);
  return text;
}

class Adios final : public Rival {
 public:
  std::string name() const override { return "adios"; }
  std::string version() const override { return ADIOS_VERSION; }
  std::vector<std::string> files(const Work& work, unsigned rank) const override {
    if (transport(work) == "MPI") return {path(work)};
    std::string own = path(work) + ".dir";  // by MPI_AGGREGATE any of it may be this process'
    if (transport(work) == "POSIX") own += "/s3d.bp." + std::to_string(rank);
    if (rank != 0) return {own};
    return {own, path(work), path(work) + ".dir"};  // the index is the first process' to write
  }

  void begin(const Work& work) override {
    done(adios_init_noxml(MPI_COMM_WORLD) == 0, "adios_init_noxml");
    adios_set_max_buffer_size((work.bytes() / work.size >> 20) + 64);
    done(adios_read_init_method(ADIOS_READ_METHOD_BP, MPI_COMM_WORLD, "verbose=1") == 0,
         "adios_read_init_method");
  }
  void end(const Work& work) override {
    adios_read_finalize_method(ADIOS_READ_METHOD_BP);
    adios_finalize(static_cast<int>(work.rank));
  }

  void write(const Work& work, const Data& data) override {
    int64_t group = 0, file = 0;
    uint64_t bytes = 0, total = 0;
    done(adios_declare_group(&group, "s3d", "", adios_stat_no) == 0, "adios_declare_group");
    const bool is_collected = transport(work) == "MPI_AGGREGATE";
    const std::string words =
        is_collected ? "num_aggregators=" + std::to_string(work.size) + ",num_ost=1" : "";
    done(adios_select_method(group, transport(work).c_str(), words.c_str(), "") == 0,
         "adios_select_method");
    for (const Variable& v : kVariables) {
      const Box box = work.box(v, work.rank, Division::kBoxes);
      done(adios_define_var(group, v.name, "", adios_double, of_adios(box.dims).c_str(),
                            of_adios(work.shape(v)).c_str(), of_adios(box.at).c_str()) != 0,
           "adios_define_var");
      bytes += box.count() * 8;
    }
    done(adios_open(&file, "s3d", path(work).c_str(), "w", MPI_COMM_WORLD) == 0, "adios_open");
    done(adios_group_size(file, bytes, &total) == 0, "adios_group_size");
    for (size_t v = 0; v < kVariables.size(); ++v)
      done(adios_write(file, kVariables[v].name, data[v].data()) == 0, "adios_write");
    done(adios_close(file) == 0, "adios_close");
    done(adios_free_group(group) == 0, "adios_free_group");
  }
  void read(const Work& work, Division division, Data* data) override {
    ADIOS_FILE* const file =
        adios_read_open_file(path(work).c_str(), ADIOS_READ_METHOD_BP, MPI_COMM_WORLD);
    done(file != nullptr, "adios_read_open_file");
    std::vector<ADIOS_SELECTION*> boxes;
    for (size_t v = 0; v < kVariables.size(); ++v) {
      const Box box = work.box(kVariables[v], work.rank, division);
      boxes.push_back(adios_selection_boundingbox(static_cast<int>(box.dims.size()), box.at.data(),
                                                  box.dims.data()));
      done(
          adios_schedule_read(file, boxes.back(), kVariables[v].name, 0, 1, (*data)[v].data()) == 0,
          "adios_schedule_read");
    }
    done(adios_perform_reads(file, 1) == 0, "adios_perform_reads");
    for (ADIOS_SELECTION* const box : boxes) adios_selection_delete(box);
    adios_read_close(file);
  }

 private:
  static std::string path(const Work& work) { return work.path("s3d.bp"); }
  static std::string transport(const Work& work) {
    return work.variant.empty() ? "POSIX" : work.variant;
  }
};

}  // namespace

std::unique_ptr<Rival> make_rival() { return std::make_unique<Adios>(); }

}  // namespace outcore::rivals
