#include "bench/kmer_export.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>

#include "bench/read_classifier.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kLineBases = 8192;
constexpr char kLetters[] = "ACGTN";  // kNoBase is the last

const char* rank_of(Taxon taxon, const Taxonomy& taxonomy) {
  if (taxon == kRootTaxon) return "no rank";
  if (taxonomy.species_of(taxon) == kNoTaxon) return "genus";
  return taxonomy.species_of(taxon) == taxon ? "species" : "strain";
}

void write_nodes(const Taxonomy& taxonomy, std::ostream& out) {
  for (Taxon taxon = kRootTaxon; taxonomy.has(taxon); ++taxon)
    out << taxon << "\t|\t" << (taxon == kRootTaxon ? kRootTaxon : taxonomy.parent(taxon))
        << "\t|\t" << rank_of(taxon, taxonomy) << "\t|\t-\t|\n";
}

std::string name_of(Taxon taxon, const Genomes& genomes) {
  if (genomes.is_real()) return genomes.files().name_of(taxon);
  if (taxon == kRootTaxon) return "root";
  return rank_of(taxon, genomes.taxonomy()) + (" " + std::to_string(taxon));
}

void write_names(const Genomes& genomes, std::ostream& out) {
  for (Taxon taxon = kRootTaxon; genomes.taxonomy().has(taxon); ++taxon)
    out << taxon << "\t|\t" << name_of(taxon, genomes) << "\t|\t\t|\tscientific name\t|\n";
}

void write_genomes(const Genomes& genomes, std::ostream& out) {
  std::string line;
  for (uint32_t strain = 0; strain < genomes.taxonomy().strains(); ++strain) {
    const Sequence sequence = genomes.sequence(strain);
    out << ">strain" << strain << '\n';
    const uint64_t bases = genomes.bases_of(strain);
    for (uint64_t at = 0; at < bases; at += kLineBases) {
      line.clear();
      for (uint64_t i = at; i < std::min(at + kLineBases, bases); ++i)
        line += kLetters[sequence.base(i)];
      out << line << '\n';
    }
  }
}

void write_strains(const Taxonomy& taxonomy, std::ostream& out) {
  for (uint32_t strain = 0; strain < taxonomy.strains(); ++strain)
    out << "strain" << strain << '\t' << taxonomy.strain(strain) << '\n';
}

void write_reads(const Genomes& genomes, uint64_t reads, std::ostream& out) {
  for (uint64_t number = 0; number < reads; ++number) {
    const Read read = genomes.read(number);
    std::string bases;
    for (const uint8_t base : read.bases()) bases += kLetters[base];
    out << ">r" << number << '\n' << bases << '\n';
  }
}

void write_answers(const Genomes& genomes, const KmerIndex& index, uint64_t reads,
                   std::ostream& out) {
  for (uint64_t number = 0; number < reads; ++number) {
    const Read read = genomes.read(number);
    out << 'r' << number << '\t' << classify(read, index, genomes.taxonomy()) << '\t' << read.truth
        << '\n';
  }
}

// A file of the folder, written by a function.
Status write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  if (file) write(file);
  file.close();
  if (file) return {};
  return cli::failure(errno != 0 ? errno : EIO, "write " + path,
                      "name a folder that you may write to, with more space, by --export");
}

}  // namespace

Status make_export_folder(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (!failed && !std::filesystem::is_empty(folder, failed) && !failed)
    return Error{EEXIST, folder + " is not empty: name a new folder by --export"};
  if (!failed) std::filesystem::create_directory(folder + "/taxonomy", failed);
  if (!failed) return {};
  return cli::failure(failed.value(), "make the folder " + folder,
                      "name one that you may write to by --export");
}

Status export_sample(const Genomes& genomes, const KmerIndex& index, uint64_t reads,
                     const std::string& folder) {
  const std::pair<const char*, std::function<void(std::ostream&)>> files[] = {
      {"taxonomy/nodes.dmp", [&](std::ostream& out) { write_nodes(genomes.taxonomy(), out); }},
      {"taxonomy/names.dmp", [&](std::ostream& out) { write_names(genomes, out); }},
      {"genomes.fa", [&](std::ostream& out) { write_genomes(genomes, out); }},
      {"seqid2taxid.map", [&](std::ostream& out) { write_strains(genomes.taxonomy(), out); }},
      {"reads.fa", [&](std::ostream& out) { write_reads(genomes, reads, out); }},
      {"answers.tsv", [&](std::ostream& out) { write_answers(genomes, index, reads, out); }}};
  for (const auto& [name, write] : files)
    if (Status s = write_file(folder + "/" + name, write); !s) return s;
  return {};
}

}  // namespace outcore::bench
