// `outcore bench kmers --genomes`: FASTA files and their taxonomy, the database of them, which
// tells reads and k-mers as one of made-up genomes does, and what is no such folder.
#include <cstring>
#include <map>
#include <set>

#include "bench/fasta.h"
#include "bench/genome_files.h"
#include "bench/genomes.h"
#include "bench/kmer_builder.h"
#include "cli/tests/damaged_bench.h"
#include "cli/tests/tiny_genomes.h"

namespace outcore::cli {
namespace {

using bench::GenomeFiles;
using bench::kNoBase;
using bench::Taxon;

class RealGenomes : public DamagedBench {
 protected:
  std::shared_ptr<const GenomeFiles> files() const {
    auto all = GenomeFiles::read(tiny_.folder());
    EXPECT_TRUE(all.ok()) << all.message();
    return all.ok() ? all.value() : nullptr;
  }
  Outcome kmers(const std::string& more) const {
    return run("bench kmers --budget 4M --memory mmap,outcore --json --keep --genomes " +
               tiny_.folder() + " --dir " + dir() + " " + more);
  }
  // The one database that lies here.
  std::string database() const {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(dir()))
      if (entry.path().extension() == ".dat") found += entry.path().filename().string();
    return found;
  }

  const TinyGenomes tiny_{path("genomes")};
};

TEST_F(RealGenomes, AreLettersWithoutHeadersAndGaps) {
  tiny_.put("f", ">a name\r\nAC\r\ngt n-RA\n\n>b\nT\n>empty\n>c\nTT");
  std::vector<uint8_t> bases;
  const Status read = bench::read_fasta(tiny_.path("f"), bases);
  ASSERT_TRUE(read.ok()) << read.message();
  const uint8_t n = kNoBase;
  EXPECT_EQ(bases, (std::vector<uint8_t>{0, 1, 2, 3, n, n, n, 0, n, 3, n, n, 3, 3}));
}

TEST_F(RealGenomes, HaveTheTaxonomyOfTheirFolders) {
  tiny_.put_all();
  const auto all = files();
  ASSERT_NE(all, nullptr);
  const bench::Taxonomy& tree = all->taxonomy();
  ASSERT_EQ(tree.strains(), 4U);
  EXPECT_EQ(tree.genera(), 2U);
  std::vector<std::string> paths;
  for (uint32_t strain = 0; strain < tree.strains(); ++strain) {
    std::string path;
    for (Taxon taxon = tree.strain(strain); taxon != bench::kNoTaxon; taxon = tree.parent(taxon))
      path = " " + all->name_of(taxon) + path;
    paths.push_back(path);
  }
  EXPECT_EQ(paths, (std::vector<std::string>{" root Blue round one", " root Red round one",
                                             " root Red round two", " root Red wide one"}));
  EXPECT_EQ(tree.species_of(tree.strain(1)), tree.species_of(tree.strain(2)));
  EXPECT_EQ(tree.common_ancestor(tree.strain(1), tree.strain(3)),
            tree.parent(tree.species_of(tree.strain(3))));
  EXPECT_EQ(tree.common_ancestor(tree.strain(0), tree.strain(1)), bench::kRootTaxon);
  EXPECT_TRUE(tree.has(tree.strain(3)));
  EXPECT_FALSE(tree.has(tree.strain(3) + 1));
}

TEST_F(RealGenomes, AreAnotherDatabaseWhenABaseChanges) {
  tiny_.put_all();
  const uint64_t before = files()->hash();
  EXPECT_EQ(files()->hash(), before);
  std::fstream file(tiny_.path("Red/round/one.fna"), std::ios::in | std::ios::out);
  file.seekg(5);
  const char letter = static_cast<char>(file.get());
  file.seekp(5);
  file << (letter == 'A' ? 'C' : 'A');
  file.close();
  EXPECT_NE(files()->hash(), before);
}

TEST_F(RealGenomes, HaveReadsOfBasesInARow) {
  tiny_.put("A/a/one.fna", ">1\n" + TinyGenomes::letters(1, 150) + "N" +
                               TinyGenomes::letters(2, 149) + "N" + TinyGenomes::letters(3, 400));
  const auto all = files();
  ASSERT_NE(all, nullptr);
  bench::Random random(1);
  std::set<uint64_t> places;
  for (int i = 0; i < 5000; ++i) places.insert(all->place_in(0, 150, random));
  EXPECT_TRUE(places.contains(0));
  EXPECT_EQ(places.size(), 1U + 251);
  EXPECT_EQ(*std::next(places.begin()), 150U + 1 + 149 + 1);
  EXPECT_EQ(*places.rbegin() + 150, all->bases_of(0).size());
}

TEST_F(RealGenomes, HaveACensusOfTheirKmers) {
  tiny_.put_all();
  const auto all = files();
  ASSERT_NE(all, nullptr);
  std::map<uint64_t, std::set<Taxon>> species;
  const auto each = [&](uint32_t strain, auto see) {
    bench::each_kmer(all->bases_of(strain), see);
  };
  for (uint32_t strain = 0; strain < 4; ++strain)
    each(strain, [&](uint64_t kmer) {
      species[kmer].insert(all->taxonomy().species_of(all->taxonomy().strain(strain)));
    });
  EXPECT_EQ(all->census().kmers, species.size());
  double shares = 0;
  for (uint32_t strain = 0; strain < 4; ++strain) {
    double count = 0, alone = 0;
    each(strain, [&](uint64_t kmer) { ++count, alone += species[kmer].size() == 1; });
    shares += alone / count;
  }
  EXPECT_NEAR(all->census().species_share, shares / 4, 1e-9);
  EXPECT_LT(shares / 4, 0.95) << "species have something in common";
}

// Of more than are counted one by one.
TEST_F(RealGenomes, HaveACensusThatIsAboutRightOfMany) {
  const std::string letters = TinyGenomes::letters(1, 1'500'000);
  tiny_.put("A/a/one.fna", ">\n" + letters);
  tiny_.put("A/b/one.fna", ">\n" + letters.substr(0, 750'000) + TinyGenomes::letters(2, 750'000));
  const auto all = files();
  ASSERT_NE(all, nullptr);
  EXPECT_NEAR(static_cast<double>(all->census().kmers), 2'250'000, 22'500);
  EXPECT_NEAR(all->census().species_share, 0.5, 0.01);
}

TEST_F(RealGenomes, HaveADatabaseOfTheCommonAncestors) {
  tiny_.put_all();
  const bench::Genomes genomes(1, files());
  const bench::Taxonomy& tree = genomes.taxonomy();
  std::map<uint64_t, Taxon> expected;
  for (uint32_t strain = 0; strain < tree.strains(); ++strain) {
    const bench::Sequence genome = genomes.sequence(strain);
    for (uint64_t first = 0; first + bench::kKmerBases <= genomes.bases_of(strain); ++first) {
      uint64_t kmer = 0;
      bool is_whole = true;
      for (uint64_t i = 0; i < bench::kKmerBases; ++i) {
        is_whole = is_whole && genome.base(first + i) != kNoBase;
        kmer = kmer << 2 | (genome.base(first + i) & 3);
      }
      if (!is_whole) continue;
      Taxon& taxon = expected[bench::canonical(kmer)];
      taxon = tree.common_ancestor(taxon, tree.strain(strain));
    }
  }
  std::vector<uint64_t> table(bench::KmerBuilder::file_bytes_for(expected.size()) / 8);
  const bench::KmerBuilder builder(genomes, 2);
  const auto hash = builder.lay_out_hash(std::as_writable_bytes(std::span(table)));
  ASSERT_TRUE(hash.ok()) << hash.message();
  const bench::KmerHeader two_level = bench::KmerBuilder::two_level_header(hash.value());
  std::vector<uint64_t> file(two_level.size_bytes / 8);
  builder.lay_out_two_level(std::as_bytes(std::span(table)), two_level,
                            std::as_writable_bytes(std::span(file)));
  EXPECT_EQ(two_level.kmers, expected.size());
  const bench::KmerIndex of_hash(hash.value(), std::as_bytes(std::span(table)));
  const bench::KmerIndex of_lists(two_level, std::as_bytes(std::span(file)));
  size_t wrong = 0;
  for (const auto& [kmer, taxon] : expected)
    wrong += size_t{of_hash.find(kmer) != taxon} + size_t{of_lists.find(kmer) != taxon};
  EXPECT_EQ(wrong, 0U);
}

TEST_F(RealGenomes, TellReadsAndKmers) {
  tiny_.put_all();
  for (const char* index : {"hash", "two-level"})
    for (const char* more : {"--reads 400", "--reads 400 --processes 2 --prefetch-lists",
                             "--lookups --touches 3000"}) {
      const Outcome outcome = kmers(std::string("--index ") + index + " " + more);
      ASSERT_EQ(outcome.status, 0) << outcome.err;
      for (const auto& line : outcome.lines()) {
        EXPECT_EQ(line["checked"], true);
        EXPECT_EQ(line["strains"], 4);
        EXPECT_EQ(line["kmers"], files()->census().kmers);
        EXPECT_NE(line.value("variant", "").find("real genomes"), std::string::npos);
        if (std::string(more).find("reads") != std::string::npos) {
          EXPECT_GT(line.value("right", uint64_t{0}), 380U);
        }
      }
    }
}

// Taxa that are true of all, and tell nothing.
TEST_F(RealGenomes, AreRefusedADatabaseThatTellsLess) {
  tiny_.put_all();
  ASSERT_EQ(kmers("--reads 400").status, 0);
  std::fstream file(path(database()), std::ios::in | std::ios::out | std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  for (size_t at = 4096; at < bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, &bytes[at], sizeof word);
    if (word != 0) word = bench::entry_of(bench::kmer_of(word), bench::kRootTaxon);
    std::memcpy(&bytes[at], &word, sizeof word);
  }
  file.seekp(0);
  file << bytes;
  file.close();
  const Outcome outcome = kmers("--reads 400");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("were classified correctly"), std::string::npos) << outcome.err;
}

TEST_F(RealGenomes, OfTwoGeneraThatAreOneAreToldAsFarAsTheyCanBe) {
  const std::string letters = TinyGenomes::letters(1, 5000);
  tiny_.put("Escherichia/coli/one.fna", ">\n" + letters);
  tiny_.put("Shigella/sonnei/one.fna",
            ">\n" + letters.substr(0, 4500) + TinyGenomes::letters(2, 500));
  const Outcome outcome = kmers("--reads 500");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const auto& line : outcome.lines()) {
    EXPECT_LT(line.value("right", uint64_t{0}), 150U);
    EXPECT_GT(line.value("right", uint64_t{0}) + line.value("above", uint64_t{0}), 480U);
  }
  damage(database());
  EXPECT_EQ(kmers("--reads 500").status, 1);
}

TEST_F(RealGenomes, AreExportedWithTheirNames) {
  tiny_.put_all();
  const Outcome outcome = kmers("--reads 100 --export " + path("sample"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto text = [&](const std::string& name) {
    std::ifstream file(path("sample/" + name));
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_NE(text("taxonomy/names.dmp").find("\t|\tBlue\t|\t"), std::string::npos);
  EXPECT_NE(text("taxonomy/nodes.dmp").find("\t|\tstrain\t|\t"), std::string::npos);
  std::vector<uint8_t> bases;
  ASSERT_TRUE(bench::read_fasta(path("sample/genomes.fa"), bases).ok());
  EXPECT_EQ(bases.size(), files()->all_bases() + 3);
  const std::string answers = text("answers.tsv");
  EXPECT_EQ(std::count(answers.begin(), answers.end(), '\n'), 100);
}

TEST_F(RealGenomes, ThatAreNoneAreRefusedInOneLine) {
  const auto refused = [&](const std::string& why, const std::string& more = "") {
    const Outcome outcome = kmers(more);
    EXPECT_NE(outcome.status, 0) << why;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
  };
  refused("No such file");
  tiny_.put("A/a/README", "");
  refused("has no FASTA file");
  tiny_.put("one.fna", ">\n" + TinyGenomes::letters(1, 500));  // not at its place
  refused("has no FASTA file");
  tiny_.put("A/a/one.fna", TinyGenomes::letters(1, 500));
  refused("does not begin with '>'");
  tiny_.put("A/a/one.fna", ">\n" + TinyGenomes::letters(1, 500) + "\nAC1\n");
  refused("line 3 has something that is not a letter");
  tiny_.put("A/a/one.fna", std::string("\x1f\x8b\x08\n\0\0", 6));
  refused("is not FASTA");
  for (const std::string& text : {std::string(), std::string(">only a name\n"),
                                  ">\n" + TinyGenomes::letters(1, 149) + "\n"}) {
    tiny_.put("A/a/one.fna", text);
    refused("no 150 bases (ACGT) in a row");
  }
  tiny_.put("A/a/one.fna", ">\n" + TinyGenomes::letters(1, 150) + "\n");
  refused("leave out --size", "--size 4M");
  EXPECT_EQ(kmers("--reads 20 --index two-level").status, 0);
  const auto few = GenomeFiles::read(tiny_.folder(), 3);
  ASSERT_FALSE(few.ok());
  EXPECT_NE(few.message().find("has 4 taxa, and at most 3"), std::string::npos) << few.message();
  EXPECT_TRUE(GenomeFiles::read(tiny_.folder(), 4).ok());
}

}  // namespace
}  // namespace outcore::cli
