#include "bench/genome_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "bench/check.h"
#include "bench/fasta.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

namespace fs = std::filesystem;

bool is_fasta_name(const fs::path& path) {
  const std::string end = path.extension().string();
  return end == ".fna" || end == ".fa" || end == ".fasta";
}

// What is in a folder: other folders, or FASTA files; by name, so that all machines number alike.
Result<std::vector<fs::path>> entries_of(const fs::path& folder, bool is_of_files) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code gone;  // a link that leads nowhere is passed over
    if (is_of_files ? is_fasta_name(at->path()) && at->is_regular_file(gone)
                    : at->is_directory(gone))
      found.push_back(at->path());
  }
  if (failed)
    return cli::failure(failed.value(), "read the folder " + folder.string(),
                        "name one with GENUS/SPECIES/STRAIN.fna by --genomes");
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

struct GenomeFiles::Names {
  std::vector<std::string> genera, species, strains;
  std::vector<uint32_t> genus_of_species, species_of_strain;
  std::vector<std::string> paths;  // of strains

  Status find(const std::string& folder);
  uint64_t taxa() const { return 1 + genera.size() + species.size() + strains.size(); }
};

Status GenomeFiles::Names::find(const std::string& folder) {
  auto genus_folders = entries_of(folder, false);
  if (!genus_folders) return genus_folders.status();
  for (const fs::path& genus : *genus_folders) {
    bool is_new_genus = true;
    auto species_folders = entries_of(genus, false);
    if (!species_folders) return species_folders.status();
    for (const fs::path& one : *species_folders) {
      auto files = entries_of(one, true);
      if (!files) return files.status();
      if (files->empty()) continue;
      if (std::exchange(is_new_genus, false)) genera.push_back(genus.filename().string());
      genus_of_species.push_back(static_cast<uint32_t>(genera.size() - 1));
      species.push_back(one.filename().string());
      for (const fs::path& file : *files) {
        species_of_strain.push_back(static_cast<uint32_t>(species.size() - 1));
        strains.push_back(file.stem().string());
        paths.push_back(file.string());
      }
    }
  }
  if (!strains.empty()) return {};
  return Error{ENOENT, "--genomes " + folder + " has no FASTA file: put them at " + folder +
                           "/GENUS/SPECIES/STRAIN.fna (.fa, .fasta)"};
}

GenomeFiles::GenomeFiles(const Names& names)
    : taxonomy_(names.genus_of_species, names.species_of_strain), names_{"", "root"} {
  for (const auto* const level : {&names.genera, &names.species, &names.strains})
    names_.insert(names_.end(), level->begin(), level->end());
}

Result<std::shared_ptr<const GenomeFiles>> GenomeFiles::read(const std::string& folder,
                                                             uint64_t taxa_max) {
  Names names;
  if (Status s = names.find(folder); !s) return s.error();
  if (names.taxa() > taxa_max)
    return Error{EINVAL, cli::format("--genomes %s has %llu taxa, and at most %llu have room in a "
                                     "database: leave out some strains",
                                     folder.c_str(), static_cast<unsigned long long>(names.taxa()),
                                     static_cast<unsigned long long>(taxa_max))};
  const std::shared_ptr<GenomeFiles> files(new GenomeFiles(names));
  for (const std::string& path : names.paths)
    if (Status s = files->read_strain(path); !s) return s.error();
  files->finish();
  return std::shared_ptr<const GenomeFiles>(files);
}

Status GenomeFiles::read_strain(const std::string& path) {
  Strain& strain = strains_.emplace_back();
  if (Status s = read_fasta(path, strain.bases); !s) return s;
  uint64_t before = 0;
  for (auto at = strain.bases.begin(); at != strain.bases.end();) {
    const auto end = std::find(at, strain.bases.end(), kNoBase);
    const auto bases = static_cast<uint64_t>(end - at);
    if (bases >= kRunBasesMin) {
      strain.runs.push_back({static_cast<uint64_t>(at - strain.bases.begin()), bases, before});
      before += bases;
    }
    at = std::find_if(end, strain.bases.end(), [](uint8_t base) { return base != kNoBase; });
  }
  strain.bases.shrink_to_fit();
  all_bases_ += strain.bases.size();
  if (!strain.runs.empty()) return {};
  return Error{EINVAL, cli::format("%s has no %llu bases (ACGT) in a row: leave it out",
                                   path.c_str(), static_cast<unsigned long long>(kRunBasesMin))};
}

void GenomeFiles::finish() {
  census_ = KmerCensus::of(taxonomy_, [this](uint32_t strain) { return bases_of(strain); });
  const auto add = [this](uint64_t word) { hash_ = mix(hash_ + word); };
  for (uint32_t strain = 0; strain < taxonomy_.strains(); ++strain) {
    const Taxon species = taxonomy_.parent(taxonomy_.strain(strain));
    const std::span<const uint8_t> bases = bases_of(strain);
    for (const uint64_t word :
         {uint64_t{species}, uint64_t{taxonomy_.parent(species)}, uint64_t{bases.size()}})
      add(word);
    for (size_t at = 0; at < bases.size(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, &bases[at], std::min(sizeof word, bases.size() - at));
      add(word);
    }
  }
}

uint64_t GenomeFiles::place_in(uint32_t strain, uint64_t bases, Random& random) const {
  BENCH_CHECK(bases != 0 && bases <= kRunBasesMin);
  const std::vector<Run>& runs = strains_[strain].runs;
  const uint64_t all = runs.back().before + runs.back().bases;
  for (;;) {  // again where too few follow
    const uint64_t place = random.below(all);
    const auto after =
        std::upper_bound(runs.begin(), runs.end(), place,
                         [](uint64_t at, const Run& run) { return at < run.before; });
    const Run& run = *(after - 1);
    const uint64_t in_run = place - run.before;
    if (in_run + bases <= run.bases) return run.first + in_run;
  }
}

}  // namespace outcore::bench
